#!/bin/sh
# usage: precision_auto.sh ZC SOURCE_DIR: types chosen by part under a bound, on the bundled digit classifier.
. "$(dirname "$0")/lib.sh"
plan=$dir/auto.plan

# auto E OPTIONS...: chooses on the bundled test data.
auto() {
    bound=$1
    shift
    "$zc" compile "$model" -o "$plan" --precision auto --max-error "$bound" \
        --calibration "$src/models/digits/test_data_set_0" "$@"
}

# results PLAN DIGIT: the class probabilities, one a line.
results() {
    "$zc" run "$1" --input image="$src/models/digits/sample_$2.npy" --output-dir "$dir/y" >"$dir/log" 2>&1 &&
        tail -c 40 "$dir/y/output_0.npy" | od -An -v -tf4 -w4
}

# keeps E DIGIT: on an image that was not measured, the error relative to the largest value is at most E.
keeps() {
    results "$dir/f32.plan" "$2" >"$dir/want" && results "$plan" "$2" >"$dir/have" &&
        paste "$dir/want" "$dir/have" | awk -v bound="$1" '
            function abs(x) { return x < 0 ? -x : x }
            { n++; if (abs($1) > most) most = abs($1); if (abs($1 - $2) > worst) worst = abs($1 - $2) }
            END { print n " values, worst error " worst / most; exit !(n == 10 && worst <= bound * most) }'
}

expect f32 0 "steps" "$zc" compile "$model" -o "$dir/f32.plan"
for bound in 1e-2 3e-3 1e-3; do
    expect "choose-$bound" 0 "relative to the largest magnitude of each output" auto $bound --allow f16,bf16 --verbose
    for digit in 2 5 7; do
        expect "keeps-$bound-$digit" 0 "10 values" keeps $bound $digit
    done
done
expect loose-is-narrow 0 "f16 Conv 'node_Conv_45'" auto 1e-2 --allow f16 --verbose
expect tight-is-raised 0 "f32 Conv 'node_Conv_45', Relu 'node_relu': raised from f16" auto 1e-4 --allow f16 --verbose
expect sensitive 0 "f32 Softmax 'node_softmax': from the start: softmax" auto 1e-2 --allow f16 --verbose
expect logits 0 "f32 Linear 'node_linear': from the start: makes an output" auto 1e-2 --allow f16 --verbose

# Integers: the convolutions whose sums are long enough, bytes from one to the next.
class() { results "$1" "$2" | awk '{ if (NR == 1 || $1 > most) { most = $1; class = NR - 1 } } END { print "class " class }'; }
expect int8 0 "int8 Conv 'node_Conv_49'" auto 5e-2 --allow int8 --verbose
expect int8-needs-depth 0 "f32 Conv 'node_Conv_45', Relu 'node_relu': no allowed type is faster here" \
    auto 5e-2 --allow int8 --verbose
expect int8-steps 0 "" sh -c 'test "$("$1" inspect "$2" | grep -c "= QLinearConv(")" = 2' sh "$zc" "$plan"
cp "$plan" "$dir/int8.plan"
for digit in 2 5 7; do
    expect "int8-keeps-$digit" 0 "10 values" keeps 5e-2 $digit
    expect "int8-class-$digit" 0 "class $digit" class "$plan" $digit
done
expect int8-again 0 "" auto 5e-2 --allow int8
expect int8-deterministic 0 "" cmp "$plan" "$dir/int8.plan"
expect int8-is-raised 0 "f32 Conv 'node_Conv_47', Relu 'node_relu_1', MaxPool 'node_max_pool2d': raised from int8" \
    auto 1e-4 --allow int8 --verbose
expect int8-front 0 "" auto 5e-2 --allow int8 --pareto "$dir/front"
expect int8-front-is-faster 0 "" awk -F '\t' '$4 == 0 { exact = $1 } $4 == 2 { integers = $1 }
    END { exit !(integers + 0 > 0 && integers + 0 < exact + 0) }' "$dir/front"

# Codes of weights alone, without calibration. Floats of their numbers on the CPU.
weights() { "$zc" compile "$model" -o "$plan" --precision auto "$@"; }
expect w8 0 "w8 Conv 'node_Conv_49'" weights --max-error 5e-2 --allow w8 --verbose
for digit in 2 5 7; do
    expect "w8-keeps-$digit" 0 "10 values" keeps 5e-2 $digit
