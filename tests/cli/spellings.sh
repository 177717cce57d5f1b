#!/bin/sh
# usage: spellings.sh ZC SOURCE_DIR WRITER: options under trtexec's and polygraphy's names mean the same.
. "$(dirname "$0")/lib.sh"
writer=$(realpath "$3")
cd "$dir"
cat >forms.txt <<'END'
form net
opset 17
in image 1 batch,3,h
in mask 1 batch
out y 1 *
node ReduceSum image s keepdims:i=0
node Add s,mask y
END
"$writer" forms.txt . >/dev/null || exit 1
compile() {
    "$zc" compile net.onnx -o net.plan "$@" && "$zc" inspect net.plan
}
plain='--shapes image:2x3x4,mask:2'

expect equal-is-dim 0 "input image: f32[batch,3,4]" \
    compile --minShapes image:1x3x4,mask:1 --optShapes image:8x3x4,mask:8 --maxShapes image:32x3x4,mask:32
expect opt-alone 0 "input image: f32[8,3,4]" compile --optShapes image:8x3x4
expect same-as-dim 0 "" sh -c '"$1" compile net.onnx -o dim.plan -q --dim batch=8 --dim h=4 && cmp dim.plan net.plan' sh "$zc"
if "$zc" compile net.onnx -o gpu.plan -q --target sm_90 2>/dev/null; then
    for options in "--profile batch=8 --dim h=4" \
        "--minShapes image:1x3x4,mask:1 --optShapes image:8x3x4,mask:8 --maxShapes image:32x3x4,mask:32"; do
        # shellcheck disable=SC2086
        "$zc" compile net.onnx -o "./${options%% *}.plan" -q --target sm_90 $options
    done
    expect same-as-profile 0 "" cmp ./--profile.plan ./--minShapes.plan
else
    skip same-as-profile "no NVRTC"
fi
expect descending 1 "image: dimension 0: the sizes do not ascend (got 9, 8, 32)" \
    compile --minShapes image:9x3x4 --optShapes image:8x3x4 --maxShapes image:32x3x4
expect fixed 1 "image: wrong size of dimension 1 (got 4, need 3)" compile --optShapes image:8x4x4
expect rank 1 "image: wrong rank (got 2, need 3)" compile --optShapes image:8x4
expect unknown 1 "picture: the model has no input of this name" compile --optShapes picture:8x3x4
expect min-alone 1 "image: has --minShapes alone (need --optShapes, too)" compile --minShapes image:8x3x4
expect two-sizes 1 "batch: two fixed sizes (got 9, and 8)" compile --optShapes image:8x3x4,mask:9
expect words 1 "--optShapes: got 'image', need NAME:1x3x224x224" compile --optShapes image
expect shape-words 1 "need NAME=1x3x224x224" compile --optShapes image:1xtwo
"$zc" compile net.onnx -o net.plan -q

# shellcheck disable=SC2086
expect shapes 0 "y: f32[2]" "$zc" run net.plan --random $plain
expect shapes-rank 1 "image: wrong rank in --shapes (got 2, need 3)" "$zc" run net.plan --random --shapes image:2x3
expect shapes-fixed 1 "image: wrong size of dimension 1 in --shapes (got 4, need 3)" \
    "$zc" run net.plan --random --shapes image:2x4x4
expect shapes-unknown 1 "q: the plan has no input of this name" "$zc" run net.plan --random --shapes q:2
"$zc" run net.plan --random --shapes image:2x3x4 --output-dir raw --format raw >/dev/null
head -c 96 /dev/zero >image.bin
printf '\000\000\200\077\000\000\000\100' >mask.bin
# shellcheck disable=SC2086
expect load 0 '"data": [1, 2]' "$zc" run net.plan --loadInputs image:image.bin,mask:mask.bin $plain --json
expect load-size 2 "image.bin: wrong size for f32[2,3,5] (got 96 bytes, need 120)" \
    "$zc" run net.plan --loadInputs image:image.bin,mask:mask.bin --shapes image:2x3x5
expect load-unknown-size 1 "image: --loadInputs: the size of dimension 0 is not known" \
    "$zc" run net.plan --loadInputs image:image.bin --random
expect load-words 1 "--loadInputs: got 'image', need NAME:FILE" "$zc" run net.plan --loadInputs image
expect load-name 1 "q: the plan has no input of this name" "$zc" run net.plan --loadInputs q:image.bin --random
"$zc" run net.plan --random --shapes image:2x3x4 --output-dir npy >/dev/null
# shellcheck disable=SC2086
expect load-npy 0 "y: f32[2]" "$zc" run net.plan --loadInputs mask:npy/output_0.npy --random $plain

expect iterations 0 "20 runs: median" "$zc" bench net.plan --iterations 20 --duration 0 --warmUp 1
expect warm-up 0 "runs: median" "$zc" bench net.plan --iterations 5 --duration 0 --warm-up 0
expect times 0 "runs: median" "$zc" bench net.plan --iterations 20 --duration 0 --exportTimes times.json
expect times-json 0 "20" python3 -c 'import json; t = json.load(open("times.json")); assert all(x["latencyMs"] > 0 for x in t); print(len(t))'
expect times-folder 2 "/nowhere/times.json: cannot open the directory" \
    "$zc" bench net.plan --iterations 5 --duration 0 --exportTimes /nowhere/times.json
expect profile 0 "us in all steps" "$zc" bench net.plan --dumpProfile --duration 0
took() {
    begin=$(date +%s%N)
    "$zc" bench net.plan --warmUp 600 --duration 0 >/dev/null
    [ $((($(date +%s%N) - begin) / 1000000)) -ge 600 ]
}
expect warm-up-time 0 "" took

# Each spelling stands in the documents.
for spelling in minShapes optShapes maxShapes shapes loadInputs iterations duration warmUp warm-up exportTimes dumpProfile noDataTransfers; do
    expect "docs-$spelling" 0 "\`--$spelling" cat "$src/docs/commandline.md"
done

finish
