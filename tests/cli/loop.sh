#!/bin/sh
# usage: loop.sh ZC SOURCE_DIR WRITER: zc run in a loop: state that is fed back, inputs in parts, outputs joined.
. "$(dirname "$0")/lib.sh"
writer=$(realpath "$3")
cd "$dir"
cat >forms.txt <<'END'
form vad
opset 17
in sound 1 1,4
in state 1 1,1
out p 1 1,1
out state_out 1 1,1
init w 1 4,1 1,1,1,1
node MatMul sound,w s
node Add s,state state_out
node Neg state_out p
form any
opset 17
in sound 1 rows,n
out y 1 rows,n
node Neg sound y
form equals
opset 17
in a=b 1 1
out c=d 1 1
init one 1 1 1
node Add a=b,one c=d
form scalar
opset 17
in x 1 -
out y 1 -
node Neg x y
form grow
opset 17
in x 1 n
out y 1 m
node Concat x,x y axis:i=0
END
"$writer" forms.txt . >/dev/null || exit 1
for name in vad any equals scalar grow; do "$zc" compile $name.onnx -o $name.plan -q; done
npy() { # FILE SHAPE COUNT: the numbers 0, 1, ... as f32
    python3 - "$@" <<'END'
import struct, sys
path, shape, n = sys.argv[1], sys.argv[2], int(sys.argv[3])
head = "{'descr': '<f4', 'fortran_order': False, 'shape': (%s), }" % shape
head += ' ' * (117 - len(head)) + '\n'
open(path, 'wb').write(b'\x93NUMPY\x01\x00' + struct.pack('<H', len(head)) + head.encode() + struct.pack('<%df' % n, *range(n)))
END
}
npy twelve.npy "1, 12" 12
npy fourteen.npy "1, 14" 14
npy rows.npy "2, 5" 10
npy ten.npy "1, 1" 1
vad() {
    "$zc" run vad.plan "$@" --feed state_out=state
}
any() {
    "$zc" run any.plan --input sound=rows.npy "$@"
}

# ---- state ----
expect state 0 '"name": "p", "type": "f32", "shape": [3, 1], "data": [-6, -28, -66]' \
    vad --input sound=twelve.npy --slice sound=1 --json
expect state-last 0 '"name": "state_out", "type": "f32", "shape": [1, 1], "data": [66]' \
    vad --input sound=twelve.npy --slice sound=1 --json
expect state-runs 0 '"runs": 3' vad --input sound=twelve.npy --slice sound=1:4 --json
expect state-concat 0 '"shape": [1, 3], "data": [-6, -28, -66]' \
    vad --input sound=twelve.npy --slice sound=1 --concat 1 --json
expect state-each 0 '"name": "p", "step": 1, "type": "f32", "shape": [1, 1], "data": [-28]' \
    vad --input sound=twelve.npy --slice sound=1 --each --json
expect state-begins 0 '"data": [-6, -28, -66]' vad --input sound=twelve.npy --input state=ten.npy --slice sound=1 --json
expect state-some 0 '"data": [-6, -28]' vad --input sound=twelve.npy --slice sound=1 --loop 2 --json
expect state-text 0 "ran 3 times in" vad --input sound=twelve.npy --slice sound=1
expect names-with-equals 0 '"name": "c=d", "type": "f32", "shape": [1], "data": [4]' \
    "$zc" run equals.plan --feed c=d=a=b --loop 4 --json
expect saved 0 "ran 3 times" vad --input sound=twelve.npy --slice sound=1 --output-dir results
expect same-as-joined 0 "ran 3 times" vad --input sound=twelve.npy --slice sound=1 --expect results --rtol 0 --atol 0
expect saved-each 0 "ran 3 times" vad --input sound=twelve.npy --slice sound=1 --each --output-dir each
expect saved-names 0 "output_1_step_2.npy" ls each

