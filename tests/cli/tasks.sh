#!/bin/sh
# usage: tasks.sh ZC SOURCE_DIR: the tasks of docs/commandline.md, with the models of examples/tasks.
. "$(dirname "$0")/lib.sh"
cd "$dir"
python3 "$src/examples/tasks/make.py" . || exit 1
for task in ocr voice filetype; do
    expect "compile-$task" 0 "steps" "$zc" compile $task.onnx -o $task.plan
    expect "verify-$task" 0 "no difference" "$zc" verify $task.onnx --device cpu
done

# The command lines stand in the document, with "zc" for the program.
sed -n '/^## Three tasks/,/^## /s/^zc run/"$zc" run/p;/^## Three tasks/,/^## /s/^head \(.*\) | zc run/head \1 | "$zc" run/p' \
    "$src/docs/commandline.md" >commands
expect commands 0 "3" sh -c 'wc -l <commands'
run_line() { # NUMBER
    zc=$zc sh -c "$(sed -n "$1p" commands)"
}
characters() {
    run_line 1 | sed -n 's/^ *[0-9.]* %  \([0-9]\)$/\1/p' | tr -d '\n'
}
expect ocr 0 "31415926" characters
speech() {
    run_line 2 | python3 -c '
import json, sys
p = json.load(sys.stdin)["outputs"][0]
on = [i for i, x in enumerate(p["data"]) if x > 0.5]
print(p["name"], p["shape"], on[0] * 512, on[-1] * 512, on == list(range(on[0], on[-1] + 1)))'
}
expect voice 0 "speech [62, 1] 8192 24064 True" speech
expect filetype 0 "%  png" run_line 3
for type in zip:PK\\003\\004 pdf:%%PDF wav:RIFF other:hello; do
    printf "${type#*:}" >file
    head -c 100 /dev/zero >>file
    expect "filetype-${type%%:*}" 0 "%  ${type%%:*}" sh -c 'head -c 64 file | "$1" run filetype.plan \
        --input bytes=- --raw bytes=u8:1x64 --cast --labels types.txt --top 1' sh "$zc"
done

finish
