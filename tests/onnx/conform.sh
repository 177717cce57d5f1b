#!/bin/sh
# usage: conform.sh ZC SKIP_LIST [DEVICE]; the data's folder comes in ZC_ONNX_TESTS (scripts/onnx-tests.sh). Without
# it the test is skipped (77). On the GPU that a CPU stands for a fifth of the tests (tests/part.sh), those whose names'
# lengths have one remainder.
set -eu
zc=$1
skip=$2
device=${3:-cpu}
[ -n "${ZC_ONNX_TESTS:-}" ] || { echo "ZC_ONNX_TESTS is not set"; exit 77; }
[ -d "$ZC_ONNX_TESTS/node" ] || { echo "no folder $ZC_ONNX_TESTS/node"; exit 1; }
names=.
[ "$device" = cpu ] || part=$("$(dirname "$0")/../part.sh" 5)
[ -z "${part:-}" ] || names="^(.{5})*.{$((part - 1))}\$"
for suite in node simple pytorch-converted pytorch-operator light; do
    # The light models are whole networks: hours for a GPU's kernels on a CPU.
    [ "$suite" = light ] && [ "$device" != cpu ] && continue
    echo "== $suite"
    "$zc" conform "$ZC_ONNX_TESTS/$suite" --skip-list "$skip" --timeout 120 --device "$device" --include "$names"
done
