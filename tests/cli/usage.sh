#!/bin/sh
# usage: usage.sh ZC SOURCE_DIR WRITER: options that contradict each other, the plan or the files; sizes that are taken
# from the files given. Wrong usage exits with 1 whatever finds it.
. "$(dirname "$0")/lib.sh"
writer=$(realpath "$3")
cd "$dir"
cat >forms.txt <<'END'
form pair
opset 17
in past 1 batch,before
in now 1 batch,seq
in mask 1 batch,before+seq
out y 1 *
node Concat past,now c axis:i=1
node Add c,mask y
form equals
opset 17
in a 1 n
in a=b 1 n
out y 1 n
node Sub a,a=b y
form quarters
opset 17
in x 1 batch,seq
out y 1 *
init shape 7 3 0,-1,4
node Reshape x,shape y
form none
opset 17
init k 1 2 1,2
out y 1 2
node Neg k y
END
"$writer" forms.txt . >/dev/null || exit 1
for name in pair equals quarters none; do "$zc" compile $name.onnx -o $name.plan -q; done
"$zc" compile "$model" -o digits.plan -q
digit=$src/models/digits/sample_7.npy

# ---- names and sizes ----
for command in "run digits.plan --random" "bench digits.plan --seconds 0.01" "debug $model" "inspect digits.plan"; do
    # shellcheck disable=SC2086
    expect "dim-typo-${command%% *}" 1 "bach: no input of the plan has a symbolic dimension of this name (it has batch)" \
        "$zc" $command --dim bach=2
done
expect dim-twice 1 "--dim: 'batch' is given twice" "$zc" run digits.plan --random --dim batch=2 --dim batch=3
expect shape-twice 1 "--shape: 'x' is given twice" "$zc" compile "$model" -o x.plan --shape x=1 --shape x=2
expect profile-twice 1 "--profile: 'b' is given twice" "$zc" compile "$model" -o x.plan --profile b=1 --profile b=2
expect dim-of-file 1 "dimension 0 is batch: got 1 in the file, need 2 as --dim says" \
    "$zc" run digits.plan --input "image=$digit" --dim batch=2
expect dim-agrees 0 "ran in" "$zc" run digits.plan --input "image=$digit" --dim batch=1
expect input-twice 1 "image: --input is given twice" "$zc" run digits.plan --input "image=$digit" --input "image=$digit"
expect note 0 "zc: note: random inputs with batch=1 (--dim NAME=VALUE sets a size)" "$zc" run digits.plan --random
expect no-note 1 "" sh -c '"$@" 2>&1 | grep note' sh "$zc" run digits.plan --random --dim batch=2
expect note-before-error 2 "random inputs with batch=1, seq=1" "$zc" run quarters.plan --random
expect note-once 0 "1" sh -c '"$@" 2>&1 | grep -c note' sh "$zc" debug pair.onnx
# The mask's size is computed from the other inputs'.
expect computed 0 "y: f32[2,7]" "$zc" run pair.plan --random --dim batch=2 --dim before=4 --dim seq=3
"$zc" run pair.plan --random --dim batch=2 --dim before=4 --dim seq=3 --output-dir results >/dev/null
expect learnt 0 "y: f32[2,11]" "$zc" run pair.plan --input past=results/output_0.npy --random --dim seq=4
expect learnt-note 0 "random inputs with seq=1 (" "$zc" run pair.plan --input past=results/output_0.npy --random
mkdir gaps
cp results/output_0.npy gaps/input_0.npy
expect gap 1 "now: has no value (no input_1.npy or .pb in gaps; --random fills gaps)" "$zc" run pair.plan --inputs gaps
expect gap-filled 0 "y: f32[2,10]" "$zc" run pair.plan --inputs gaps --random --dim seq=3
expect gap-bench 0 "runs: median" "$zc" bench pair.plan --inputs gaps --seconds 0.01
mkdir empty
expect empty-inputs 2 "empty: holds no value" "$zc" run pair.plan --inputs empty --random
expect no-inputs 0 "y: f32[2]" "$zc" run none.plan --inputs empty
expect absent-inputs 2 "absent: cannot open (No such file" "$zc" bench pair.plan --inputs absent
"$zc" run equals.plan --random --dim n=3 --output-dir results >/dev/null
cp results/output_0.npy three.npy
expect name-with-equals 0 "y: f32[3]  min 0  max 0" "$zc" run equals.plan --input a=three.npy --input a=b=three.npy

