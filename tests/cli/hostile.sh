#!/bin/sh
# usage: hostile.sh ZC SOURCE_DIR: strange options and names, little memory.
. "$(dirname "$0")/lib.sh"
plan=$dir/digits.plan
"$zc" compile "$model" -o "$plan" -q

# Mistakes in options, of every command.
for command in compile run bench report inspect fill conform help; do
    expect "unknown-$command" 1 "unknown option '--no-such-option'" "$zc" $command --no-such-option
    expect "letter-$command" 1 "unknown option '-Z'" "$zc" $command -Z
    expect "hint-$command" 1 "Try 'zc $command --help'" "$zc" $command --no-such-option
    # Every option with a value asks for it when it is the last word, and every flag refuses one.
    for option in $("$zc" help $command | sed -n 's/^  .....*--\([a-z-]*\) [A-Z].*/\1/p;s/^  -., --\([a-z-]*\) [A-Z].*/\1/p'); do
        expect "missing-$command-$option" 1 "--$option needs a value (" "$zc" $command "--$option"
    done
    expect "flag-$command" 1 "--help takes no value (got '--help=x')" "$zc" $command --help=x
done
expect ambiguous 1 "ambiguous option '--s'" "$zc" compile --s=x "$model"
expect abbreviated 0 "" "$zc" compile "$model" --out="$dir/short.plan" --qui
for value in -1 1.5 99999999999999999999 0x10 '' ' ' 1e3 NaN; do
    expect "threads-$value" 1 "--threads: got '$value', need a whole number from 1 to 1024" \
        "$zc" run "$plan" --random --threads "$value"
done
for value in nan inf -1 x '' 1e99; do
    expect "seconds-$value" 1 "--seconds: got '$value', need a number" "$zc" bench "$plan" --seconds "$value"
done
for value in =1 batch= batch=x batch=-1 batch=99999999999999999999 batch '='; do
    expect "dim-$value" 1 "--dim: got '$value', need NAME=VALUE" "$zc" compile "$model" -o "$dir/x.plan" --dim "$value"
done
for value in image image= image=x image=1x image=x1 image=1xx2 image=1x-2 =1x2 \
    image=1x1x1x1x1x1x1x1x1x1x1x1x1x1x1x1x1; do
    expect "shape-$value" 1 "--shape: got '$value', need NAME=" "$zc" compile "$model" -o "$dir/x.plan" --shape "$value"
done
many=
for i in $(seq 65); do many="$many --dim d$i=1"; done
# shellcheck disable=SC2086
expect many 1 "too many --dim (need at most 64)" "$zc" compile "$model" -o "$dir/x.plan" $many
expect device-99 1 "--device: got 'gpu:99', need cpu" "$zc" run "$plan" --random --device gpu:99
for value in cuda: cuda:x cuda:-1 cuda:1x cuda:99999999999999999999 cuda:4294967296 CPU ''; do
    expect "device-$value" 1 "--device: got '$value', need " "$zc" run "$plan" --random --device "$value"
done
expect no-model 1 "needs one model (got 0)" "$zc" compile -o "$dir/x.plan"
expect two-models 1 "needs one model (got 2)" "$zc" compile "$model" "$model" -o "$dir/x.plan"
expect empty-command 1 "no command ''" "$zc" ""
expect option-as-command 1 "no option '--frobnicate'" "$zc" --frobnicate
expect nothing-made 2 "No such file" ls "$dir/x.plan"

# Names: leading dash, newline, bytes that are not UTF-8, escapes, very long.
cd "$dir" || exit 1
newline='a
b.onnx'
bytes=$(printf 'caf\351\377.onnx')
long=$(printf '%0250d' 0)
for file in -model.onnx --help "$newline" "$bytes" 'a=b:c d.onnx' "$long"; do
    cp "$model" "./$file"
    expect "name-$file" 0 "" "$zc" compile -q -o ./named.plan -- "$file"
    expect "name-output-$file" 0 "" "$zc" compile -q "$model" -o "$file"
    expect "name-run-$file" 0 "ran in" "$zc" run --random -- "$file"
    rm -f -- "./$file"
done
expect newline-escaped 2 'a\x0Ab.onnx: cannot open' "$zc" compile "$newline" -o x.plan
expect bytes-escaped 2 'caf\xE9\xFF.onnx: cannot open' "$zc" compile "$bytes" -o x.plan
expect escape-option 1 "unknown option '--\\x1B[2J'" "$zc" run "$(printf -- '--\033[2J')"
expect escape-command 1 "no command '\\x1B[2J'" "$zc" "$(printf '\033[2J')"
expect escape-value 1 "--dim: got '\\x07', need" "$zc" run "$plan" --dim "$(printf '\007')"
expect long-name 2 "File name too long" "$zc" compile "$long$long" -o x.plan
expect dash-input 2 "./-x.npy: cannot open" "$zc" run "$plan" --input image=./-x.npy
expect equals-input 2 "a=b.npy: cannot open" "$zc" run "$plan" --input image=a=b.npy

# Little memory: an error that says so and exit code 2, never a crash.
if has_memory_limits; then
    "$zc" fill "$src/models/bench/resnet50.dynamo.onnx" -o "$dir/big" -q
    "$zc" compile "$dir/big/model.onnx" -o "$dir/big.plan" -q
    refused=0
    for kib in 70000 90000 110000 140000 180000 220000 260000 300000 400000; do
        for command in "compile $model -o $dir/m.plan" "compile $dir/big/model.onnx -o $dir/m.plan" \
            "run $plan --random" "run $dir/big.plan --random" "bench $dir/big.plan --seconds 0.01" \
            "inspect $dir/big.plan --hashes" "fill $src/models/bench/resnet50.dynamo.onnx -o $dir/m"; do
            # shellcheck disable=SC2086
            sh -c 'ulimit -v "$0" && exec "$@"' $kib "$zc" $command >"$dir/memory" 2>&1
            ended=$?
            what="memory-$kib-${command%% *}"
            expect "$what" 0 "" test $ended -eq 0 -o $ended -eq 2
            [ $ended -ne 2 ] && continue
            refused=$((refused + 1))
            expect "$what-says" 0 "" grep -qE 'out of memory|no memory for|refused to start another thread|address space|Cannot allocate memory' "$dir/memory"
        done
    done
    expect memory-refused 0 "" test $refused -ge 5
    no_temporaries memory-temporaries "$dir"
    expect memory-message 2 "no memory for oneDNN's" \
        sh -c 'ulimit -v 70000 && exec "$@"' sh "$zc" run "$plan" --random --threads 1
else
    skip memory "no limit on address space here, or a sanitizer that needs much"
fi

finish
