#!/bin/sh
# usage: trial.sh ZC OUT_DIR [SLOWER] [SAME] [TURNS]: how often `zc bench --baseline` finds a kernel that was made slower by
# 5 % on purpose, in SLOWER (20) tries, and how often it blames the same plan, in SAME (100) tries. Needs a GPU: the bundled
# digits, whose softmax is the kernel spin.cu of TURNS (100000) turns: the fewer, the less of the run it is. Ends with 1 where
# one slower kernel is missed or not named, or more than one in a hundred blamed.
set -eu
zc=$1
out=$2
slower=${3:-20}
same=${4:-100}
turns=${5:-100000}
here=$(dirname "$0")
mkdir -p "$out/good" "$out/slow"
turn() { # PLAN TURNS
    cp "$here/spin.cu" "$out/$1"
    sed "s/TURNS in {100000}/TURNS in {$2}/" "$here/spin.zcr" >"$out/$1/spin.zcr"
}
turn good "$turns"
turn slow $((turns * 21 / 20))
for plan in good slow; do
    "$zc" compile "$here/../../models/digits/digits.onnx" -o "$out/$plan.plan" --rules "$out/$plan/spin.zcr" --target "${ZC_TRIAL_TARGET:-sm_90}" \
        --dim batch=1
done
[ "$slower$same" != 00 ] || exit 0

measure() {
    "$zc" bench "$out/$1.plan" --device cuda --seconds 0.5 "$2" "$out/times" >"$out/said" 2>&1
}
measure good --save
"$zc" bench "$out/good.plan" "$out/slow.plan" --device cuda --seconds 1 --max-slowdown 900%

# tries PLAN TIMES: counts the tries that end with 3, and how many of them name the step.
tries() {
    blamed=0
    named=0
    for _ in $(seq "$2"); do
        code=0
        measure "$1" --baseline || code=$?
        case $code in
        0) ;;
        3)
            blamed=$((blamed + 1))
            ! grep -q 'node_softmax: step .* became slower' "$out/said" || named=$((named + 1))
            ;;
        *)
            cat "$out/said"
            exit 1
            ;;
        esac
    done
}
tries slow "$slower"
echo "slower by 5 %: found in $blamed of $slower, its step named in $named"
missed=$((slower - named))
tries good "$same"
echo "unchanged: blamed in $blamed of $same"
[ "$missed" -eq 0 ] && [ $((blamed * 100)) -le "$same" ]
