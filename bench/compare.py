#!/usr/bin/env python3
"""Compares zc with other engines: the same model, inputs and device, in turn in one run, as a table.

usage: compare.py OPTIONS MODEL.onnx...     model files on the CPU, or a GPU of ONNX Runtime's: compare_files.py --help
       compare.py OPTIONS [CASE...]         networks of PyTorch's on a GPU, in f16: compare_cases.py --help

Both tell times and errors, and write times for `zc report` (--save)."""

import sys

if __name__ == "__main__":
    if len(sys.argv) == 1 or sys.argv[1] in ("-h", "--help"):
        sys.exit(print(__doc__))
    try:
        if any(word.endswith(".onnx") for word in sys.argv[1:]):
            from compare_files import main
        else:
            from compare_cases import main
        sys.exit(main())
    except ImportError as e:
        sys.exit(f"compare.py: python3 has no module {e.name}")
