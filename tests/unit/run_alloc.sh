#!/bin/sh
# usage: run_alloc.sh ZC TEST SOURCE_DIR: test_run_alloc on the bundled models, those without weights filled at random.
set -eu
zc=$1
test=$2
src=$3
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
"$zc" compile "$src/models/digits/digits.onnx" -o "$dir/digits.plan"
for model in resnet50.legacy vit_b16.legacy bert_base.legacy gpt2.legacy; do
    "$zc" fill "$src/models/bench/$model.onnx" -o "$dir/$model" --seed 1
    "$zc" compile "$dir/$model/model.onnx" -o "$dir/$model.plan"
    rm -r "${dir:?}/$model"
done
"$test" "$dir"/*.plan
