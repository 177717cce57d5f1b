#!/bin/sh
# Builds zc, compiles the bundled digit classifier and runs it on bundled images.
set -eu
cd "$(dirname "$0")/.."
echo "Looking for packages that are missing (scripts/packages.txt)"
scripts/setup.sh
echo "Building zc in build/: about a minute"
[ -f build/build.ninja ] || meson setup build >/dev/null
if [ -t 1 ]; then
    ninja -C build src/cli/zc
else
    ninja -C build src/cli/zc >/dev/null
fi

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
