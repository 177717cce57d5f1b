#!/bin/sh
# usage: part.sh N COMMAND...: COMMAND with --part K/N behind it (tests/part.sh).
set -eu
parts=$1
shift
part=$("$(dirname "$0")/../part.sh" "$parts")
[ -n "$part" ] || exec "$@"
exec "$@" --part "$part/$parts"
