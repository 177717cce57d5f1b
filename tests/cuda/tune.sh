#!/bin/sh
# usage: tune.sh ZC SOURCE_DIR FAKE_DRIVER_DIR WRITTEN: measuring kernels on the fake GPU, whose times mean nothing: the road to the
# measurements, and compiling by them.
. "$(dirname "$0")/../cli/lib.sh"
fake=$3
written=$(realpath "$4")
cd "$dir"
export ZC_CACHE_DIR="$dir/cache"
unset XDG_CACHE_HOME LD_LIBRARY_PATH
on() {
    env LD_LIBRARY_PATH="$fake" "$@"
}
f16="--precision f16 --dim rows=64"
cat >two.form <<'FORM'
form two
opset 17
in x 1 rows,64
out y 1 *
weights w 64,64
weights v 64,128
node MatMul x,w a
node Relu a b
node MatMul b,v y
FORM
"$written" two.form . || exit 1
model=two.onnx
tune() {
    # shellcheck disable=SC2086
    on "$zc" tune "$model" $f16 "$@"
}
compile() { # PLAN OPTION...
    plan=$1
    shift
    # shellcheck disable=SC2086
    on "$zc" compile "$model" $f16 --target sm_90 --quiet -o "$plan" "$@"
}

# ---- measuring, and going on where it ended ----
expect tune 0 " (0 known, 0 left for lack of time), " tune -o a.tuned --seconds 60
expect header 0 "# zc tuned 1" head -n 1 a.tuned
expect sorted 0 "" env LC_ALL=C sort -c a.tuned
expect entries 0 "$(printf 'sm_90\thostcuda sm_90\tLinear(f16[64,64], f16[64,')" cat a.tuned
expect numbers 1 "" grep "entries=" a.tuned # of families with one configuration: there is nothing to measure
cp a.tuned before.tuned
expect resume 0 "nothing is left to measure: " tune -o a.tuned
expect resume-same 0 "" cmp a.tuned before.tuned
expect again 0 " (0 known, " tune -o a.tuned --again --seconds 1
tune -o each.tuned --alternatives 2 --seconds 60 >each.txt 2>&1
expect each 0 "gemm_few_sm90 tile_rows=" grep -E '^Linear.*: (gemm|gemv)_[a-z0-9_]+ .*: [0-9.]+ us a run$' each.txt
expect no-time 0 " left for lack of time" on "$zc" tune "$model" --precision f16 --dim rows=64 -o none.tuned --seconds 1e-6
expect no-size 0 "no kernel is measured: the shape of input x is not certain" \
    on "$zc" tune "$model" --precision f16 -o sizes.tuned
expect by-profile 0 " problems (0 known, " on "$zc" tune "$model" --precision f16 -o sizes.tuned --profile rows=64 --seconds 1
expect by-profile-entries 0 "$(printf 'sm_90\thostcuda sm_90\tLinear(f16[64,64], f16[64,')" cat sizes.tuned
expect compile-tunes 0 "measured: " sh -c \
    'LD_LIBRARY_PATH="$1" "$2" compile "$3" --precision f16 --dim rows=64 --target sm_90 --tune --tuned own.tuned -o own.plan &&
        "$2" inspect own.plan && head -n 1 own.tuned' sh "$fake" "$zc" "$model"

# ---- an alternative that cannot be launched is left out, and the others go on ----
expect refused 0 " is refused: MatMul_0: CUDA_ERROR_INVALID_VALUE" on ZC_HOSTCUDA_FAIL=cuLaunchKernelEx:9:1 \
    "$zc" tune "$model" --precision f16 --dim rows=64 -o refused.tuned --seconds 60
expect refused-others 0 "$(printf 'sm_90\thostcuda sm_90\tLinear(f16[64,64], f16[64,64]')" cat refused.tuned

# ---- compiling by measurements: the same plan every time, and right ----
cp before.tuned a.tuned
expect tuned 0 "" compile tuned.plan --tuned a.tuned
expect tuned-again 0 "" compile again.plan --tuned a.tuned
expect deterministic 0 "" cmp tuned.plan again.plan
expect inspect 0 " us saved, hostcuda sm_90, CUDA " "$zc" inspect tuned.plan
expect by-cost 0 "" compile cost.plan --by-cost
expect not-measured 1 "" sh -c '"$1" inspect cost.plan | grep "us saved"' sh "$zc"
expect run-cost 0 "on hostcuda" on "$zc" run cost.plan --random --device cuda --output-dir results
expect run-tuned 0 "" on "$zc" run tuned.plan --random --device cuda --expect results --rtol 1e-2 --atol 1e-2

