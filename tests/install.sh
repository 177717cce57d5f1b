#!/bin/sh
# usage: install.sh MESON BUILD: what `meson install` puts down is what the README promises: command, libraries, headers,
# documents that exist wherever a document names them, examples, man pages of commands and functions.
set -eu
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
DESTDIR=$dir "$1" install -C "$2" --no-rebuild --quiet
faults=0
fault() {
    echo "install: $1"
    faults=$((faults + 1))
}

for file in bin/zc include/zc/zc.h include/zc/rt.h include/zc/custom.h include/zc/dlpack.h share/man/man1/zc.1 \
    share/man/man1/zc-run.1 share/man/man3/zc_rt.h.3 share/man/man3/zc_session_run.3 share/doc/zc/README.md \
    share/doc/zc/examples/custom_op.c share/doc/zc/examples/custom_op.onnx share/zc/valgrind.supp; do
    find "$dir" -path "*/$file" | grep -q . || fault "$file is not there"
done
for library in libzc libzc_rt; do
    find "$dir" -name "$library.so*" -o -name "$library.a" | grep -q . || fault "$library is not there"
done

# Documents that documents name.
doc=$(dirname "$(find "$dir" -path '*/doc/zc/README.md')")
for name in $(grep -rhoE '\b(docs|examples)/[a-z_]+\.(md|c)\b' "$doc" "$dir" --include='*.md' --include='*.h' | sort -u); do
    [ -f "$doc/$name" ] || fault "$name is named and not there"
done
echo "install: $(find "$dir" -type f | wc -l) files, $faults faults"
[ "$faults" -eq 0 ]
