#!/bin/sh
# usage: setup.sh [--test]: installs what is missing of scripts/packages.txt, with --test also of scripts/packages-test.txt.
# Needs root or sudo only when something is missing.
set -eu
cd "$(dirname "$0")/.."

lists=scripts/packages.txt
[ "${1:-}" != --test ] || lists="$lists scripts/packages-test.txt"

missing=
# shellcheck disable=SC2086
for package in $(grep -hv '^#' $lists); do
    dpkg-query -W -f='${Status}' "$package" 2>/dev/null | grep -q 'install ok installed' ||
        missing="$missing $package"
done
[ -n "$missing" ] || exit 0

as_root=
if [ "$(id -u)" -ne 0 ]; then
    command -v sudo >/dev/null || {
        echo "setup: these packages are missing and neither root nor sudo is there:$missing" >&2
        exit 1
    }
    as_root=sudo
fi
echo "setup: installing$missing"
$as_root apt-get update -qq
# shellcheck disable=SC2086
$as_root env DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends $missing >/dev/null
