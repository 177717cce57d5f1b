#!/bin/sh
# usage: run.sh ZC SOURCE_DIR: the commands as a person uses them: results, messages, exit codes.
. "$(dirname "$0")/lib.sh"
plan=$dir/digits.plan

expect help 0 "usage: zc COMMAND" "$zc" help
expect version 0 "zc 0.1.0" "$zc" --version
expect no-command 1 "usage: zc COMMAND" "$zc"
expect unknown-command 1 "no command 'frobnicate'" "$zc" frobnicate
for command in compile run bench inspect conform fill; do
    expect "help-$command" 0 "usage: zc $command" "$zc" "$command" --help
    expect "bad-option-$command" 1 "Try 'zc $command --help'" "$zc" "$command" --no-such-option
    expect "no-argument-$command" 1 "zc $command" "$zc" "$command"
done

expect compile 0 "steps" "$zc" compile "$model" -o "$plan"
cp "$plan" "$dir/again.plan"
expect compile-again 0 "" "$zc" compile "$model" -o "$plan" --quiet
expect deterministic 0 "" cmp "$plan" "$dir/again.plan"
expect compile-fixed 0 "steps" "$zc" compile "$model" -o "$dir/b1.plan" --dim batch=1
expect compile-shape 0 "steps" "$zc" compile "$model" -o "$dir/b2.plan" --shape image=2x1x8x8
expect fixed-dim 0 "input image: f32[1,1,8,8]" "$zc" inspect "$dir/b1.plan"
expect fixed-shape 0 "input image: f32[2,1,8,8]" "$zc" inspect "$dir/b2.plan"
expect bad-dim 1 "--dim: got 'batch', need NAME=VALUE" "$zc" compile "$model" -o "$dir/x.plan" --dim batch
expect bad-shape 1 "need NAME=1x3x224x224" "$zc" compile "$model" -o "$dir/x.plan" --shape image=1xtwo
expect bad-target 1 "tpu: is no target" "$zc" compile "$model" -o "$dir/x.plan" --target tpu
expect bad-pass 1 "no_such_pass: no such pass" "$zc" compile "$model" -o "$dir/x.plan" --skip-pass no_such_pass
expect absent-model 2 "absent.onnx" "$zc" compile "$dir/absent.onnx" -o "$dir/x.plan"
expect no-output 1 "needs --output PLAN" "$zc" compile "$model"
cp "$model" "$dir/self.onnx"
expect output-is-input 1 "the output is the model itself" "$zc" compile "$dir/self.onnx" -o "$dir/self.onnx"
expect input-kept 0 "" cmp "$model" "$dir/self.onnx"
echo precious >"$dir/kept"
expect refused-model 2 "zc: error:" "$zc" compile "$labels" -o "$dir/kept"
expect old-output-kept 0 "precious" cat "$dir/kept"
expect plan-as-model 2 "zc run" "$zc" compile "$plan" -o "$dir/x.plan"
expect nothing-left-over 2 "No such file" ls "$dir/x.plan"

for digit in 2 5 7; do
    expect "digit-$digit" 0 "%  $digit" "$zc" run "$plan" --input image="$src/models/digits/sample_$digit.npy" \
        --labels "$labels" --top 1
done
sed 's/$/\r/' "$labels" >"$dir/crlf.txt"
run_seven() { # ARGUMENT...: the output ends lines visibly
    "$zc" run "$plan" --input image="$src/models/digits/sample_7.npy" --top 1 "$@" 2>&1 | sed -n l
}
expect labels-crlf 0 '%  7$' run_seven --labels "$dir/crlf.txt"
expect labels-fit 0 "0" sh -c '"$@" 2>&1 | grep -c labels; true' sh \
    "$zc" run "$plan" --input image="$src/models/digits/sample_7.npy" --labels "$labels"
printf 'zero\n\ntwo\n3\n4\n5\n6\nseven' >"$dir/short.txt"
expect labels-blank-line 0 '%  seven$' run_seven --labels "$dir/short.txt"
expect labels-short 0 "zc: note: there are 8 labels for 10 classes" run_seven --labels "$dir/short.txt"
printf 'form nan\nopset 17\nin x 1 4\nout y 1 4\nnode Sub x,x z\nnode Div z,z y\n' >"$dir/nan.txt"
"$3" "$dir/nan.txt" "$dir" >/dev/null
"$zc" compile "$dir/nan.onnx" -o "$dir/nan.plan" -q
expect all-nan 0 "y: f32[4]  NaN 4 of 4" "$zc" run "$dir/nan.plan" --random
expect all-nan-json 0 '"data": [null, null, null, null]' "$zc" run "$dir/nan.plan" --random --json
expect run-random 0 "probabilities: f32[3,10]" "$zc" run "$plan" --random --dim batch=3
expect run-reference 0 "probabilities: f32[1,10]" "$zc" run "$plan" --random --reference
expect run-saves 0 "ran in" "$zc" run "$plan" --random --output-dir "$dir/results"
expect saved-npy 0 "NUMPY" head -c 6 "$dir/results/output_0.npy"
expect run-saves-pb 0 "ran in" "$zc" run "$plan" --random --output-dir "$dir/results" --format pb
expect saved-pb 0 "probabilities" cat "$dir/results/output_0.pb"
set -- --inputs "$src/models/digits/test_data_set_0" --expect "$src/models/digits/test_data_set_0"
expect expected 0 "ran in" "$zc" run "$plan" "$@" --atol 1e-5
"$zc" compile "$model" -o "$dir/bf16.plan" --precision bf16 -q
expect expected-bf16 0 "ran in" "$zc" run "$dir/bf16.plan" "$@" --rtol 0.05 --atol 1e-2
expect differs 3 "probabilities: 40 of 40 elements differ, worst at [" \
    "$zc" run "$plan" --random --dim batch=4 --expect "$src/models/digits/test_data_set_0" --rtol 0 --atol 0
