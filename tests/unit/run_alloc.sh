#!/bin/sh
# usage: run_alloc.sh ZC TEST SOURCE_DIR [MODEL...]: test_run_alloc on the digits and on these of models/bench
# (resnet50.legacy ...), filled at random: of each, 100 of a run's allocations, or as many as ZC_TEST_ALLOCATIONS says, fail
# in a run of its own, which takes minutes.
set -eu
zc=$1
test=$2
src=$3
shift 3
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
"$zc" compile "$src/models/digits/digits.onnx" -o "$dir/digits.plan"
for model in "$@"; do
    "$zc" fill "$src/models/bench/$model.onnx" -o "$dir/$model" --seed 1
    "$zc" compile "$dir/$model/model.onnx" -o "$dir/$model.plan"
    rm -r "${dir:?}/$model"
done
"$test" "$dir"/*.plan
