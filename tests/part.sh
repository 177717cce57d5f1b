#!/bin/sh
# usage: part.sh N: which of N parts of what takes CI too long is run, by the commit that is checked out: commits soon have had
# all of them, and the same commit always runs the same. Prints nothing where all are: ZC_ALL_KERNELS=1, and a tree without git.
set -eu
commit=$(git -C "$(dirname "$0")" rev-parse HEAD 2>/dev/null | cut -c1-7) || commit=
[ -z "${ZC_ALL_KERNELS:-}" ] && [ -n "$commit" ] || exit 0
echo $((0x$commit % $1 + 1))