# ---- options that would do nothing ----
alone() { # OPTION NEED COMMAND...
    option=$1
    need=$2
    shift 2
    expect "alone-$option-$1" 1 "$option does nothing without $need" "$zc" "$@"
}
for option in "--emit-cuda cuda" --strip-sources "--profile batch=1" "--threads 2" "--tune" "--tune=3" "--tuned x" --by-cost --offered; do
    # shellcheck disable=SC2086
    alone "${option%%[ =]*}" "--target of a GPU" compile "$model" -o x.plan $option
done
alone --force-rules "--rules FILE" debug "$model" --force-rules
alone --tune "--output" compile "$model" --explain --tune --target sm_90
expect tune-seconds 1 "--tune: got '0', need seconds" "$zc" compile "$model" -o x.plan --target sm_90 --tune=0
expect tune-by-cost 1 "--by-cost excludes --tune and --tuned" \
    "$zc" compile "$model" -o x.plan --target sm_90 --tuned x --by-cost
expect tune-nothing 1 "needs a model, or files to merge" "$zc" tune -o x.tuned
expect tune-nowhere 1 "needs --output FILE" "$zc" tune "$model"
alone --json "--explain" compile "$model" -o x.plan --json
alone --format "--output-dir DIR" run digits.plan --random --format pb
alone --labels "--top K" run digits.plan --random --labels "$labels" --top 0
alone --seed "--random" run digits.plan --input "image=$digit" --seed 2
alone --all "test or explain" rules list --all
alone --seed "test" rules list --seed 3
alone --device "test" rules list --device cuda
alone --quiet "check or test" rules list --quiet
alone --timeout "a process for each test" conform "$src/models/digits" --timeout 3 --in-process
alone --verbose "text" conform "$src/models/digits" --json --verbose
for option in "--skip-pass all" "--precision f16"; do
    # shellcheck disable=SC2086
    alone "${option%% *}" "--pass, or --stage optimised or program" inspect "$model" $option
done
alone --hashes "a plan, or --stage program" inspect "$model" --hashes
alone --full "the graph as text" inspect "$model" --full --dot
expect absent-hashes 2 "absent.plan: cannot open" "$zc" inspect absent.plan --hashes
expect memory-hashes 1 "needs one of --memory and --hashes" "$zc" inspect digits.plan --memory --hashes
for option in --json --passes "--dim batch=1"; do
    # shellcheck disable=SC2086
    expect "operators-$option" 1 "--operators goes with no other option" "$zc" inspect --operators $option
done
expect quiet-explain 1 "--quiet excludes --explain and --verbose" "$zc" compile "$model" -q --explain
expect reference-cuda 1 "--reference is of the CPU" "$zc" run digits.plan --random --reference --device cuda
expect passes-file 1 "--passes takes no file (got '$model')" "$zc" inspect --passes "$model"
expect json-top 1 "--json and --top exclude each other" "$zc" run digits.plan --random --json --top 2
expect nothing-made 2 "No such file" ls x.plan

# ---- what is read is not written over, nor read twice ----
cp digits.plan kept.plan
cp "$model" kept.onnx
ln -s kept.plan link.plan
for command in "bench kept.plan --save kept.plan" "bench kept.plan --exportTimes ./kept.plan" \
    "bench kept.plan --sweep batch=1,2 --chart-file link.plan" "profile kept.plan --trace kept.plan" \
    "report kept.plan -o kept.plan" "report kept.plan -o x.html --save kept.plan" "calibrate kept.onnx --random 1 -o kept.onnx" \
    "tune kept.onnx -o kept.onnx" \
    "compile kept.onnx -o x.plan --pareto kept.onnx --precision auto --max-error 1 --calibration $src/models/digits/test_data_set_0"; do
    # shellcheck disable=SC2086
    expect "over-${command%% *}" 1 "' is what is read" "$zc" $command
done
expect over-kept 0 "" sh -c 'cmp kept.plan digits.plan && cmp kept.onnx "$1"' sh "$model"
expect stdin-twice 1 "a=b: the standard input is another input's, too" "$zc" run equals.plan --input a=- --input a=b=-
expect folder-under 0 "ran in" "$zc" run digits.plan --inputs "$src/models/digits/test_data_set_0" --input "image=$digit"

# ---- bench measures as long as it is told to, however short the runs are ----
took() { # SECONDS COMMAND...
    begin=$(date +%s%N)
    "$zc" bench equals.plan --seconds "$1" --warmup 0 --threads 1 --json | sed -n 's/.*"runs": \([0-9]*\).*/\1/p' >runs
    [ $((($(date +%s%N) - begin) / 1000000)) -ge $(($1 * 1000)) ]
}
expect seconds 0 "" took 2
[ "$(cat runs)" -gt 100000 ] || skip many-runs "a run takes more than 20 us here"
finish
