#!/bin/sh
# usage: man3.sh PAGES MAP...: every function of the libraries, and every installed header, has a page of section 3,
# which says what it does; groff, where there is one, renders all without a warning.
set -eu
pages=$1
shift
faults=0
fault() {
    echo "man3: $1"
    faults=$((faults + 1))
}

count=0
for name in $(sed -n 's/^ *\(zc_[a-z_0-9]*\);$/\1/p' "$@"); do
    count=$((count + 1))
    page=$pages/$name.3
    [ -f "$page" ] || { fault "$name has no page"; continue; }
    grep -q "$name(" "$page" || fault "$name is not in its synopsis"
    grep -q '^.SH DESCRIPTION' "$page" || fault "$name has no description"
done
[ "$count" -ge 40 ] || fault "only $count functions in the maps"
for page in zc.h zc_rt.h zc_custom.h zc_dlpack.h zc_session_params zc_io_info; do
    [ -f "$pages/$page.3" ] || fault "$page has no page"
done
if command -v groff >/dev/null; then
    for page in "$pages"/*.3; do
        groff -man -Tutf8 -ww -z "$page" 2>"$pages/../man3.warnings" || true
        [ ! -s "$pages/../man3.warnings" ] || fault "$(head -1 "$pages/../man3.warnings")"
    done
    rm -f "$pages/../man3.warnings"
else
    echo "man3: there is no groff: pages are not rendered"
fi
echo "man3: $count functions, $faults faults"
[ "$faults" -eq 0 ]
