#!/bin/sh
# usage: fusion.sh ZC SOURCE_DIR: fusions found and steps left in the benchmark models, against fusion.txt.
# A fusion that is lost or a step more fails; with ZC_BLESS=1 the table is written anew.
set -eu
zc=$(realpath "$1")
src=$(realpath "$2")
table=$src/tests/rules/fusion.txt
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT

# One line for each model and kind: model, kind, found, there are; and: model, "steps", steps, views, shapes.
# What is counted after the rules (epilogue, pointwise) is told by the steps.
for model in "$src"/models/bench/*.onnx; do
    name=$(basename "$model" .onnx)
    "$zc" compile "$model" --explain --json >"$dir/json"
    sed -n -e 's/^ *{"kind": "\([a-z_]*\)", "found": \([0-9]*\), "there_are": \([1-9][0-9]*\),.*/\1 \2 \3/p' \
        -e 's/^ *"steps": {"total": \([0-9]*\), "views": \([0-9]*\), "shapes": \([0-9]*\),.*/steps \1 \2 \3/p' \
        "$dir/json" | sed -e '/^epilogue /d' -e '/^pointwise /d' -e "s/^/$name /"
done >"$dir/now"

if [ -n "${ZC_BLESS:-}" ]; then
    cp "$dir/now" "$table"
    echo "fusion.txt: blessed"
    exit 0
fi
awk '
    NR == FNR { row[$1 " " $2] = $0; next }
    { key = $1 " " $2; seen[key] = 1; lines++ }
    !(key in row) { printf "FAIL %s: not in the table (got %s %s)\n", key, $3, $4; faults++; next }
    { split(row[key], old) }
    $2 == "steps" && $3 + 0 > old[3] + 0 { printf "FAIL %s: more of them (got %s, need %s)\n", key, $3, old[3]; faults++ }
    $2 == "steps" && $3 + 0 < old[3] + 0 { better++ }
    $2 != "steps" && $4 != old[4] { printf "FAIL %s: another number there (got %s, need %s)\n", key, $4, old[4]; faults++ }
    $2 != "steps" && $3 + 0 < old[3] + 0 { printf "FAIL %s: fewer found (got %s, need %s)\n", key, $3, old[3]; faults++ }
    $2 != "steps" && $3 + 0 > old[3] + 0 { better++ }
    END {
        for (key in row) if (!(key in seen)) { printf "FAIL %s: gone (need %s)\n", key, row[key]; faults++ }
        if (better) printf "%d rows are better than the table (ZC_BLESS=1 accepts them)\n", better
        printf "%d rows, %d faults\n", lines, faults
        exit faults > 0 || lines == 0
    }' "$table" "$dir/now"