# ---- parts ----
expect drop 0 '"data": [-6, -28, -66]' vad --input sound=fourteen.npy --slice sound=1 --json
expect drop-note 0 "zc: note: the last 2 of 14 along axis 1 are left out" vad --input sound=fourteen.npy --slice sound=1
expect pad 0 '"data": [-6, -28, -66, -91]' vad --input sound=fourteen.npy --slice sound=1 --tail pad --json
expect short-fixed 2 "sound: wrong size of dimension 1 (got 2, need 4)" \
    vad --input sound=fourteen.npy --slice sound=1 --tail short
expect inner 0 '"shape": [2, 4], "data": [-0, -1, -2, -3, -5, -6, -7, -8]' any --slice sound=1:2 --concat 1 --json
expect short 0 '"shape": [2, 5], "data": [-0, -1, -2, -3, -4, -5, -6, -7, -8, -9]' \
    any --slice sound=1:2 --tail short --concat 1 --json
expect rows 0 '"shape": [2, 5], "data": [-0, -1, -2, -3, -4, -5, -6, -7, -8, -9]' any --slice sound=0:1 --json
expect short-other 2 "y: its shape differs between runs: --each keeps them apart" any --slice sound=1:2 --tail short
expect short-each 0 '"shape": [2, 1], "data": [-4, -9]' any --slice sound=1:2 --tail short --each --json

# ---- what cannot be ----
expect no-size 1 "sound: --slice: the plan takes any size along axis 1 (need sound=1:SIZE)" any --slice sound=1
expect no-axis 1 "sound: --slice: the file has no such axis (got 2, it has 2)" any --slice sound=2:1
expect bad-axis 1 "need INPUT=AXIS or INPUT=AXIS:SIZE" any --slice sound=x
expect bad-size 1 "need INPUT=AXIS or INPUT=AXIS:SIZE" any --slice sound=1:0
expect no-input 1 "noise: the plan has no input of this name (it has sound)" any --slice noise=1:2
expect slice-twice 1 "sound: --slice is given twice" any --slice sound=1:2 --slice sound=0:1
expect too-few 1 "sound: --slice: too few parts (got 2, need 3)" any --slice sound=1:2 --loop 3
expect too-long 1 "sound: --slice: too few parts (got 0, need 1)" any --slice sound=1:9
expect slice-random 1 "sound: --slice: no file is given for it" "$zc" run any.plan --random --slice sound=1:2
expect feed-unknown 1 "noise: the plan has no output of this name (it has y)" any --feed noise=sound --loop 2
expect feed-input 1 "x: the plan has no input of this name (it has sound)" any --feed y=x --loop 2
expect feed-twice 1 "--feed gives it two values" \
    vad --input sound=twelve.npy --slice sound=1 --feed p=state
expect feed-slice 1 "--slice and --feed exclude each other" any --feed y=sound --slice sound=1:1
expect feed-alone 1 "--feed does nothing without --loop N or --slice" any --feed y=sound
expect concat-alone 1 "--concat does nothing without --loop N or --slice" any --concat 1
expect tail-alone 1 "--tail does nothing without --slice" any --tail pad --loop 2
expect each-concat 1 "--each and --concat exclude each other" any --loop 2 --each --concat 0
expect scalar 1 "y: --concat: it has no axis 0 (it has 0; --each keeps runs apart)" \
    "$zc" run scalar.plan --random --loop 2
expect grows 2 "wrong size of dimension" "$zc" run vad.plan --random --loop 2 --feed p=sound
expect grown 0 '"shape": [8]' "$zc" run grow.plan --random --loop 3 --feed y=x --json

# ---- outputs ----
expect output 0 '"name": "p"' vad --random --loop 1 --output p --json
expect output-others 0 "0" sh -c '"$@" --json | grep -c state_out; true' sh "$zc" run vad.plan --random --output p
expect output-unknown 1 "q: the plan has no output of this name (it has p, state_out)" vad --random --loop 1 --output q
expect json-reads 0 "" sh -c '"$@" --json | python3 -c "import json, sys; json.load(sys.stdin)"' sh "$zc" run vad.plan --random

finish
