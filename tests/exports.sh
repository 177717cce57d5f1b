#!/bin/sh
# usage: exports.sh LIBZC_RT: the runtime library shows only zc_ symbols and needs neither protobuf nor the compiler.
set -eu
bad=$(nm -D --defined-only "$1" | awk '{print $3}' | grep -v '^zc_' || true)
[ -z "$bad" ] || { echo "exports: foreign symbols: $bad"; exit 1; }
count=$(nm -D --defined-only "$1" | wc -l)
[ "$count" -ge 20 ] || { echo "exports: only $count symbols"; exit 1; }
for word in protobuf nvrtc zc_compile zc_graph; do
    if nm -D "$1" | grep -q "$word" || readelf -d "$1" | grep NEEDED | grep -q "$word"; then
        echo "exports: the runtime library knows $word"
        exit 1
    fi
done
echo "exports: $count symbols, all zc_; no protobuf, no compiler"
