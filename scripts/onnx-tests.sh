#!/bin/sh
# Prints the folder that holds the ONNX conformance data: $ZC_ONNX_TESTS when set, otherwise the pinned onnx
# package's, fetched once into build/.
set -eu
cd "$(dirname "$0")/.."
version=1.22.0
if [ -n "${ZC_ONNX_TESTS:-}" ]; then
    [ -d "$ZC_ONNX_TESTS" ] || { echo "onnx-tests: no folder $ZC_ONNX_TESTS" >&2; exit 1; }
    echo "$ZC_ONNX_TESTS"
    exit 0
fi
dir=$PWD/build/onnx-$version
if [ ! -d "$dir/onnx/backend/test/data" ]; then
    rm -rf "$dir.tmp"
    mkdir -p "$dir.tmp"
    python3 -m pip download -q --no-deps --only-binary=:all: -d "$dir.tmp" "onnx==$version" >&2
    unzip -q "$dir.tmp"/onnx-*.whl 'onnx/backend/test/data/*' -d "$dir.tmp"
    rm -f "$dir.tmp"/onnx-*.whl
    rm -rf "$dir"
    mv "$dir.tmp" "$dir"
fi
echo "$dir/onnx/backend/test/data"
