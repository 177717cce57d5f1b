#!/bin/sh
# usage: static.sh BUILD_DIR PREFIX PLAN: of a build of the libraries as static ones, whose prefix is that: they are
# installed, and programs are built with nothing but what pkg-config says. In the folder of the sources.
set -eu
build=$1 prefix=$2 plan=$3
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
meson install -C "$build" --no-rebuild --tags devel >"$dir/log" 2>&1 || { cat "$dir/log"; exit 1; }
export PKG_CONFIG_PATH="$prefix/lib/pkgconfig"
# shellcheck disable=SC2046
${CC:-cc} examples/run_plan.c -o "$dir/run_plan" $(pkg-config --cflags --libs zc_rt)
"$dir/run_plan" "$plan"
# shellcheck disable=SC2046
${CXX:-c++} -std=c++11 tests/unit/cxx.cc -o "$dir/cxx" $(pkg-config --cflags --libs zc)
"$dir/cxx"
for program in run_plan cxx; do
    if readelf -d "$dir/$program" | grep NEEDED | grep libzc; then
        echo "static: $program needs a shared library of zc"
        exit 1
    fi
done
