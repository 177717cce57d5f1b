#!/bin/sh
# usage: locale.sh ZC SOURCE_DIR COMMA_LIBRARY FAKE_DRIVER_DIR KERNEL_CHECK PROGRAM...: commands and test programs where
# the locale writes 1,5 for 1.5 say and do what they do elsewhere. The locale is made here. KERNEL_CHECK and the folder
# may be "": nothing is done for a GPU then.
. "$(dirname "$0")/../cli/lib.sh"
library=$(realpath "$3")
fake=$4
kernel_check=$5
shift 5
command -v localedef >/dev/null || { echo "localedef is missing"; exit 77; }
[ -e /usr/share/i18n/locales/de_DE ] || { echo "the sources of locales are missing (package locales)"; exit 77; }
localedef -i de_DE -f UTF-8 "$dir/de_DE.UTF-8" || exit 1
export ZC_CACHE_DIR="$dir/cache"

comma() {
    env -u LC_ALL LOCPATH="$dir" LANG=de_DE.UTF-8 LC_MESSAGES=C LD_PRELOAD="$library" ASAN_OPTIONS="${ASAN_OPTIONS:-}:verify_asan_link_order=0" \
        "$@"
}
expect control 99 "comma_locale: 1.5 is 1.5" env LC_ALL=C LD_PRELOAD="$library" true
expect control-comma 0 "" comma true

# same NAME ARGUMENT...: zc prints the same in both, times aside, and ends in the same way; so do the files in made/.
same() {
    label=$1
    shift
    mkdir "$dir/made"
    "$zc" "$@" >"$dir/plain" 2>&1
    plain_code=$?
    mv "$dir/made" "$dir/plain-made"
    mkdir "$dir/made"
    comma "$zc" "$@" >"$dir/comma" 2>&1
    expect "$label-code" 0 "" test $? -eq $plain_code
    sed -i -E 's/[0-9.]+ (ms|us|s)\b/T \1/g; s/"ms": [0-9.]+/"ms": T/' "$dir/plain" "$dir/comma"
    expect "$label" 0 "" diff "$dir/plain" "$dir/comma"
    expect "$label-files" 0 "" diff -r "$dir/plain-made" "$dir/made"
    rm -r "$dir/plain-made" "$dir/made"
}
plan=$dir/digits.plan
"$zc" compile "$model" -o "$plan" -q
data=$src/models/digits
same help help run
same man help --man compile
same compile compile "$model" -o "$dir/made/p.plan"
same compile-bf16 compile "$model" -o "$dir/made/p.plan" --precision bf16
same run run "$plan" --input image="$data/sample_7.npy" --labels "$labels" --output-dir "$dir/made" --reference
same run-json run "$plan" --random --json
same run-expected run "$plan" --inputs "$data/test_data_set_0" --expect "$data/test_data_set_0" --rtol 1.5e-6 --atol 2.5e-7
same run-random run "$plan" --random --dim batch=3
same bad-real conform "$data" --rtol 1,5
same real conform "$data" --include none --rtol 1.5e-3
same conform conform "$data"
same inspect-plan inspect "$plan"
same inspect-json inspect "$plan" --json
same debug debug "$model" --bound 0.5
same debug-bf16 debug "$model" --precision bf16 --bound 1e-9
same verify verify "$model" --device cpu --rtol 0.5 --atol 0.25 --layers
same calibrate calibrate "$model" --inputs "$data/test_data_set_0" -o "$dir/made/digits.cal"
same auto compile "$model" -o "$dir/made/auto.plan" --precision auto --max-error 2.5e-2 --allow bf16 \
    --calibration "$data/test_data_set_0" --pareto "$dir/made/pareto"
same cache cache
same rules-test rules test "$src/rules/norm.zcr" --seed 3
same fill fill "$src/models/bench/resnet50.dynamo.onnx" -o "$dir/made/filled"
for big in bert_base.legacy gpt2.dynamo.dyn llama_7b.dynamo.dyn resnet50.legacy vit_b16.dynamo; do
    same "inspect-$big" inspect "$src/models/bench/$big.onnx"
    same "explain-$big" compile "$src/models/bench/$big.onnx" --explain
done
# Of times only that no fraction has a comma, which shapes have.
has_comma() { # FILE
    sed 's/\[[0-9,]*\]//g' "$1" | grep -E '[0-9],[0-9]'
}
no_comma() { # NAME ARGUMENT...
    label=$1
    shift
    comma "$zc" "$@" >"$dir/said" 2>&1
    expect "$label-code" 0 "" test $? -eq 0
    expect "$label" 1 "" has_comma "$dir/said"
}
no_comma bench bench "$plan" --seconds 0.05 --save "$dir/times"
no_comma bench-json bench "$plan" --seconds 0.05 --steps --json
no_comma profile profile "$plan" --seconds 0.05 --no-peaks
no_comma profile-json profile "$plan" --seconds 0.05 --no-peaks --json --trace "$dir/trace"
no_comma report report "$plan" --seconds 0.05 --no-peaks -o "$dir/report.html"
for file in times trace report.html; do
    expect "$file" 1 "" has_comma "$dir/$file"
done

for program; do
    # shellcheck disable=SC2086
    expect "${program##*/}" 0 "" comma $program
done
if [ -n "$kernel_check" ]; then
    expect kernels 0 "0 failed" comma env LD_LIBRARY_PATH="$fake" "$kernel_check" --rows --filter '^(Gelu|LSTM|UserKernel)/'
fi
finish
