#!/bin/sh
# usage: progress.sh ZC SOURCE_DIR: what takes more than a second says so on a terminal, and only there.
. "$(dirname "$0")/lib.sh"
if ! command -v script >/dev/null || ! script -qec true /dev/null >/dev/null 2>&1; then
    skip progress "no script(1) that makes a terminal"
    exit 77
fi
# A process that is stopped for a while takes long, however fast the machine: SIGSTOP, then SIGCONT.
slowly() {
    cat >"$dir/slowly.sh" <<'SLOWLY'
"$@" &
pid=$!
sleep 0.03
kill -STOP $pid
sleep 1.4
kill -CONT $pid
wait $pid
SLOWLY
    sh "$dir/slowly.sh" "$@"
}
"$zc" fill "$src/models/bench/resnet50.dynamo.onnx" -o "$dir/big" -q
command="sh $dir/slowly.sh '$zc' compile '$dir/big/model.onnx' -o '$dir/p.plan'"
slowly "$zc" compile "$dir/big/model.onnx" -o "$dir/p.plan" >"$dir/plain" 2>&1
expect compile-quiet 1 "" grep '\[[0-9]/[0-9]\]' "$dir/plain"
script -qec "$command" /dev/null >"$dir/terminal" 2>&1 </dev/null
expect compile-shows 0 "" grep -E '\[[1-9]/[1-9]\] [a-z ]+\.\.\. [0-9]+ s' "$dir/terminal"
script -qec "sh $dir/slowly.sh '$zc' fill '$src/models/bench/gpt2.dynamo.onnx' -o '$dir/g'" /dev/null >"$dir/terminal" 2>&1 </dev/null
expect fill-shows 0 "" grep -E 'values: [0-9]+ of 498 MB\.\.\. [0-9]+ s' "$dir/terminal"
script -qec "'$zc' bench '$dir/p.plan' --seconds 1.6" /dev/null >"$dir/terminal" 2>&1 </dev/null
expect bench-shows 0 "" grep -E 'measuring\.\.\. [1-9][0-9]* s' "$dir/terminal"
script -qec "'$zc' inspect '$dir/p.plan'" /dev/null >"$dir/terminal" 2>&1 </dev/null
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
script -qec "sh $dir/open.sh '$zc' bench '$dir/p.plan' --seconds 1.6" /dev/null >"$dir/terminal" 2>&1 </dev/null
expect drawing-takes-no-signals 0 2 grep -c takes-signals "$dir/terminal"

finish
