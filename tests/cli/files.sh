#!/bin/sh
# usage: files.sh ZC SOURCE_DIR: full disks, signals, two writers, closed streams, few descriptors, folders that
# cannot be written: the old file or the new one, never a mix, and a message.
. "$(dirname "$0")/lib.sh"
mounted=
trap '[ -z "$mounted" ] || umount "$mounted"; rm -rf "$dir"' EXIT
out=$dir/place
mkdir "$out"
"$zc" fill "$src/models/bench/resnet50.dynamo.onnx" -o "$dir/big" -q
big=$dir/big/model.onnx
"$zc" compile "$model" -o "$dir/small.plan" -q
"$zc" compile "$big" -o "$dir/big.plan" -q
# Runs a command with at most N blocks of 512 or 1024 bytes a file.
with_blocks() {
    sh -c 'ulimit -f "$0" && exec "$@"' "$@"
}
old_kept() {
    expect "$1" 0 "old" cat "$out/p.plan"
    no_temporaries "$1-temporaries" "$out"
}

# Files that may not grow, and disks that are full.
echo old >"$out/p.plan"
expect limit-compile 2 "p.plan: cannot write (File too large)" with_blocks 16 "$zc" compile "$model" -o "$out/p.plan"
old_kept limit-kept
expect limit-fill 2 "cannot write (File too large)" \
    with_blocks 1024 "$zc" fill "$src/models/bench/resnet50.dynamo.onnx" -o "$out/filled"
no_temporaries limit-fill-temporaries "$out/filled"
expect limit-fill-model 2 "No such file" ls "$out/filled/model.onnx"
expect limit-run 2 "cannot write (File too large)" \
    with_blocks 16 "$zc" run "$dir/small.plan" --random --dim batch=4096 --output-dir "$out/results"
no_temporaries limit-run-temporaries "$out/results"
mkdir "$dir/disk"
if [ "$(id -u)" -eq 0 ] && mount -t tmpfs -o size=64k tmpfs "$dir/disk" 2>/dev/null; then
    mounted=$dir/disk
    echo old >"$dir/disk/p.plan"
    expect disk-compile 2 "p.plan: cannot write (No space left on device)" "$zc" compile "$model" -o "$dir/disk/p.plan"
    expect disk-kept 0 "old" cat "$dir/disk/p.plan"
    no_temporaries disk-temporaries "$dir/disk"
    expect disk-fill 2 "No space left on device" \
        "$zc" fill "$src/models/bench/resnet50.dynamo.onnx" -o "$dir/disk/filled"
    no_temporaries disk-fill-temporaries "$dir/disk/filled"
    mount -o remount,ro "$dir/disk"
    expect disk-read-only 2 "Read-only file system" "$zc" compile "$model" -o "$dir/disk/p.plan"
    expect disk-read-only-fill 2 "Read-only file system" "$zc" fill "$model" -o "$dir/disk/other"
else
    skip disk-compile "cannot mount a tmpfs"
fi
[ -e /dev/full ] && for command in "help" "help run" "inspect $dir/small.plan" "inspect --operators" "run $dir/small.plan --random"; do
    # shellcheck disable=SC2086
    expect "full-$command" 2 "standard output: No space left" sh -c '"$@" >/dev/full' sh "$zc" $command
done

# Signals at many moments: the old file or the new one, and no temporary.
wait_for() {
    "$zc" compile "$big" -o "$out/p.plan" -q 2>/dev/null &
    pid=$!
    sleep "$2"
    kill -"$1" $pid 2>/dev/null
    wait $pid 2>/dev/null
    ended=$?
}
signalled=0
for delay in 0.01 0.05 0.1 0.15 0.2 0.25 0.3 0.4 0.6; do
    for signal in INT TERM HUP KILL; do
        case $signal in
        HUP) number=1 ;;
        INT) number=2 ;;
        KILL) number=9 ;;
        TERM) number=15 ;;
        esac
        echo old >"$out/p.plan"
        # A shell gives its background commands an ignored SIGINT: env sets it right again.
        if [ $signal = INT ]; then
            env --default-signal=INT true 2>/dev/null || continue
            env --default-signal=INT "$zc" compile "$big" -o "$out/p.plan" -q 2>/dev/null &
            pid=$!
            sleep $delay
            kill -INT $pid 2>/dev/null
            wait $pid 2>/dev/null
            ended=$?
        else
            wait_for $signal $delay
        fi
        if [ $ended -ne 0 ]; then
            signalled=$((signalled + 1))
            expect "$signal-$delay-code" 0 "" test $ended -eq $((128 + number))
        fi
        expect "$signal-$delay-whole" 0 "" sh -c '[ "$(cat "$1")" = old ] || cmp "$1" "$2"' sh "$out/p.plan" "$dir/big.plan"
        if [ $signal = KILL ] && [ "$(stat -f -c %T "$out")" = overlayfs ]; then
            skip "KILL-$delay-temporaries" "older kernels have no files without a name there"
            rm -f "$out"/.zc-*.tmp
        else
            no_temporaries "$signal-$delay-temporaries" "$out"
        fi
    done
