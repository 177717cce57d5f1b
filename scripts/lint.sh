#!/bin/sh
# The formatter and clang-tidy over zc's sources; $1 is a configured and built build folder (build). Every C file and
# header is to be formatted. clang-tidy looks at a source of src/ again only when it, a header, a template or the
# configuration is newer than the last look that found nothing.
set -eu
cd "$(dirname "$0")/.."
build=${1:-build}
marks=$build/lint
mkdir -p "$marks"

if git rev-parse --git-dir >/dev/null 2>&1; then
    files=$(git ls-files -co --exclude-standard '*.c' '*.cc' '*.cpp' '*.h')
else
    files=$(find bench examples include src templates tests tools \( -name '*.[ch]' -o -name '*.cc' -o -name '*.cpp' \))
fi
# Versions of the formatter differ in small things; the sources are formatted by 14.
if clang-format --version | grep -q 'version 14\.'; then
    # shellcheck disable=SC2086
    clang-format --dry-run -Werror $files
else
    echo "lint: formatting not checked: needs clang-format 14, got $(clang-format --version)"
fi

newest=$(find .clang-tidy include src templates meson.build \( -name '*.h' -o -name '*.def' -o -name '.clang-tidy' \
    -o -name meson.build \) -printf '%T@ %p\n' | sort -n | tail -n 1 | cut -d' ' -f2-)
for source in src/*/*.c src/*/*/*.c src/*/*.cpp; do
    mark=$marks/$(echo "$source" | tr / _)
    [ "$mark" -nt "$source" ] && [ "$mark" -nt "$newest" ] || printf '%s %s\n' "$source" "$mark"
done >"$marks/todo"
echo "lint: $(wc -l <"$marks/todo") sources for clang-tidy"
# shellcheck disable=SC2016
xargs -r -P "$(nproc)" -L 1 sh -c 'clang-tidy -p "$0" --quiet "$1" 2>"$2.log" || { cat "$2.log" >&2; exit 1; }; touch "$2"' \
    "$build" <"$marks/todo"