done
expect fp4 0 "fp4 Linear 'node_linear': weights in groups of 32, e2m1 by powers of two" weights --max-error 5e-1 --allow fp4 --verbose
expect w8-logits 0 "w8 Linear 'node_linear': weights in groups of 128, " weights --max-error 5e-2 --allow w8 --verbose
expect int4-raised 0 "w8 Conv 'node_Conv_45', Relu 'node_relu': weights in groups of 9, symmetric, raised from int4" \
    auto 5e-1 --allow int4,w8 --verbose
cp "$plan" "$dir/int4.plan"
expect int4-again 0 "" auto 5e-1 --allow int4,w8
expect int4-deterministic 0 "" cmp "$plan" "$dir/int4.plan"
expect int4-group 1 "net.features.0.weight' are not in groups of 32 (got sums of 9)" \
    weights --max-error 5e-1 --allow int4 --weight-group 32
expect int4-no-group 1 "weight_group: got 48, need 32, 64, 128, or 0" weights --max-error 5e-1 --allow int4 --weight-group 48
expect sparsify-nothing 0 "f16 Conv 'node_Conv_49'" auto 5e-2 --allow f16 --sparsify 2:4 --verbose
expect sparsify-form 1 "--sparsify: got '3:4', need 2:4" auto 5e-2 --sparsify 3:4
expect sparsify-alone 1 "--sparsify needs a bound of the error: --precision auto and --max-error E" \
    "$zc" compile "$model" -o "$plan" --sparsify 2:4
expect sparsify-f16 1 "--max-error does nothing without --precision auto" \
    "$zc" compile "$model" -o "$plan" --sparsify 2:4 --precision f16 --max-error 1e-2
expect group-alone 1 "--weight-group does nothing without --allow int4 or w8" \
    weights --max-error 5e-1 --allow f16 --weight-group 32

# On Hopper convolutions of bytes are slower than those of f16.
hopper() { "$zc" compile "$model" --explain --precision auto --target sm_90 --calibration "$src/models/digits" "$@"; }
expect int8-hopper 0 "f16 Conv 'node_Conv_49', Relu 'node_relu_2', AveragePool 'node_avg_pool2d', Reshape 'node_view':" \
    hopper --max-error 5e-2 --allow int8,f16
expect int8-hopper-why 0 "alone, no slower than int8" hopper --max-error 5e-2 --allow int8,f16
expect int8-hopper-none 1 "" sh -c '"$@" | grep "^ *int8 "' sh "$zc" compile "$model" --explain --precision auto --target sm_90 \
    --calibration "$src/models/digits" --max-error 5e-2 --allow int8,f16
expect int8-hopper-alone 0 "int8 Conv 'node_Conv_49'" hopper --max-error 5e-2 --allow int8

# The ranges of a calibration file; errors are measured on the folder.
data=$src/models/digits
for method in minmax percentile entropy mse; do
    expect "calibrate-$method" 0 "activations" "$zc" calibrate "$model" --inputs "$data" --method $method -o "$dir/$method.cal"
    expect "calibrated-$method" 0 "ranges of int8 and fp8 by calibration: $method, 1 runs" \
        auto 1e-1 --allow int8 --calibration "$dir/$method.cal" --verbose
    expect "calibrated-$method-int8" 0 "int8 Conv 'node_Conv_49'" "$zc" inspect "$plan"
    for digit in 2 5 7; do
        expect "calibrated-$method-class-$digit" 0 "class $digit" class "$plan" $digit
    done
done
expect calibrated-alone 0 "by calibration: mse" "$zc" compile "$model" -o "$plan" --precision auto --max-error 5e-1 --allow int8 \
    --calibration "$dir/mse.cal" --verbose