done
expect signals-arrived 0 "" test $signalled -ge 8
# Ignored signals stay ignored.
echo old >"$out/p.plan"
(trap '' TERM && exec "$zc" compile "$big" -o "$out/p.plan" -q) &
pid=$!
sleep 0.1
kill -TERM $pid 2>/dev/null
wait $pid
expect ignored-signal 0 "" cmp "$out/p.plan" "$dir/big.plan"

# A compilation that fails keeps the old output, its time too; the output is never the input, under any name.
echo old >"$out/p.plan"
touch -d '2001-02-03 04:05:06' "$out/p.plan"
touch -r "$out/p.plan" "$out/time"
expect fail-code 2 "zc: error:" "$zc" compile "$labels" -o "$out/p.plan"
expect fail-time 0 "" test ! "$out/p.plan" -nt "$out/time" -a ! "$out/p.plan" -ot "$out/time"
old_kept fail-kept
cp "$model" "$out/self.onnx"
ln -s self.onnx "$out/soft.onnx"
ln "$out/self.onnx" "$out/hard.onnx"
for name_of_it in self.onnx soft.onnx hard.onnx ./self.onnx ../place/self.onnx; do
    expect "self-$name_of_it" 1 "the output is the model itself" "$zc" compile "$out/self.onnx" -o "$out/$name_of_it"
done
expect self-kept 0 "" cmp "$model" "$out/self.onnx"
ln -s target.plan "$out/link.plan"
expect link-dangling 2 "link.plan: cannot follow the symbolic link" "$zc" compile "$model" -o "$out/link.plan"
echo old >"$out/target.plan"
expect link-followed 0 "" "$zc" compile "$model" -o "$out/link.plan" -q
expect link-target 0 "" cmp "$out/target.plan" "$dir/small.plan"
chmod 640 "$out/target.plan"
expect mode-compiles 0 "" "$zc" compile "$model" -o "$out/target.plan" -q
expect mode-kept 0 "640" stat -c %a "$out/target.plan"
expect link-stays 0 "" test -h "$out/link.plan"

# Two writers of one file: one whole file wins.
for round in 1 2 3 4 5; do
    "$zc" compile "$big" -o "$out/p.plan" -q &
    first=$!
    "$zc" compile "$model" -o "$out/p.plan" -q &
    second=$!
    "$zc" compile "$model" -o "$out/p.plan" -q
    expect "two-$round-third" 0 "" test $? -eq 0
    wait $first
    expect "two-$round-first" 0 "" test $? -eq 0
    wait $second
    expect "two-$round-second" 0 "" test $? -eq 0
    expect "two-$round-whole" 0 "" sh -c 'cmp -s "$1" "$2" || cmp -s "$1" "$3"' sh "$out/p.plan" "$dir/big.plan" "$dir/small.plan"
done
no_temporaries two-temporaries "$out"

# Closed standard streams.
expect closed-stdout 2 "standard output: Bad file descriptor" sh -c '"$@" >&-' sh "$zc" inspect "$dir/small.plan"
expect closed-compile 2 "standard output: Bad file descriptor" sh -c '"$@" >&-' sh "$zc" compile "$model" -o "$out/c.plan"
expect closed-whole 0 "" cmp "$out/c.plan" "$dir/small.plan"
expect closed-all 0 "" sh -c '"$@" <&- >&- 2>&-' sh "$zc" compile "$model" -o "$out/d.plan" -q
expect closed-all-whole 0 "" cmp "$out/d.plan" "$dir/small.plan"
expect closed-stderr 2 "" sh -c '"$@" 2>&-' sh "$zc" compile "$labels" -o "$out/e.plan"
expect closed-nothing 2 "No such file" ls "$out/e.plan"

# Few file descriptors: a message or success, nothing left behind.
for limit in 4 5 6 7 8; do
    for command in "compile $model -o $out/few.plan" "run $dir/small.plan --random --output-dir $out/few" \
        "conform $out/case" "fill $src/models/bench/bert_base.legacy.onnx -o /proc/zc"; do
        # shellcheck disable=SC2086
        sh -c 'ulimit -n "$0" && exec "$@"' $limit "$zc" $command >"$dir/few" 2>&1
        ended=$?
        expect "few-$limit-${command%% *}" 0 "" test $ended -le 3 -o $ended -eq 127
        [ $ended -ne 2 ] || expect "few-$limit-${command%% *}-says" 0 "zc: error: " cat "$dir/few"
        [ $ended -ne 127 ] || expect "few-$limit-${command%% *}-loader" 0 "shared libraries" cat "$dir/few"
    done
    no_temporaries "few-$limit-temporaries" "$out"
done
expect few-message 2 "Too many open files" sh -c 'ulimit -n 5 && exec "$@"' sh "$zc" compile "$model" -o "$out/few.plan"