# A configuration that is not the first by cost is taken; one that no family has is not.
choose() { # NAME CONFIGURATION
    awk -F'\t' -v OFS='\t' -v config="$2" '/^sm_90/ && $4 == "gemm_few_sm90" { $5 = config } { print }' chosen.tuned >"$1.tuned"
    compile "$1.plan" --tuned "$1.tuned" && "$zc" inspect "$1.plan"
}
awk -F'\t' -v OFS='\t' '/^sm_90/ { $4 = "gemm_few_sm90" } { print }' a.tuned >chosen.tuned
expect takes 0 "{tile_rows=64, groups=1, parts=1, steps=1, stages=1, " choose takes "tile_rows=64 groups=1 parts=1 steps=1 stages=1"
expect takes-other 0 "{tile_rows=32, groups=1, parts=1, steps=1, stages=1, " \
    choose other "tile_rows=32 groups=1 parts=1 steps=1 stages=1"
expect takes-fewer-numbers 0 "{tile_rows=32, groups=1, parts=1, steps=1, stages=1, " choose fewer "tile_rows=32 groups=1 parts=1"
expect no-part-of-a-number 0 "(wgmma: " choose part "tile_rows=3"
expect unknown-config 0 "(wgmma: " choose unknown "tile_rows=63 groups=1 parts=1 steps=1 stages=1"
sed 's/gemm_few_sm90/gemm_of_another_zc/' chosen.tuned >family.tuned
expect unknown-family 0 "" compile family.plan --tuned family.tuned
expect unknown-family-by-cost 0 "(wgmma: " "$zc" inspect family.plan

# ---- another form of the same model: there is nothing to measure, and what was measured is taken ----
sed 's/^form two/form batches/; s/^in x .*/in x 1 2,rows,64/' two.form >batches.form
"$written" batches.form . || exit 1
cp before.tuned batches.tuned
expect batches 0 "nothing is left to measure: " on "$zc" tune batches.onnx --precision f16 --dim rows=32 -o batches.tuned
expect batches-same 0 "" cmp batches.tuned before.tuned
expect batches-other 0 "(0 known, " on "$zc" tune batches.onnx --precision f16 --dim rows=16 -o others.tuned --seconds 1

# ---- weights stored the other way: their own measurement is taken, else that of the other layout ----
other_problem='Linear(f16[64,64], f16[128,64]=) -> f32[64,128] {transB = 1, epilogue = "x0"}'
few='tile_rows=32 groups=1 parts=1 steps=1 stages=1'
own='tile_rows=64 groups=1 parts=1 steps=1 stages=1'
line() { # PROBLEM CONFIGURATION
    printf 'sm_90\thostcuda sm_90\t%s\tgemm_few_sm90\t%s\t1.00\t13.0\t2026-11-23\n' "$1" "$2"
}
printf '# zc tuned 1\n' >other.tuned
line "$other_problem" "$few" >>other.tuned
expect other-way 0 "" compile other.plan --tuned other.tuned
expect other-way-told 0 " us saved with weights stored the other way, hostcuda sm_90" "$zc" inspect other.plan
expect other-way-taken 0 "{tile_rows=32, groups=1, parts=1, steps=1, stages=1, " "$zc" inspect other.plan
expect other-way-right 0 "" on "$zc" run other.plan --random --device cuda --expect results --rtol 1e-2 --atol 1e-2
expect other-way-measures 0 " (0 known, " tune -o other.tuned --seconds 1e-6
line 'Linear(f16[64,64], f16[64,128]=) -> f32[64,128] {epilogue = "x0"}' "$own" >>other.tuned
expect own-way 0 "" compile own.plan --tuned other.tuned
expect own-way-taken 0 "{tile_rows=64, groups=1, parts=1, steps=1, stages=1, " "$zc" inspect own.plan
expect own-way-told 1 "" sh -c '"$1" inspect own.plan | grep "the other way"' sh "$zc"
printf '# zc tuned 1\n' >other.tuned
line "$other_problem" "tile_rows=63 groups=1 parts=1 steps=1 stages=1" >>other.tuned
expect no-other-way 0 "" compile other.plan --tuned other.tuned
expect no-other-way-by-cost 1 "" sh -c '"$1" inspect other.plan | grep "us saved"' sh "$zc"

