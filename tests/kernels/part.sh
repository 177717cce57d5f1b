#!/bin/sh
# usage: part.sh COMMAND...: COMMAND with --part K/10 behind it (tests/part.sh). All of it takes more than an hour of processor
# time.
set -eu
part=$("$(dirname "$0")/../part.sh" 10)
[ -n "$part" ] || exec "$@"
exec "$@" --part "$part/10"
