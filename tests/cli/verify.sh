#!/bin/sh
# usage: verify.sh ZC SOURCE_DIR WRITER: zc verify finds what fusion, kernels or onnxruntime answer otherwise; the python
# modules here are stand-ins.
. "$(dirname "$0")/lib.sh"
writer=$(realpath "$3")
cd "$dir"
mkdir tmp modules
export TMPDIR="$dir/tmp" PYTHONPATH="$dir/modules"
# This numpy has arrays of f32, as the bytes of their .npy files.
cat >modules/numpy.py <<'END'
import ast, math, struct, zipfile
def load(file):
    head = file.read(10)
    text = file.read(struct.unpack('<H', head[8:])[0])
    return head + text + file.read(4 * math.prod(ast.literal_eval(text.decode())['shape']))
def savez(file, *arrays):
    with zipfile.ZipFile(file, 'w') as z:
        for i, array in enumerate(arrays):
            with z.open(f'arr_{i}.npy', 'w', force_zip64=True) as entry: entry.write(array)
END
# This onnxruntime hands every input through.
cat >modules/onnxruntime.py <<'END'
class InferenceSession:
    def __init__(self, model, providers): self.model = open(model, 'rb').read()
    def run(self, names, feeds): return list(feeds.values())[:len(names)]
END
cat >forms.txt <<'END'
form same
opset 17
in x 1 n
out y 1 n
node Relu x a
node Neg x b
node Relu b c
node Sub a,c y
form other
opset 17
in x 1 n
out y 1 n
node Neg x y
form two
opset 17
in a 1 n
in b 1 2,n
out a2 1 n
out b2 1 2,n
node Identity a a2
node Identity b b2
form nan
opset 17
in x 1 n
out y 1 n
node Abs x a
node Sub a,a zero
node Div zero,zero hole
node Add hole,x y
form infinity
opset 17
in x 1 n
out y 1 n
node Sub x,x zero
node Exp zero one
node Div one,zero top
node Add top,x y
END
"$writer" forms.txt . >/dev/null || exit 1

expect same 0 "no difference (rtol 0.001, atol 0.0001)" "$zc" verify same.onnx --dim n=8 --device cpu
expect same-cpu 0 "cpu          y " "$zc" verify same.onnx --dim n=8 --device cpu
expect same-other 0 "onnxruntime  y " "$zc" verify same.onnx --dim n=8 --device cpu
expect other 3 "onnxruntime  y " "$zc" verify other.onnx --dim n=8 --device cpu
expect other-worst 3 "8 of 8 elements differ, worst at [" "$zc" verify other.onnx --dim n=8 --device cpu
expect other-verdict 3 "results differ" "$zc" verify other.onnx --dim n=8 --device cpu
expect other-allowed 0 "no difference" "$zc" verify other.onnx --dim n=8 --device cpu --atol 100
expect layers 0 "cpu          a " "$zc" verify same.onnx --device cpu --layers --skip-pass all
expect inputs-in-order 0 "onnxruntime  a2                                         0 " "$zc" verify two.onnx --device cpu
expect outputs-in-order 0 "onnxruntime  b2                                         0 " "$zc" verify two.onnx --device cpu
expect no-folder 0 "onnxruntime  y " env TMPDIR=/nowhere "$zc" verify same.onnx --device cpu
expect pipe 0 "onnxruntime  y " sh -c '"$1" verify - --device cpu <same.onnx' sh "$zc"

# ---- what is not there ----
cat >modules/onnxruntime.py <<'END'
class InferenceSession:
    def __init__(self, model, providers): raise RuntimeError('no such opset')
END
expect failed 2 "onnxruntime  not run: onnxruntime: failed: RuntimeError: no such opset" "$zc" verify same.onnx --device cpu
echo 'import no_such_module' >modules/onnxruntime.py
expect no-module 0 "onnxruntime  not run: python3 has no module no_such_module" "$zc" verify same.onnx --device cpu
expect no-python 0 "onnxruntime  not run: python3: No such file" env PATH=/nowhere "$zc" verify same.onnx --device cpu

# ---- told to stop ----
mkdir slow
printf '#!/bin/sh\ntouch "$TMPDIR/asked"\nexec sleep 20\n' >slow/python3
chmod +x slow/python3
stopped_by() { # SIGNAL, while python3 is at work
    PATH="$dir/slow:$PATH" "$zc" verify same.onnx --device cpu >/dev/null 2>&1 &
    while [ ! -e tmp/asked ] && kill -0 $! 2>/dev/null; do sleep 0.05; done
    rm tmp/asked && kill -"$1" $!
    wait $!
}
for signal in TERM:143 KILL:137; do
    expect "stopped-${signal%:*}" "${signal#*:}" "" stopped_by "${signal%:*}"
    expect "nothing-left-${signal%:*}" 0 "0" sh -c 'ls -A tmp | wc -l'
done
if "$zc" verify same.onnx --device auto | grep -q "^cuda *not run"; then
    expect cuda 5 "no CUDA driver" "$zc" verify same.onnx --device cuda
else
    skip cuda "this machine has a GPU"
fi

# ---- a wrong rule ----
printf 'rule bad {\n  match o = Relu(x);\n  emit o = LeakyRelu(x);\n}\n' >leaky.zcr
expect wrong-rule 3 "cpu          probabilities" "$zc" verify "$model" --device cpu --rules leaky.zcr --force-rules
expect wrong-layer 3 "elements differ, worst at [" \
    sh -c '"$@" | grep -A1 "^run" | grep "^cpu"; exit 3' sh \
    "$zc" verify "$model" --device cpu --rules leaky.zcr --force-rules --layers --skip-pass opt_layout
expect refused-rule 3 "rule 'bad' (line 1) is refused" "$zc" verify "$model" --device cpu --rules leaky.zcr
expect exact 3 "results differ (rtol 0, atol 0)" "$zc" verify "$model" --device cpu --rtol 0 --atol 0
expect f16 0 "no difference (rtol 0.02, atol 0.002)" "$zc" verify "$model" --device cpu --precision f16 --layers

# ---- NaN and infinity ----
expect nan 0 "reference    NaN in output 'y' (1 elements); NaN is first in 'hole'" "$zc" verify nan.onnx --device cpu
expect nan-fused 0 "cpu          NaN in output 'y' (1 elements); NaN is first in '" "$zc" verify nan.onnx --device cpu
expect infinity 0 "reference    infinity in output 'y' (1 elements); infinity is first in 'top'" \
    "$zc" verify infinity.onnx --device cpu
"$zc" compile nan.onnx -o nan.plan -q
"$zc" run nan.plan --random --output-dir results >/dev/null
expect nan-input 0 "reference    NaN in output 'y' (1 elements); NaN is first in 'x'" \
    "$zc" verify same.onnx --device cpu --input x=results/output_0.npy
expect finite 1 "" sh -c '"$@" | grep -i nan' sh "$zc" verify same.onnx --device cpu
expect input-twice 1 "given twice" "$zc" verify same.onnx --input x=results/output_0.npy --input x=results/output_0.npy
expect force-alone 1 "--force-rules does nothing without --rules FILE" "$zc" verify same.onnx --force-rules
expect no-model 1 "needs one model" "$zc" verify

finish