# ---- a configuration that has not run on a GPU is taken where it was measured alone ----
cat >heads.form <<'FORM'
form heads
opset 23
in x 1 1,2,rows,32
out y 1 *
node Attention x,x,x y
FORM
"$written" heads.form . || exit 1
model=heads.onnx
heads='f16[1,2,64,32]'
printf '# zc tuned 1\nsm_90\thostcuda sm_90\tAttention(%s, %s, %s) -> %s\tattention_sm90\t%s\t1.00\t13.0\t2026-11-23\n' \
    "$heads" "$heads" "$heads" "$heads" "warpgroups=1 keys=128 stages=4 columns=32 ahead=1 share=0" >heads.tuned
expect by-cost 0 "" compile heads.plan
expect by-cost-taken 0 "{groups=" "$zc" inspect heads.plan
expect measured 0 "" compile measured.plan --tuned heads.tuned
expect measured-taken 0 "{warpgroups=1, keys=128, stages=4, columns=32, ahead=1, " "$zc" inspect measured.plan
expect by-cost-run 0 "on hostcuda" on "$zc" run heads.plan --random --device cuda --output-dir heads
expect measured-right 0 "" on "$zc" run measured.plan --random --device cuda --expect heads --rtol 1e-2 --atol 1e-2
model=two.onnx

# ---- merging ----
sed 's/hostcuda sm_90/another GPU/' a.tuned >b.tuned
expect merge 0 "c.tuned: " "$zc" tune --merge a.tuned b.tuned -o c.tuned
expect merge-back 0 "" "$zc" tune --merge b.tuned a.tuned b.tuned -o d.tuned --quiet
expect merge-same 0 "" cmp c.tuned d.tuned
expect merge-sorted 0 "" env LC_ALL=C sort -c c.tuned
expect merge-nothing 2 "absent.tuned" "$zc" tune --merge a.tuned absent.tuned -o c.tuned
expect merge-kept 0 "" cmp c.tuned d.tuned

# ---- damaged files are refused, and stay as they are ----
damaged() { # NAME TEXT SED
    sed "$3" a.tuned >"$1.tuned"
    cp "$1.tuned" was.tuned
    expect "$1" 2 "$1.tuned: $2" compile no.plan --tuned "$1.tuned"
    expect "$1-tune" 2 "$1.tuned: $2" tune -o "$1.tuned"
    expect "$1-kept" 0 "" cmp "$1.tuned" was.tuned
}
damaged version "holds no measurements, or those of another zc" '1s/1/2/'
damaged field "line 2: fields with tabs between (got 7, need 8)" '2s/	[^	]*$//'
damaged number "line 2: no number of microseconds (got 'fast')" '2s/	[-0-9.]*	\([^	]*	[^	]*\)$/	fast	\1/'
damaged day "line 2: no day (got 'today'" '2s/[^	]*$/today/'
damaged arch "line 2: no architecture (got 'sm_x'" '2s/^sm_90/sm_x/'
expect no-plan 1 "" test -e no.plan
expect absent 2 "absent.tuned" compile no.plan --tuned absent.tuned
expect no-gpu 5 "no GPU" on ZC_HOSTCUDA_DEVICES=0 "$zc" tune "$model" -o a.tuned
expect lost 5 "CUDA_ERROR" on ZC_HOSTCUDA_FAIL=cuGraphLaunch:9:700 "$zc" tune "$model" --precision f16 --dim rows=64 -o lost.tuned
expect lost-nothing 1 "" test -e lost.tuned

# ---- a kernel that takes the device with it is named, and what was measured before it is kept ----
lost() { # CALL
    on ZC_HOSTCUDA_FAIL="$1" "$zc" tune "$model" --precision f16 --dim rows=64 -o lost.tuned --seconds 60
}
expect lost-compared 5 "$(printf ' -> f16[64,64] {epilogue = "max(x0, 0)"}: while g')" lost cuLaunchKernelEx:9:719
expect lost-compared-nothing 1 "" test -e lost.tuned
for call in 60 80 100 140 200; do # how many runs the first problem takes depends on the clock
    expect lost-timed 5 " was tried" lost cuGraphLaunch:$call:719
    [ -e lost.tuned ] && break
done
expect lost-timed-kept 0 "$(printf 'sm_90\thostcuda sm_90\tLinear(f16[64,64], f16[64,')" cat lost.tuned
no_temporaries temporaries "$dir"
finish
