#!/bin/sh
# Who may include whom. Every folder of src/ may include itself, base and the installed headers that its row
# names; an include that the table does not allow fails the test.
set -eu
cd "$1"

allowed() {
    case $1 in
    base) may="" ;;
    op) may="base" ;;
    io) may="base op" ;;
    media) may="base op io" ;;
    cpu) may="base op" ;;
    planfile) may="base op" ;;
    cuda) may="base op planfile" ;;
    kernels) may="base op cuda planfile abi" ;;
    runtime) may="base op cpu cuda kernels planfile" ;;
    ir) may="base op" ;;
    import) may="base op ir" ;;
    census) may="base op ir" ;;
    rules) may="base op ir cpu import census" ;;
    prover) may="base op ir cpu rules" ;;
    passes) may="base op ir cpu census kernels rules" ;;
    precision) may="base op ir passes" ;;
    program) may="base op ir planfile" ;;
    codegen) may="base op planfile cuda kernels" ;;
    tune) may="base op ir planfile cuda kernels codegen runtime abi" ;;
    driver) may="base op cpu codegen cuda kernels ir import passes planfile precision program prover census rules runtime tune" ;;
    cli) may="base op io media ir import passes precision prover census rules planfile cuda kernels runtime driver tune" ;;
    *) return 1 ;;
    esac
}

faults=0
checked=0
includes=$(awk -F '[/"]' '/^#include "[a-z]*\// { print FILENAME, $2 }' src/*/*.c src/*/*.cpp src/*/*.h src/*/*.def \
    src/*/*/*.c src/*/*/*.h src/*/*/*.def | sort -u)
while read -r file other; do
    folder=${file#src/}
    folder=${folder%%/*}
    allowed "$folder" || { echo "layering: no row for folder $folder"; faults=$((faults + 1)); continue; }
    checked=$((checked + 1))
    [ "$other" = zc ] && continue
    [ "$other" = "$folder" ] && continue
    case " $may " in
    *" $other "*) ;;
    *) echo "layering: $file includes $other/, which $folder may not"; faults=$((faults + 1)) ;;
    esac
done <<END
$includes
END
[ "$checked" -gt 0 ] || { echo "layering: found no includes to check"; exit 1; }
echo "layering: $checked includes checked, $faults faults"
[ "$faults" -eq 0 ]
