#!/bin/sh
# usage: valgrind.sh SUPPRESSIONS PROGRAM PLAN...: valgrind finds no error and no leak of any kind in three runs of two sessions of
# each plan but what the file names, and all plans together need each of its entries. Skipped where there is no valgrind.
set -eu
supp=$1 program=$2
shift 2
command -v valgrind >/dev/null || { echo "valgrind: not installed"; exit 77; }
log=$(mktemp)
trap 'rm -f "$log" "$log.one"' EXIT
for plan; do
    valgrind -v --leak-check=full --show-leak-kinds=all --errors-for-leak-kinds=all --error-exitcode=9 \
        --suppressions="$supp" --log-file="$log.one" "$program" "$plan" 2 3 || {
        cat "$log.one"
        echo "valgrind: exit code $? of $program $plan"
        exit 1
    }
    cat "$log.one" >>"$log"
done
sed -n '/^{/{n;s/^ *//p}' "$supp" | while read -r name; do
    grep -q "used_suppression:.* $name" "$log" || { echo "valgrind: needs no suppression '$name'"; exit 1; }
done
echo "valgrind: $program on $* has no error and no leak; all suppressions are needed"
