#!/bin/sh
# usage: precision.sh ZC SOURCE_DIR: plans in f16 and bf16 against f32, on the bundled digit classifier.
. "$(dirname "$0")/lib.sh"

# results PRECISION DIGIT: the class probabilities, one a line.
results() {
    "$zc" run "$dir/$1.plan" --input image="$src/models/digits/sample_$2.npy" --output-dir "$dir/$1" >"$dir/log" 2>&1 &&
        tail -c 40 "$dir/$1/output_0.npy" | od -An -v -tf4 -w4
}

# close PRECISION DIGIT: the difference from f32 is at most 2e-2 of the largest value, and not 0.
close() {
    results f32 "$2" >"$dir/want" && results "$1" "$2" >"$dir/have" &&
        paste "$dir/want" "$dir/have" | awk '
            function abs(x) { return x < 0 ? -x : x }
            { n++; if (abs($1) > most) most = abs($1); if (abs($1 - $2) > worst) worst = abs($1 - $2) }
            END { print n " values, worst difference " worst; exit !(n == 10 && worst > 0 && worst <= 0.02 * most) }'
}

expect compile-f32 0 "steps" "$zc" compile "$model" -o "$dir/f32.plan" --precision f32
expect compile-default 0 "steps" "$zc" compile "$model" -o "$dir/default.plan"
expect default-is-f32 0 "" cmp "$dir/default.plan" "$dir/f32.plan"
expect compile-tf32 0 "steps" "$zc" compile "$model" -o "$dir/tf32.plan" --precision tf32
expect tf32-is-f32-on-the-cpu 0 "" cmp "$dir/tf32.plan" "$dir/f32.plan"
for precision in f16 bf16; do
    plan=$dir/$precision.plan
    expect "compile-$precision" 0 "steps" "$zc" compile "$model" -o "$plan" --precision $precision
    expect "deterministic-$precision" 0 "" "$zc" compile "$model" -o "$dir/again.plan" --precision $precision
    expect "same-$precision" 0 "" cmp "$plan" "$dir/again.plan"
    expect "interface-$precision" 0 "output probabilities: f32[batch,10]" "$zc" inspect "$plan"
    expect "graph-$precision" 0 ": $precision[" "$zc" inspect "$model" --stage optimised --precision $precision
    for digit in 2 5 7; do
        expect "close-$precision-$digit" 0 "10 values" close $precision $digit
        expect "digit-$precision-$digit" 0 "%  $digit" "$zc" run "$plan" --labels "$labels" --top 1 \
            --input image="$src/models/digits/sample_$digit.npy"
    done
done
expect bad-precision 1 "--precision: got 'f8', need one of: f32 tf32 f16 bf16" \
    "$zc" compile "$model" -o "$dir/x.plan" --precision f8
expect precision-of-plan 1 "--precision is of models" "$zc" inspect "$dir/f16.plan" --precision f16
finish
