#!/bin/sh
# Prints the folder that holds NVRTC, CUDA's run-time compiler: $ZC_NVRTC when set, otherwise that of NVIDIA's package
# on PyPI, pinned by its hash and fetched once into build/. It compiles kernels on machines without a GPU.
set -eu
cd "$(dirname "$0")/.."
version=13.0.88
sha256=ad9b6d2ead2435f11cbb6868809d2adeeee302e9bb94bcf0539c7a40d80e8575
if [ -n "${ZC_NVRTC:-}" ]; then
    [ -d "$ZC_NVRTC" ] || { echo "nvrtc: no folder $ZC_NVRTC" >&2; exit 1; }
    echo "$ZC_NVRTC"
    exit 0
fi
[ "$(uname -m)" = x86_64 ] || { echo "nvrtc: the package is for x86-64" >&2; exit 1; }
dir=$PWD/build/nvrtc-$version
if [ ! -d "$dir" ]; then
    rm -rf "$dir.tmp"
    mkdir -p "$dir.tmp"
    echo "nvidia-cuda-nvrtc==$version --hash=sha256:$sha256" >"$dir.tmp/requirements.txt"
    python3 -m pip download -q --no-deps --only-binary=:all: --platform manylinux2010_x86_64 --require-hashes \
        -r "$dir.tmp/requirements.txt" -d "$dir.tmp" >&2
    unzip -q "$dir.tmp"/*.whl 'nvidia/cu13/lib/libnvrtc.so.*' 'nvidia/cu13/lib/libnvrtc-builtins.so.*' -d "$dir.tmp"
    mkdir "$dir.tmp/lib"
    mv "$dir.tmp"/nvidia/cu13/lib/* "$dir.tmp/lib"
    mv "$dir.tmp/lib" "$dir"
    rm -rf "$dir.tmp"
fi
echo "$dir"
