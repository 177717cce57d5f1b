#!/bin/sh
# usage: headers.sh INCLUDE_DIR: every installed header compiles alone, as C11 and as C++; the parameter macros leave out
# no field.
set -eu
include=$1
for header in "$include"/zc/*.h; do
    for mode in 'c -std=c11' 'c++ -std=c++11'; do
        # shellcheck disable=SC2086
        printf '#include "%s"\nextern int alone;\n' "$header" | ${CC:-cc} -x $mode -Wall -Wextra -Wpedantic -Werror -I"$include" -fsyntax-only - ||
            { echo "headers: $header fails as $mode"; exit 1; }
    done
done

# with_fields N: a program whose parameters have N fields, all given.
with_fields() {
    printf '#include <stddef.h>\n#include "zc/params.h"\nstruct many { size_t size; int %s; };\n' "$(seq -s, -f 'f%g' "$1")"
    printf 'void take(const struct many *);\nvoid give(void) { take(ZC_PARAMS(struct many, %s)); }\n' \
        "$(seq -s, -f '.f%g = 1' "$1")"
}
compiles() { # N MODE
    # shellcheck disable=SC2086
    with_fields "$1" | ${CC:-cc} -x $2 -I"$include" -fsyntax-only - 2>/dev/null
}
compiles 200 'c -std=c11' || { echo "headers: 200 fields are refused in C"; exit 1; }
compiles 48 'c++ -std=c++11' || { echo "headers: 48 fields are refused in C++"; exit 1; }
! compiles 49 'c++ -std=c++11' || { echo "headers: the 49th field is left out in C++"; exit 1; }
echo "headers: $(ls "$include"/zc/*.h | wc -l) headers compile alone as C and C++"
