#!/bin/sh
# usage: test.sh [--all]: builds zc, looks at its sources (lint.sh) and runs the tests: unit, command line, conformance.
# --all adds the long ones, and runs all again under ASan and UBSan.
set -eu
cd "$(dirname "$0")/.."
case $* in
"") long=--no-suite=long ;;
--all) long= ;;
*)
    echo "usage: test.sh [--all]" >&2
    exit 1
    ;;
esac
scripts/setup.sh --test

[ -f build/build.ninja ] || meson setup build
ninja -C build
scripts/lint.sh build
ZC_ONNX_TESTS=$(scripts/onnx-tests.sh)
export ZC_ONNX_TESTS
if [ -z "$long" ] && ZC_NVRTC=$(scripts/nvrtc.sh); then
    export ZC_NVRTC # the long tests compile with it
else
    unset ZC_NVRTC # they are skipped
fi
# shellcheck disable=SC2086
meson test -C build --no-rebuild --print-errorlogs $long
[ -z "$long" ] || exit 0

# -O1: with -O3 sanitized code takes 1.75 times as long to compile, and hides some faults. -g1: reports need lines alone.
[ -f build-asan/build.ninja ] ||
    meson setup build-asan -Db_sanitize=address,undefined -Db_lundef=false -Doptimization=1 -Ddebug=false \
        -Dc_args=-g1 -Dcpp_args=-g1
ninja -C build-asan
# Not in here: what has not been seen to pass under sanitizers (docs/reliability.md, Known gaps).
meson test -C build-asan --no-rebuild --print-errorlogs --suite unit --suite examples --suite hostcuda --suite commands --no-suite long --timeout-multiplier 4