expect differs-type 3 "probabilities: wrong type (got f32[2,10], need f32[4,10])" \
    "$zc" run "$plan" --random --dim batch=2 --expect "$src/models/digits/test_data_set_0"
expect expected-absent 2 "output_0.pb: cannot open" "$zc" run "$plan" --random --expect "$dir/case-none"
cp -r "$src/models/digits/test_data_set_0" "$dir/own"
expect expected-folder 1 "results would take the place of what --expect names" \
    "$zc" run "$plan" --random --expect "$dir/own" --output-dir "$dir/own/."
"$zc" run "$plan" --random --output-dir "$dir/own" --format npz >/dev/null 2>&1
expect expected-npz 1 "results would take the place of what --expect names" \
    "$zc" run "$plan" --random --seed 2 --expect "$dir/own/outputs.npz" --output-dir "$dir/own" --format npz
expect rtol-alone 1 "--rtol does nothing without --expect DIR" "$zc" run "$plan" --random --rtol 1
touch "$dir/file"
expect output-dir-first 2 "file: cannot be written to (Not a directory)" "$zc" run "$plan" --random --output-dir "$dir/file"
expect output-dir-no-run 0 "0" sh -c '"$@" 2>&1 | grep -c probabilities; true' sh \
    "$zc" run "$plan" --random --output-dir "$dir/file"
expect no-input 1 "image: has no value" "$zc" run "$plan"
expect unknown-input 1 "picture: the plan has no input of this name" "$zc" run "$plan" --input picture=x.npy
expect absent-input 2 "absent.npy" "$zc" run "$plan" --input image="$dir/absent.npy"
expect wrong-file 2 "zc: error:" "$zc" run "$plan" --input image="$labels"
expect wrong-shape 2 "image: wrong size of dimension 0 (got 1, need 2)" \
    "$zc" run "$dir/b2.plan" --input image="$src/models/digits/sample_7.npy"
expect model-as-plan 2 "not a zc plan" "$zc" run "$model" --random
expect cuda 5 "the plan was compiled for the CPU alone" "$zc" run "$plan" --random --device cuda:0
expect bad-device 1 "--device: got 'abacus', need cpu" "$zc" run "$plan" --random --device abacus
expect bad-threads 1 "--threads: got '0', need a whole number from 1 to 1024" "$zc" run "$plan" --random --threads 0
head -c 3000 "$plan" >"$dir/short.plan"
expect short-plan 2 "truncated plan: 3000 of" "$zc" run "$dir/short.plan" --random
printf 'X' | dd of="$dir/again.plan" bs=1 seek=5000 conv=notrunc 2>/dev/null
expect damaged-plan 2 "corrupt plan" "$zc" run "$dir/again.plan" --random
expect control-characters 1 '\x1B[2J' "$zc" run "$plan" --input "$(printf 'a\033[2J')=x.npy"
[ -e /dev/full ] && expect full-disk 2 "standard output" sh -c "'$zc' inspect '$plan' >/dev/full"

expect inspect-model 0 'graph "' "$zc" inspect "$model"
expect inspect-optimised 0 "ConvNhwc" "$zc" inspect "$model" --stage optimised
expect inspect-skip 0 "= Conv(" "$zc" inspect "$model" --stage optimised --skip-pass all
expect inspect-dot 0 "digraph model {" "$zc" inspect "$model" --dot
expect inspect-json 0 '"target": "cpu"' "$zc" inspect "$plan" --json
expect inspect-passes 0 "opt_fold" "$zc" inspect --passes
expect bench 0 "runs: median" "$zc" bench "$plan" --seconds 0.1 --threads 1
expect bench-json 0 '"median_ms"' "$zc" bench "$plan" --seconds 0.1 --json
expect bench-steps-cpu 0 "us in all steps" "$zc" bench "$plan" --seconds 0.1 --steps
mkdir "$dir/case"
cp "$model" "$dir/case/model.onnx"
cp -r "$src/models/digits/test_data_set_0" "$dir/case"
expect conform 0 "1 passed, 0 failed, 0 skipped" "$zc" conform "$dir/case" --rtol 1e-3 --atol 1e-5
expect conform-json 0 '"passed": 1' "$zc" conform "$dir/case" --atol 1e-5 --json
cp "$dir/case/test_data_set_0/input_0.pb" "$dir/case/test_data_set_0/output_0.pb"
expect conform-fails 3 "0 passed, 1 failed" "$zc" conform "$dir/case"
expect conform-digits 0 "1 passed, 0 failed" "$zc" conform "$src/models/digits" --atol 1e-5
expect conform-empty 1 "no tests found" "$zc" conform "$dir/results"
expect fill 0 "tensors filled" "$zc" fill "$src/models/bench/resnet50.dynamo.onnx" -o "$dir/filled" --seed 1
expect filled-compiles 0 "steps" "$zc" compile "$dir/filled/model.onnx" -o "$dir/filled.plan"
expect weightless 2 "zc: error:" "$zc" compile "$src/models/bench/resnet50.dynamo.onnx" -o "$dir/x.plan"

finish
