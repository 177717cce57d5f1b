#!/bin/sh
# usage: exports.sh INCLUDE_DIR LIBZC_RT LIBZC: each shared library shows the functions that its headers declare,
# under a symbol version, and nothing else; the runtime library needs neither protobuf nor the compiler.
set -eu
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT

# declared HEADER...: functions marked ZC_API.
declared() { grep -v '^#' "$1" | tr '\n' ' ' | grep -o 'ZC_API [^;(]*(' | sed 's/.*[ *]\(zc_[a-z_]*\)($/\1/'; }

# shown LIBRARY NODE...: its functions, each of a node of these; the nodes themselves are symbols without an address.
shown() {
    nm -D --defined-only "$1" | awk '$2 != "A" {print $3}' >"$dir/shown"
    if grep -v '@@ZC_\(RT_\)\?[0-9]*\.[0-9]*$' "$dir/shown"; then
        echo "exports: $1 shows symbols without a version" >&2
        return 1
    fi
    sed 's/@@.*//' "$dir/shown" | sort
}

for header in "$1"/zc/*.h; do declared "$header" || true; done | sort >"$dir/all"
declared "$1/zc/zc.h" | sort >"$dir/compiler"
comm -23 "$dir/all" "$dir/compiler" >"$dir/runtime"
[ "$(wc -l <"$dir/compiler")" -ge 3 ] && [ "$(wc -l <"$dir/runtime")" -ge 20 ]
shown "$2" | diff "$dir/runtime" - || { echo "exports: $2 differs from its headers and map"; exit 1; }
shown "$3" | diff "$dir/all" - || { echo "exports: $3 differs from its headers and map"; exit 1; }
for word in protobuf nvrtc zc_compile zc_graph; do
    if nm -D "$2" | grep -q "$word" || readelf -d "$2" | grep NEEDED | grep -q "$word"; then
        echo "exports: the runtime library knows $word"
        exit 1
    fi
done
echo "exports: $(wc -l <"$dir/all") functions, all declared and versioned; no protobuf, no compiler in the runtime"
