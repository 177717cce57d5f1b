#!/bin/sh
# usage: gpu.sh PROGRAM...: test programs of this folder, or copies of them, one after the other on the driver and the
# NVRTC that the dynamic linker finds, each for a minute at most. They need neither sources nor a build folder: what
# they write is below /tmp.
failed=
log=$(mktemp)
trap 'rm -f "$log"' EXIT
for program in "$@"; do
    [ -f "$program" ] || continue # a folder of the build
    name=$(basename "$program")
    start=$(date +%s)
    timeout -k 5 60 "$program" >"$log" 2>&1
    code=$?
    passed=$(grep -c '^\[       OK \]' "$log")
    skipped=$(grep -c '^skipped: ' "$log")
    echo "$name: exit $code, $passed passed, $skipped skipped, $(($(date +%s) - start)) s"
    if [ $code -ne 0 ]; then
        failed="$failed $name"
        grep -v '^\[ RUN  \|^\[       OK' "$log" | tail -n 40
    fi
done
echo "failed:${failed:- none}"
[ -z "$failed" ]
