#!/bin/sh
# Who may include whom. Every folder of src/ may include itself, base and the installed headers that its row
# names; an include that the table does not allow fails the test.
set -eu
cd "$1"

allowed() {
    case $1 in
    base) echo "" ;;
    op) echo "base" ;;
    io) echo "base op" ;;
    media) echo "base op io" ;;
    cpu) echo "base op" ;;
    planfile) echo "base op" ;;
    cuda) echo "base op planfile" ;;
    kernels) echo "base op cuda planfile abi" ;;
    runtime) echo "base op cpu cuda kernels planfile" ;;
    ir) echo "base op" ;;
    import) echo "base op ir" ;;
    rules) echo "base op ir cpu" ;;
    passes) echo "base op ir cpu rules" ;;
    program) echo "base op ir planfile" ;;
    codegen) echo "base op planfile cuda kernels" ;;
    tune) echo "base op ir planfile cuda kernels codegen runtime" ;;
    driver) echo "base op cpu codegen cuda kernels ir import passes planfile program rules tune" ;;
    cli) echo "base op io media ir import passes rules planfile cuda kernels runtime driver tune" ;;
    *) return 1 ;;
    esac
}

faults=0
checked=0
for file in src/*/*.c src/*/*.cpp src/*/*.h src/*/*.def src/*/*/*.def; do
    [ -f "$file" ] || continue
    folder=${file#src/}
    folder=${folder%%/*}
    may=$(allowed "$folder") || { echo "layering: no row for folder $folder"; faults=$((faults + 1)); continue; }
    for other in $(sed -n 's/^#include "\([a-z]*\)\/.*/\1/p' "$file" | sort -u); do
        checked=$((checked + 1))
        [ "$other" = zc ] && continue
        [ "$other" = "$folder" ] && continue
        case " $may " in
        *" $other "*) ;;
        *) echo "layering: $file includes $other/, which $folder may not"; faults=$((faults + 1)) ;;
        esac
    done
done
[ "$checked" -gt 0 ] || { echo "layering: found no includes to check"; exit 1; }
echo "layering: $checked includes checked, $faults faults"
[ "$faults" -eq 0 ]
