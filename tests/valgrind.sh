#!/bin/sh
# usage: valgrind.sh SUPPRESSIONS PROGRAM [ARGUMENT...]: valgrind finds no error and no leak of any kind in the program but
# what the file names, and needs each of its entries. Skipped where there is no valgrind.
set -eu
supp=$1
shift
command -v valgrind >/dev/null || { echo "valgrind: not installed"; exit 77; }
log=$(mktemp)
trap 'rm -f "$log"' EXIT
valgrind -v --leak-check=full --show-leak-kinds=all --errors-for-leak-kinds=all --error-exitcode=9 \
    --suppressions="$supp" --log-file="$log" "$@" || {
    cat "$log"
    echo "valgrind: exit code $? of $*"
    exit 1
}
sed -n '/^{/{n;s/^ *//p}' "$supp" | while read -r name; do
    grep -q "used_suppression:.* $name" "$log" || { echo "valgrind: needs no suppression '$name'"; exit 1; }
done
echo "valgrind: $* has no error and no leak; all suppressions are needed"
