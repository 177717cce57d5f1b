#!/bin/sh
# usage: replay.sh HARNESS DIRECTORY...: replays the directories that exist; the first must.
set -eu
harness=$1
[ -d "$2" ] || { echo "no seeds in $2"; exit 1; }
shift
for dir; do
    shift
    [ -d "$dir" ] && set -- "$@" "$dir"
done
exec "$harness" "$@"
