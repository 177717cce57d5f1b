#!/bin/sh
# Builds zc, compiles the bundled digit classifier and runs it on bundled images.
set -eu
cd "$(dirname "$0")/.."
scripts/setup.sh
[ -f build/build.ninja ] || meson setup build >/dev/null
ninja -C build >/dev/null

zc=build/src/cli/zc
out=$(mktemp -d)
trap 'rm -rf "$out"' EXIT
echo "\$ zc compile models/digits/digits.onnx -o digits.plan"
$zc compile models/digits/digits.onnx -o "$out/digits.plan"
for image in models/digits/sample_*.npy; do
    echo
    echo "\$ zc run digits.plan --input image=$image --labels models/digits/labels.txt --top 3"
    $zc run "$out/digits.plan" --input "image=$image" --labels models/digits/labels.txt --top 3
done
