#!/bin/sh
# usage: progress.sh ZC SOURCE_DIR: what takes more than a second says so on a terminal, and only there.
. "$(dirname "$0")/lib.sh"
if ! command -v script >/dev/null || ! script -qec true /dev/null >/dev/null 2>&1; then
    skip progress "no script(1) that makes a terminal"
    exit 77
fi
# Slow on every machine: whoever reads a model from a FIFO waits for who writes it.
mkfifo "$dir/fifo"
waiting="(sleep 2.5; cat '$src/models/digits/digits.onnx') >'$dir/fifo' & '$zc' compile '$dir/fifo' -o '$dir/m.plan'"
sh -c "$waiting" >"$dir/plain" 2>&1
expect compile-quiet 1 "" grep -F '...' "$dir/plain"
script -qec "$waiting" /dev/null >"$dir/terminal" 2>&1 </dev/null
expect reading-shows 0 "" grep -E 'reading the model\.\.\. [12] s' "$dir/terminal"

# Slow motion: a process that runs 20 ms of every 220, until the terminal says what is looked for.
cat >"$dir/slowly.sh" <<'SLOWLY'
said=$1 terminal=$2
shift 2
"$@" &
pid=$!
until grep -qE "$said" "$terminal" || ! kill -STOP $pid 2>/dev/null; do
    sleep 0.2
    kill -CONT $pid
    sleep 0.02
done
wait $pid
SLOWLY
shows() { # TEST SAID COMMAND...
    test=$1 said=$2
    shift 2
    : >"$dir/terminal"
    script -qec "sh '$dir/slowly.sh' '$said' '$dir/terminal' $*" /dev/null >"$dir/terminal" 2>&1 </dev/null
    expect "$test" 0 "" grep -E "$said" "$dir/terminal"
}
"$zc" fill "$src/models/bench/resnet50.dynamo.onnx" -o "$dir/big" -q
shows compile-shows '\[[1-9]/[1-9]\] [a-z ]+\.\.\. [0-9]+ s' "'$zc' compile '$dir/big/model.onnx' -o '$dir/p.plan'"
shows fill-shows 'values: [0-9]+ of 498 MB\.\.\. [0-9]+ s' "'$zc' fill '$src/models/bench/gpt2.dynamo.onnx' -o '$dir/g'"
script -qec "'$zc' bench '$dir/m.plan' --seconds 1.6" /dev/null >"$dir/terminal" 2>&1 </dev/null
expect bench-shows 0 "" grep -E 'measuring\.\.\. [1-9][0-9]* s' "$dir/terminal"
script -qec "'$zc' inspect '$dir/m.plan'" /dev/null >"$dir/terminal" 2>&1 </dev/null
expect fast-says-nothing 1 "" grep -F '...' "$dir/terminal"

# Who draws takes no signals: only the main thread and the one that waits for them leave SIGUSR1 (bit 9) open.
cat >"$dir/open.sh" <<'OPEN'
"$@" &
pid=$!
sleep 0.7
for task in /proc/$pid/task/*/status; do
    mask=$(sed -n 's/^SigBlk:[[:space:]]*//p' "$task")
    [ $((0x$mask & 0x200)) -ne 0 ] || echo takes-signals
done
wait $pid
OPEN
script -qec "sh $dir/open.sh '$zc' bench '$dir/m.plan' --seconds 1.6" /dev/null >"$dir/terminal" 2>&1 </dev/null
expect drawing-takes-no-signals 0 2 grep -c takes-signals "$dir/terminal"

finish