sed '2s/	[0-9a-f]\{64\}	/	0000000000000000000000000000000000000000000000000000000000000000	/' "$dir/mse.cal" >"$dir/other.cal"
grep -v '^activation	relu_1	' "$dir/mse.cal" >"$dir/fewer.cal"
sed 's/^\(activation	image	256	0	\)0	/\1nan	/' "$dir/mse.cal" >"$dir/nan.cal"
sed 's/^\(weight	net.features.7.weight	0	[0-9.]*\) .*/\1/' "$dir/mse.cal" >"$dir/short.cal"
calibrated() { auto 1e-1 --allow int8 --calibration "$1" --quiet; }
expect calibrated-again 0 "" calibrated "$dir/mse.cal"
cp "$plan" "$dir/before.plan"
expect calibrated-other 2 "other.cal: is of another model (got 0000" calibrated "$dir/other.cal"
expect calibrated-missing 2 "fewer.cal: relu_1: is missing" calibrated "$dir/fewer.cal"
expect calibrated-nan 2 "image: line 7: the range is none" calibrated "$dir/nan.cal"
expect calibrated-short 2 "net.features.7.weight: the calibration has 1 channels of it (need 64)" calibrated "$dir/short.cal"
expect calibrated-none 2 "is no calibration" calibrated "$labels"
expect calibrated-two 1 "--calibration takes one file" auto 1e-1 --allow int8 --calibration "$dir/mse.cal" --calibration "$dir/minmax.cal"
expect calibrated-stays 0 "" cmp "$plan" "$dir/before.plan"

# What was found is in the plan.
expect mixed 0 "" auto 1.2e-3 --allow f16,bf16
expect kept 0 "% of the error" "$zc" inspect "$plan"
check_json kept-json "assert j['precision'][0].startswith('error '), j['precision'][0]
assert len(j['precision']) == 6, j['precision']" "$zc" inspect "$plan" --json
expect none-without 0 "" sh -c '! "$1" inspect "$2" | grep "of the error"' sh "$zc" "$dir/f32.plan"
cp "$plan" "$dir/first.plan"
expect again 0 "" auto 1.2e-3 --allow f16,bf16
expect deterministic 0 "" cmp "$plan" "$dir/first.plan"
expect explain 0 "from the start: softmax" "$zc" compile "$model" --explain --precision auto --max-error 1e-2
check_json explain-json "assert len(j['precision']) == 6, j['precision']" \
    "$zc" compile "$model" --explain --json --precision auto --max-error 1e-2
expect cpu-keeps-f32 0 "no type is known to be faster on the CPU" auto 1e-2 --verbose
expect random-inputs 0 "steps" "$zc" compile "$model" -o "$plan" --precision auto --max-error 1e-2 --allow f16
expect folders 0 "steps" "$zc" compile "$model" -o "$plan" --precision auto --max-error 1e-2 --allow f16 \
    --calibration "$src/models/digits"

expect front 0 "" auto 1e-3 --allow f16 --pareto "$dir/front"
expect front-is-one 0 "" awk -F '\t' '
    NR == 1 { if ($1 != "microseconds" || $3 != "error") exit 1; next }
    $2 + 0 < bytes + 0 || (NR > 2 && $3 + 0 >= error + 0) { bad = 1 }
    { bytes = $2; error = $3; n++ }
    END { exit bad || n < 3 }' "$dir/front"

# What cannot be, and the plan that was there stays.
cp "$plan" "$dir/before.plan"
expect impossible 3 "probabilities: the bound cannot be kept: f32 itself differs from the reference by" auto 1e-12 --allow f16
for bound in 0 -1 nan inf x ''; do
    expect "bound-$bound" 1 "--max-error: got '$bound', need a number more than 0" auto "$bound"
done
expect no-bound 1 "--precision auto does nothing without --max-error" "$zc" compile "$model" -o "$plan" --precision auto
expect unknown-type 1 "--allow: got 'f8', need one of: f32 tf32 f16 bf16 int8 fp8 int4 fp4 w8" auto 1e-2 --allow f16,f8
expect bound-without-auto 1 "--max-error does nothing without --precision auto" "$zc" compile "$model" -o "$plan" --max-error 1e-2
expect allow-without-auto 1 "--allow does nothing without --precision auto" "$zc" compile "$model" -o "$plan" --allow f16
expect fp8-needs-samples 1 "--allow fp8 does nothing without --calibration" "$zc" compile "$model" -o "$plan" \
    --precision auto --max-error 1e-2 --allow fp8
expect int8-needs-samples 1 "--allow int8 does nothing without --calibration" "$zc" compile "$model" -o "$plan" \
    --precision auto --max-error 1e-2 --allow int8
expect no-folder 2 "cannot open" "$zc" compile "$model" -o "$plan" --precision auto --max-error 1e-2 \
    --calibration "$dir/none"
mkdir "$dir/empty"
expect empty-folder 2 "holds no inputs" "$zc" compile "$model" -o "$plan" --precision auto --max-error 1e-2 \
    --calibration "$dir/empty"
expect plan-stays 0 "" cmp "$plan" "$dir/before.plan"
no_temporaries no-rest "$dir"
finish
