#!/bin/sh
# usage: manual.sh ZC SOURCE_DIR MANUAL FAKE_DRIVER_DIR: the tutorial of docs/rules.md, every file of it compiled into a
# model that has what it matches, and run on the CPU and on the fake GPU; the results are those without the rule.
. "$(dirname "$0")/../cli/lib.sh"
manual=$(realpath "$3")
fake=$4
cd "$dir"
export ZC_CACHE_DIR="$dir/cache"
unset XDG_CACHE_HOME LD_LIBRARY_PATH
on() {
    env LD_LIBRARY_PATH="$fake" "$@"
}
awk '/^```zcr/ { file = "tutorial" ++n ".zcr"; next } /^```cuda / { file = $2; next } /^```/ { file = "" }
    file { print > file }' "$src/docs/rules.md"
expect model 0 "" "$manual" write model.onnx
expect plain 0 "" "$zc" compile model.onnx -o plain.plan --quiet --skip-pass all
expect plain-run 0 "on cpu" "$zc" run plain.plan --random --dim n=7 --device cpu --output-dir plain

same() { # NAME DIR: all results
    label=$1
    for result in plain/*; do
        expect "$label-${result##*/}" 0 "" "$manual" near "$result" "$2/${result##*/}"
    done
}
for pair in 1:quick_gelu 2:linear_relu 3:qkv 4:scale_shift 5:biases 6:fades 7:relu_behind_concat 8:concat_of_concat; do
    zcr=tutorial${pair%%:*}.zcr
    rule=${pair##*:}
    expect "$rule-test" 0 "ok   " "$zc" rules test "$zcr"
    expect "$rule-cpu" 0 "" "$zc" compile model.onnx -o cpu.plan --rules "$zcr" --quiet
    expect "$rule-applies" 0 "rule $rule ($zcr:" "$zc" inspect cpu.plan --json
    expect "$rule-cpu-run" 0 "on cpu" "$zc" run cpu.plan --random --dim n=7 --output-dir "cpu-$rule"
    same "$rule-cpu" "cpu-$rule"
    expect "$rule-gpu" 0 "" on "$zc" compile model.onnx -o gpu.plan --rules "$zcr" --target sm_90 --quiet
    expect "$rule-gpu-run" 0 "on hostcuda" on "$zc" run gpu.plan --random --dim n=7 --device cuda --output-dir "gpu-$rule"
    same "$rule-gpu" "gpu-$rule"
    expect "$rule-gpu-plan-on-cpu" 0 "on cpu" "$zc" run gpu.plan --random --dim n=7 --device cpu --output-dir "both-$rule"
    same "$rule-both" "both-$rule"
done

# ---- the chain ----
sed 's/rank(b) == 1/rank(b) == 9/' tutorial5.zcr >nine.zcr
expect chain-explain 0 "at Add_14: 3 of 3 operations matched, at node Add_14: the condition in line 3" \
    "$zc" rules explain nine.zcr model.onnx

# ---- the kernel ----
expect kernel-plan 0 "" on "$zc" compile model.onnx -o gpu.plan --rules tutorial4.zcr --target sm_90 --quiet
expect kernel-step 0 "by zc_ScaleShift_" "$zc" inspect gpu.plan
expect kernel-first 0 "with BLOCK=128 V=4" "$zc" inspect gpu.plan
expect kernel-device 0 "ok   " on "$zc" rules test tutorial4.zcr --device cuda
expect kernel-no-gpu 5 "no CUDA driver" "$zc" rules test tutorial4.zcr --device cuda
mkdir -p nvrtc && ln -sf "$fake"/libnvrtc.so* nvrtc/
expect kernel-not-run 0 "the kernels of rule 'scale_shift' (line 12) were not run: no GPU" \
    env LD_LIBRARY_PATH="$dir/nvrtc" CUDA_VISIBLE_DEVICES= "$zc" compile model.onnx -o unrun.plan --rules tutorial4.zcr --target sm_90
expect kernel-empty 0 "on hostcuda" on "$zc" run gpu.plan --random --dim n=0 --device cuda
expect kernel-other-gpu 0 "were compiled now" on ZC_HOSTCUDA_CC=80 "$zc" run gpu.plan --random --dim n=7 --device cuda

variant() { # NAME SED: tutorial4.zcr changed
    sed "$2" tutorial4.zcr >"$1.zcr"
}
refused() { # NAME CODE TEXT SED: the check on the device says TEXT
    variant "$1" "$4"
    expect "$1" "$2" "$3" on "$zc" rules test "$1.zcr" --device cuda
}
sed 's/ + zc_get(b\[i % row\])//' scale_shift.cu >wrong.cu
refused wrong-kernel 3 "the kernel gives" 's/scale_shift.cu/wrong.cu/'
expect wrong-kernel-cpu 0 "ok   " "$zc" rules test wrong-kernel.zcr
expect wrong-kernel-compile 3 "is refused: element" \
    on "$zc" compile model.onnx -o wrong.plan --rules wrong-kernel.zcr --target sm_90
expect wrong-kernel-no-plan 1 "" test -e wrong.plan
sed 's/priority 1 {/priority 1 unchecked "a test" {/' wrong-kernel.zcr >unchecked-kernel.zcr
expect wrong-kernel-unchecked 0 "" \
    on "$zc" compile model.onnx -o forced.plan --rules unchecked-kernel.zcr --target sm_90 --quiet
refused wrong-meaning 3 "match gives" 's/x \* g + b;/x * g - b;/'
refused entry-absent 2 "entry-absent.zcr:3:3: error: the source has no function 'scale_shaft'" 's/"scale_shift"/"scale_shaft"/'
refused grid-zero 2 "kernel ScaleShift (grid-zero.zcr:1): bad grid (got 0, need 1 to 2147483647)" 's/  grid .*/  grid 0 * size(x);/'
refused grid-large 2 "bad grid (got 1 and 65536 in y and z, need at most 65535)" 's/  grid .*/  grid 1, 1, 65536;/'
refused grid-overflow 2 "grid cannot be computed for these shapes" 's/  grid .*/  grid (size(x) + 1) * 9223372036854775807;/'
refused grid-no-dimension 2 "grid cannot be computed for these shapes" 's/  grid .*/  grid dim(x, 5);/'
refused block-large 2 "block-large.zcr:7:9: error: block is 2048 with BLOCK=128 V=4 (need 1 to 1024)" 's/  block .*/  block 2048;/'
refused shared-large 2 "bad amount of shared memory (got 999999, need 0 to" 's/  block .*/  block BLOCK; shared 999999;/'
refused file-absent 2 "file-absent.zcr:2:3: error: none.cu: cannot open (No such file or directory)" 's/scale_shift.cu/none.cu/'
refused file-above 2 "must lie in the rule file's folder or below it" 's/scale_shift.cu/..\/scale_shift.cu/'
refused file-absolute 2 "must lie in the rule file's folder or below it" "s,scale_shift.cu,$dir/scale_shift.cu,"
printf 'a\000b' >nul.cu
refused file-nul 2 "nul.cu: a NUL byte" 's/scale_shift.cu/nul.cu/'
head -c 1048577 /dev/zero | tr '\000' ' ' >large.cu
refused file-large 2 "large.cu" 's/scale_shift.cu/large.cu/'
variant body 's/  meaning .*/  meaning { t = Mul(x, g); y = Add(t, b); }/'
expect body 0 "ok   " on "$zc" rules test body.zcr --device cuda
expect body-cpu 0 "" "$zc" compile model.onnx -o body.plan --rules body.zcr --quiet
expect body-run 0 "on cpu" "$zc" run body.plan --random --dim n=7 --output-dir body
same body body

# ---- tuning ----
tune() { # NAME CODE TEXT SED: scale_shift.cu changed, and tuned
    sed "$4" scale_shift.cu >"$1.cu"
    variant "$1" "s/scale_shift.cu/$1.cu/"
    expect "$1" "$2" "$3" on "$zc" compile model.onnx -o tuned.plan --rules "$1.zcr" --target sm_90 --tune
}
tune tune 0 "of 4 that were measured" ''
expect tune-run 0 "on hostcuda" on "$zc" run tuned.plan --random --dim n=7 --device cuda --output-dir tuned
same tuned tuned
tune tune-wrong 0 "BLOCK=256 V=1 is refused: element" 's/v < V/v < V - (V == 1 \&\& BLOCK == 256)/'
expect tune-wrong-left 0 "of 3 that were measured" on "$zc" compile model.onnx -o tuned.plan --rules tune-wrong.zcr \
    --target sm_90 --tune
tune tune-one 0 "BLOCK=128 V=4 at Add_7" 's/v < V/v < V * (V == 4 \&\& BLOCK == 128)/'
expect tune-written 0 "with BLOCK=128 V=4" "$zc" inspect tuned.plan
tune tune-first-wrong 3 "is refused: element" 's/v < V/v < V - (V == 4)/'
tune tune-broken 0 "BLOCK=128 V=1 is refused: " 's/^{$/{\n#if V == 1\n#error no\n#endif/'
expect tune-dim 0 "of 4 that were measured" on "$zc" compile model.onnx -o tuned.plan --rules tutorial4.zcr --target sm_90 \
    --tune --profile n=8,32
expect tune-no-gpu 5 "no CUDA driver" "$zc" compile model.onnx -o tuned.plan --rules tutorial4.zcr --target sm_90 --tune
expect tune-cpu 1 "--tune does nothing without --target of a GPU" "$zc" compile model.onnx -o tuned.plan --rules tutorial4.zcr --tune
sed 's/BLOCK in {128, 256}/BLOCK in {32, 64, 96, 128, 160, 192, 224, 256, 288, 320, 352, 384, 416, 448, 480, 512, 544}/
    s/V in {4, 1}/V in {4, 1, 2, 3}/' tutorial4.zcr >many.zcr
expect tune-many 2 "too many combinations to measure (got 68, need at most 64)" \
    on "$zc" compile model.onnx -o tuned.plan --rules many.zcr --target sm_90 --tune

# ---- shared memory, several results ----
cp "$src/tests/rules/rows.cu" "$src/tests/rules/rows.zcr" .
expect rows 0 "ok   " on "$zc" rules test rows.zcr --device cuda
sed 's/a != a/false/' rows.cu >nan.cu
sed 's/rows.cu/nan.cu/' rows.zcr >nan.zcr
expect rows-nan 3 "NaN and infinite values" on "$zc" rules test nan.zcr --device cuda
sed 's/m = ReduceMax/s = ReduceMax/' rows.zcr >twice.zcr
expect rows-meaning 2 "the meaning does not define 'm'" "$zc" rules check twice.zcr
# A kernel of sums and expf, whose meaning is an operation: some units off are allowed, more are not, and floats do not do for f64.
sed 's/{100000}/{10}/' "$src/bench/baseline/spin.zcr" >spin.zcr
cp "$src/bench/baseline/spin.cu" .
expect softmax 0 "ok   " on "$zc" rules test spin.zcr --device cuda
sed 's/) \/ sum)/) \/ (sum * 1.0001f))/' spin.cu >off.cu
sed 's/spin.cu/off.cu/' spin.zcr >off.zcr
expect softmax-off 3 "its meaning gives" on "$zc" rules test off.zcr --device cuda
sed 's/, dtype(x) in {f32, f16, bf16}//' spin.zcr >any.zcr
expect softmax-f64 3 "for x: f64" on "$zc" rules test any.zcr --device cuda
mkdir -p below
cp scale_shift.cu below/
cp tutorial4.zcr below/rule.zcr
expect beside 0 "ok   " "$zc" rules test below/rule.zcr
finish
