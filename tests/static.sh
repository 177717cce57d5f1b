#!/bin/sh
# usage: static.sh SOURCE_DIR PLAN: the libraries as static ones, installed, and programs that are built with nothing
# but what pkg-config says.
set -eu
src=$1 plan=$2
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
if ! { meson setup "$dir/build" "$src" --prefix="$dir/to" --libdir=lib -Ddefault_library=static -Doptimization=0 \
    -Ddebug=false && ninja -C "$dir/build" src/libzc_rt.a src/libzc.a &&
    meson install -C "$dir/build" --no-rebuild --tags devel; } >"$dir/log" 2>&1; then
    tail -40 "$dir/log"
    exit 1
fi
export PKG_CONFIG_PATH="$dir/to/lib/pkgconfig"
# shellcheck disable=SC2046
${CC:-cc} "$src/examples/run_plan.c" -o "$dir/run_plan" $(pkg-config --cflags --libs zc_rt)
"$dir/run_plan" "$plan"
# shellcheck disable=SC2046
${CXX:-c++} -std=c++11 "$src/tests/unit/cxx.cc" -o "$dir/cxx" $(pkg-config --cflags --libs zc)
"$dir/cxx"
for program in run_plan cxx; do
    if readelf -d "$dir/$program" | grep NEEDED | grep libzc; then
        echo "static: $program needs a shared library of zc"
        exit 1
    fi
done
