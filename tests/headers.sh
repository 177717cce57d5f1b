#!/bin/sh
# usage: headers.sh INCLUDE_DIR: every installed header compiles alone, as C11 and as C++.
set -eu
for header in "$1"/zc/*.h; do
    for mode in 'c -std=c11' 'c++ -std=c++11'; do
        # shellcheck disable=SC2086
        printf '#include "%s"\nextern int alone;\n' "$header" | ${CC:-cc} -x $mode -Wall -Wextra -Wpedantic -Werror -I"$1" -fsyntax-only - ||
            { echo "headers: $header fails as $mode"; exit 1; }
    done
done
echo "headers: $(ls "$1"/zc/*.h | wc -l) headers compile alone as C and C++"
