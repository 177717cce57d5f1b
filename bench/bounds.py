#!/usr/bin/env python3
"""Do plans of --precision auto keep their bound on inputs that they were not chosen by?

  bench/bounds.py ZC [--device D] [--bounds E,...] [--seeds S,...] [--choose OPTIONS] [--calibrate N] [--jobs N] MODEL...

A MODEL is a path and options of its sizes, in one word: 'm/model.onnx --dim batch=1'. Each is compiled
in f32 for the CPU, and with --precision auto under each bound (and the options of --choose, and a calibration of
N random inputs); both run on the same random inputs, the latter on the device. An error is the greatest difference of an output
relative to its largest magnitude. Prints a table; exit code 1 when a bound is not kept or a command fails.
"""
import argparse
import concurrent.futures
import pathlib
import re
import subprocess
import sys
import tempfile

import numpy as np

from errors import relative


def call(zc, *words):
    done = subprocess.run([zc, *words], capture_output=True, text=True)
    if done.returncode:
        raise RuntimeError(f"zc {' '.join(map(str, words))}: exit {done.returncode}: {done.stderr.strip()[-300:]}")
    return done.stdout + done.stderr


def arrays(folder):
    return [np.load(f) for f in sorted(folder.glob("output_*.npy"))]


def error(want, have):
    whole = want.dtype.kind in "biu"
    return relative(have, want) if not whole or np.array_equal(want, have) else np.inf


def types_of(report):
    counts = {}
    for word in re.findall(r"^(int4|fp4|w8|int8|fp8|sparse|f16|bf16|tf32|f32) \w+ '", report, re.M):
        counts[word] = counts.get(word, 0) + 1
    return ", ".join(f"{n} {word}" for word, n in sorted(counts.items()))


def row(a, model, sizes, bound, folder):
    folder.mkdir(parents=True)
    results = {}
    choose = ["--precision", "auto", "--max-error", bound, "--verbose", *a.choose.split()]
    if a.calibrate:
        call(a.zc, "calibrate", model, "-o", folder / "calibration", *sizes, "--random", str(a.calibrate))
        choose += ["--calibration", folder / "calibration"]
    for plan, options in (("f32", ["--target", "cpu"]), ("auto", choose)):
        report = call(a.zc, "compile", model, "-o", folder / f"{plan}.plan", *sizes, *options)
        for seed in a.seeds.split(","):
            out = folder / f"{plan}.{seed}"
            device = a.device if plan == "auto" else "cpu"
            call(a.zc, "run", folder / f"{plan}.plan", "--random", "--seed", seed, "--device", device, "--output-dir", out)
            results[plan, seed] = arrays(out)
    worst = [max(error(*pair) for pair in zip(results["f32", s], results["auto", s], strict=True)) for s in a.seeds.split(",")]
    measured = re.search(r"^error (\S+) of at most", report, re.M)
    kept = max(worst) <= float(bound)
    print(f"| {model} | {bound} | {types_of(report)} | {measured[1] if measured else '-'} | "
          f"{' '.join(f'{e:.2e}' for e in worst)} | {'yes' if kept else 'NO'} |", flush=True)
    return kept


def attempt(*of):
    try:
        return row(*of)
    except (RuntimeError, ValueError) as e:
        print(f"| {of[1]} | {of[3]} | {e} | | | NO |", flush=True)
        return False


def main():
    p = argparse.ArgumentParser()
    p.add_argument("zc")
    p.add_argument("models", nargs="+")
    p.add_argument("--device", default="cpu")
    p.add_argument("--bounds", default="1e-2,3e-3,1e-3")
    p.add_argument("--seeds", default="11,12,13")
    p.add_argument("--choose", default="")
    p.add_argument("--calibrate", type=int)
    p.add_argument("--jobs", type=int, default=1)
    a = p.parse_args()
    print("| model | bound | parts | measured | on other inputs | kept |\n|---|---|---|---|---|---|")
    with tempfile.TemporaryDirectory() as place, concurrent.futures.ThreadPoolExecutor(a.jobs) as pool:
        rows = [pool.submit(attempt, a, *(lambda w: (w[0], w[1:]))(m.split()), bound, pathlib.Path(place) / f"{i}.{bound}")
                for i, m in enumerate(a.models) for bound in a.bounds.split(",")]
        sys.exit(0 if all(r.result() for r in rows) else 1)


main()
