#!/bin/sh
# zc profile: the work of each step, which is certain; of times only that they hang together.
. "$(dirname "$0")/lib.sh"
writer=$(realpath "$3")
nvtx=$(realpath "$4")
cd "$dir" || exit 1
export ZC_CACHE_DIR="$dir/cache"
cat >forms.txt <<'END'
form work
opset 17
in a 1 4,5
in b 1 5,6
in t 1 5,4
in x 1 1,4,8,8
in w 1 6,2,3,3
in s 1 3,1,2
in sw 1 1,12,2
in sr 1 1,12,3
in i 7 7
in table 1 1000,6
out product 1 *
out turned 1 *
out conv 1 *
out deconv 1 *
out state 1 *
out rows 1 *
out sum 1 *
out order 1 *
node MatMul a,b product name=product
node Gemm t,b turned name=turned transA:i=1
node Conv x,w conv name=conv group:i=2
node ConvTranspose conv,w deconv name=deconv group:i=2
node LSTM s,sw,sr _,state,_ name=state hidden_size:i=3
node Gather table,i rows name=rows
node Add product,turned twice name=twice
node Mul twice,twice square name=square
node Sub square,product sum name=sum
node TopK square,one order,_ name=order
init one 7 1 1
END
"$writer" forms.txt . >/dev/null && "$zc" compile work.onnx -o work.plan -q || exit 1
quick="--seconds 0 --threads 1 --no-peaks"

by_name="s = {x['name']: x for x in j['steps']}"

