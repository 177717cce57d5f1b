#!/bin/sh
# Builds zc, looks at its sources (lint.sh) and runs every test: unit, command line, conformance; then all again under
# ASan and UBSan.
set -eu
cd "$(dirname "$0")/.."
scripts/setup.sh

[ -f build/build.ninja ] || meson setup build
ninja -C build
scripts/lint.sh build
ZC_ONNX_TESTS=$(scripts/onnx-tests.sh)
export ZC_ONNX_TESTS
if ZC_NVRTC=$(scripts/nvrtc.sh); then
    export ZC_NVRTC
else
    echo "test: there is no NVRTC: kernels are compiled by the tests' own alone"
    unset ZC_NVRTC
fi
meson test -C build --no-rebuild --print-errorlogs

[ -f build-asan/build.ninja ] || meson setup build-asan -Db_sanitize=address,undefined -Db_lundef=false
ninja -C build-asan
meson test -C build-asan --no-rebuild --print-errorlogs --no-suite bench --timeout-multiplier 4