# Places that cannot be written.
expect proc 2 "zc.plan: cannot create a temporary file beside it" "$zc" compile "$model" -o /proc/zc.plan
expect device 2 "/dev/null: cannot replace (got a device, need a regular file)" "$zc" compile "$model" -o /dev/null
expect folder 2 "cannot replace (got a directory, need a regular file)" "$zc" compile "$model" -o "$out"
expect no-folder 2 "cannot open the directory (No such file or directory)" "$zc" compile "$model" -o "$out/none/p.plan"
expect file-as-folder 2 "Not a directory" "$zc" compile "$model" -o "$out/p.plan/p.plan"
mkfifo "$out/pipe"
# Models, plans and inputs come from pipes too; what an input is, its content says.
stdin_of() { # FILE COMMAND...
    from=$1
    shift
    "$@" <"$from"
}
expect stdin-model 0 "10 steps" stdin_of "$model" "$zc" compile - -o "$out/x.plan"
expect stdin-same-plan 0 "" cmp "$dir/small.plan" "$out/x.plan"
expect stdin-explain 0 "there are" stdin_of "$model" "$zc" compile - --explain
expect stdin-no-model 2 "standard input: this looks like text, not an ONNX model" stdin_of "$labels" "$zc" compile - -o "$out/x.plan"
expect stdin-empty-model 2 "standard input: the file is empty (need an ONNX model)" stdin_of /dev/null "$zc" compile - -o "$out/x.plan"
expect stdin-refused-kept 0 "" cmp "$dir/small.plan" "$out/x.plan"
expect stdin-weights 2 "standard input: conv1.weight: external data is not allowed here" \
    stdin_of "$src/models/bench/resnet50.dynamo.onnx" "$zc" compile - -o "$out/x.plan"
expect stdin-data-root 0 "steps" stdin_of "$big" "$zc" compile - -o "$out/x.plan" --data-root "$dir/big"
expect stdin-inspect-model 0 'graph "' stdin_of "$model" "$zc" inspect -
expect stdin-inspect-stage 0 "plan by zc" stdin_of "$model" "$zc" inspect - --stage program
expect stdin-inspect-plan 0 "plan by zc" stdin_of "$dir/small.plan" "$zc" inspect -
expect stdin-inspect-options 1 "--full is of models (got a plan)" stdin_of "$dir/small.plan" "$zc" inspect - --full
head -c 3000 "$dir/small.plan" >"$out/short.plan"
expect stdin-inspect-short 2 "standard input: truncated plan: 3000 of" stdin_of "$out/short.plan" "$zc" inspect -
expect stdin-debug 0 "no difference" stdin_of "$model" "$zc" debug -
fifo_of() { # FILE COMMAND...
    cat "$1" >"$out/pipe" &
    shift
    timeout 60 "$@"
}
expect fifo-model 0 "10 steps" fifo_of "$model" "$zc" compile "$out/pipe" -o "$out/x.plan"
expect fifo-inspect 0 "plan by zc" fifo_of "$dir/small.plan" "$zc" inspect "$out/pipe"
cp "$src/models/digits/sample_7.npy" "$out/seven.pb"
cp "$src/models/digits/test_data_set_0/input_0.pb" "$out/zero.npy"
expect content-npy 0 "probabilities: f32[1,10]" "$zc" run "$dir/small.plan" --input image="$out/seven.pb"
expect content-pb 0 "probabilities: f32[" "$zc" run "$dir/small.plan" --input image="$out/zero.npy"
expect stdin-npy 0 "probabilities: f32[1,10]" stdin_of "$out/seven.pb" "$zc" run "$dir/small.plan" --input image=-
expect stdin-pb 0 "probabilities: f32[" \
    sh -c 'cat "$3" | "$1" run "$2" --input image=-' sh "$zc" "$dir/small.plan" "$out/zero.npy"
expect stdin-plan 0 "probabilities: f32[1,10]" stdin_of "$dir/small.plan" "$zc" run - --random
expect stdin-rubbish 2 "standard input: " sh -c 'echo rubbish | "$1" run "$2" --input image=-' sh "$zc" "$dir/small.plan"
expect fifo-input 0 "probabilities: f32[1,10]" fifo_of "$out/seven.pb" "$zc" run "$dir/small.plan" --input image="$out/pipe"
expect fifo-plan 0 "probabilities: f32[1,10]" fifo_of "$dir/small.plan" "$zc" run "$out/pipe" --random
expect results-folder 2 "cannot be written to (No such file" "$zc" run "$dir/small.plan" --random --output-dir /proc/zc
if [ "$(id -u)" -ne 0 ]; then
    mkdir -m 555 "$dir/read-only"
    expect read-only 2 "Permission denied" "$zc" compile "$model" -o "$dir/read-only/p.plan"
else
    skip read-only "root may write anywhere"
fi

finish