# shellcheck disable=SC2086
{
check_json work "$by_name
def is_work(name, operations, bytes_in, bytes_out):
    x = s[name]
    got = (x['operations'], x['bytes_in'], x['bytes_out'])
    assert got == (operations, bytes_in, bytes_out), (name, got)
is_work('product', 2 * 4 * 6 * 5, 4 * (20 + 30), 4 * 24)
is_work('turned', 2 * 4 * 6 * 5, 4 * (20 + 30), 4 * 24)
is_work('conv', 2 * 216 * 18, 4 * (256 + 108), 4 * 216)
is_work('deconv', 2 * 216 * 18, 4 * (216 + 108), 4 * 256)
is_work('state', 2 * 3 * (24 + 36), 4 * (6 + 24 + 36), 4 * 3)
is_work('rows', None, 4 * 42 + 8 * 7, 4 * 42)
assert s['order']['operations'] is None" "$zc" profile work.plan $quick --json
check_json sums "
assert abs(sum(x['median_us'] for x in j['steps']) - j['sum_us']) < 0.01 * len(j['steps'])
assert all(0 <= x['ci95_low_us'] <= x['median_us'] <= x['ci95_high_us'] for x in j['steps'])
assert [x['step'] for x in j['steps']] == list(range(len(j['steps'])))
assert 0 < j['share'] <= 1 and j['run_us'] > 0 and j['runs'] >= 5
e = j['environment']
assert e['plan'] == 'work.plan' and e['model'] is None and len(e['model_sha256']) == 64 and e['zc'] == e['compiled_by']
assert e['threads'] == 1 and e['device'] == 'cpu' and e['inputs'][0] == {'name': 'a', 'type': 'f32[4,5]'}
assert [e[x] for x in ('arch', 'bus', 'driver', 'cuda', 'clocks', 'transfers')] == 6 * [None]
assert j['peaks'] is None and all(x['peak_share'] is None and x['bound'] is None for x in j['steps'])" \
    "$zc" profile work.plan $quick --json
check_json peaks "$by_name
assert j['peaks']['bytes_per_second'] > 0 and j['peaks']['f32_operations_per_second'] > 0
assert j['peaks']['tensor_core_operations_per_second'] == {} and j['peaks']['launch_us'] is None
p = s['product']
assert p['peak_share'] > 0 and p['bound'] in ('memory', 'arithmetic') and p['products'] == p['choice'] == ''
assert abs(p['operations_per_byte'] - 240 / (50 + 24) / 4) < 1e-3, p" \
    "$zc" profile work.plan --seconds 0 --threads 1 --json
# The same numbers again, from the file; another number of threads, a damaged file and no folder are measured anew.
check_json peaks-kept "
k = json.load(open('$dir/first'))
assert not k['peaks'].pop('kept') and j['peaks'].pop('kept') and j['peaks'] == k['peaks']" \
    sh -c 'rm -rf "$ZC_CACHE_DIR" && "$1" profile work.plan --seconds 0 --threads 1 --json >first && "$1" profile work.plan --seconds 0 --threads 1 --json' sh "$zc"
check_json peaks-listed "
assert j['files'] == 1 and j['bytes'] > 40
(p,), k = j['peaks'], json.load(open('$dir/first'))
assert p['device'] == k['environment']['cpu'] and p['driver'] == 0 and p['threads'] == 1 and p['zc'] == k['environment']['zc']
assert p['bytes_per_second'] == k['peaks']['bytes_per_second']
assert p['f32_operations_per_second'] == k['peaks']['f32_operations_per_second']" "$zc" cache --json
expect peaks-listed-text 0 ", 1 threads, measured by zc " "$zc" cache
expect peaks-no-kernels 0 "kernels: 0 (0.0 MB)" "$zc" cache
expect peaks-said 0 "f32 products (measured before)" "$zc" profile work.plan --seconds 0 --threads 1
check_json peaks-threads "assert not j['peaks']['kept']" "$zc" profile work.plan --seconds 0 --threads 2 --json
for file in cache/*.peaks; do printf x >>"$file"; done
check_json peaks-damaged-list "assert j['files'] == 2 and j['peaks'] == []" "$zc" cache --json
check_json peaks-damaged "assert not j['peaks']['kept']" "$zc" profile work.plan --seconds 0 --threads 1 --json
check_json peaks-mended "assert j['peaks']['kept']" "$zc" profile work.plan --seconds 0 --threads 1 --json
check_json peaks-cleared "assert j['files'] == 0 and j['removed_files'] == 2 and j['peaks'] == []" "$zc" cache --clear --json
check_json peaks-nowhere "assert not j['peaks']['kept'] and j['peaks']['bytes_per_second'] > 0" \
    env ZC_CACHE_DIR=/dev/null "$zc" profile work.plan --seconds 0 --threads 1 --json

check_json by-operation "
g = j['operations']
assert sorted(x['name'] for x in g) == sorted({x['op'] for x in j['steps']}) and sum(x['steps'] for x in g) == len(j['steps'])
assert [x['us'] for x in g] == sorted((x['us'] for x in g), reverse=True) and 'modules' not in j
assert sum(x['operations'] for x in g) == sum(x['operations'] or 0 for x in j['steps'])" "$zc" profile work.plan $quick --json
check_json nodes "
assert {'product', 'twice', 'square', 'sum'} <= {n for x in j['steps'] for n in x['from']}
assert 'kernels' not in j and max(len(x['from']) for x in j['steps']) > 1, j['steps']" "$zc" profile work.plan $quick --json
expect text 0 " % of a run, medians of" "$zc" profile work.plan --seconds 0 --threads 1
expect text-peaks 0 "GFLOP/s of f32 products" "$zc" profile work.plan --seconds 0 --threads 1
expect by-operation 0 "1 LSTM" "$zc" profile work.plan $quick

expect trace 0 "" "$zc" profile work.plan $quick --trace trace.json
expect trace-events 0 "" python3 -c "
import json
e = json.load(open('trace.json'))['traceEvents']
assert e[0]['ph'] == 'M' and e[0]['args']['name'] == 'work.plan'
at = 0
for x in e[1:]:
    assert x['ph'] == 'X' and x['dur'] >= 0 and abs(x['ts'] - at) < 0.01
    at = x['ts'] + x['dur']
assert [x['args']['step'] for x in e[1:]] == list(range(len(e) - 1)) and 'product' in [x['name'] for x in e[1:]]
assert any({'twice', 'square'} <= set(x['args']['from']) for x in e[1:])"

cat >forms.txt <<'END'
form attention
opset 23
in q 1 1,2,4,8
in k 1 1,2,6,8
in v 1 1,2,6,8
out y 1 *
node Attention q,k,v y name=attention
END
"$writer" forms.txt . >/dev/null && "$zc" compile attention.onnx -o attention.plan -q
check_json attention "$by_name
assert s['attention']['operations'] == 2 * 2 * 4 * 6 * (8 + 8)" "$zc" profile attention.plan $quick --json

cat >forms.txt <<'END'
form modules
opset 17
in a 1 4,4
out y 1 *
node MatMul a,a b name=/encoder/layer.0/self/MatMul
node MatMul b,a c name=/encoder/layer.0/out/MatMul
node MatMul c,a d name=/encoder/layer.1/out/MatMul
node MatMul d,a y name=MatMul
END
"$writer" forms.txt . >/dev/null && "$zc" compile modules.onnx -o modules.plan -q
check_json modules "
g = {x['name']: x['steps'] for x in j['modules']}
assert g == {'/encoder/layer.0': 2, '/encoder/layer.1': 1, '(none)': 1}, g" "$zc" profile modules.plan $quick --modules 2 --json
expect modules-text 0 "1 /encoder/layer.1/out" "$zc" profile modules.plan $quick --modules 9
expect modules-none 1 "--modules: got '0'" "$zc" profile modules.plan --modules 0

# ---- ranges for NVIDIA's tools ----
runs=$(NVTX_INJECTION64_PATH=$nvtx ZC_TEST_NVTX=ranges "$zc" profile modules.plan $quick --json | python3 -c "
import json, sys
print(json.load(sys.stdin)['runs'] + 3)")
expect nvtx 0 "" python3 -c "
steps = ['/encoder/layer.0/self/MatMul', '/encoder/layer.0/out/MatMul', '/encoder/layer.1/out/MatMul', 'MatMul']
assert open('ranges').read().splitlines() == steps * $runs"
expect nvtx-not-in-runs 0 "" sh -c 'NVTX_INJECTION64_PATH=$2 ZC_TEST_NVTX=none "$1" run modules.plan --random >said && [ ! -e none ]' sh "$zc" "$nvtx"
expect nvtx-refuses 0 "" env NVTX_INJECTION64_PATH="$nvtx" ZC_TEST_NVTX=/nowhere/x "$zc" profile modules.plan $quick
for library in /nowhere.so "$zc" modules.plan ''; do
    expect "nvtx-wrong-$library" 0 "" env NVTX_INJECTION64_PATH="$library" "$zc" profile modules.plan $quick
done

# ---- names that would break out ----
cat >forms.txt <<'END'
form hostile
opset 17
in a 1 4
out y 1 *
node Softmax a y name="},{<script>'\u0041
END
"$writer" forms.txt . >/dev/null && "$zc" compile hostile.onnx -o hostile.plan -q
check_json hostile-json "$by_name
assert [n for n in s if '<script>' in n and n.startswith('\"},{')]" "$zc" profile hostile.plan $quick --json
expect hostile-trace 0 "" "$zc" profile hostile.plan $quick --trace hostile.json
expect hostile-events 0 "" python3 -c "
import json
assert any('<script>' in x['name'] for x in json.load(open('hostile.json'))['traceEvents'])"

# ---- refused ----
expect no-plan 1 "needs one plan (got 0)" "$zc" profile
expect two 1 "needs one plan (got 2)" "$zc" profile work.plan work.plan
expect absent 2 "absent.plan: cannot open" "$zc" profile absent.plan
expect trace-nowhere 2 "/nowhere/t.json: cannot open the directory" "$zc" profile work.plan $quick --trace /nowhere/t.json
}
finish
