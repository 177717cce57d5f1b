#!/bin/sh
# usage: run.sh ZC SOURCE_DIR FAKE_DRIVER_DIR GPU_SERVICE: the command line and the example on the fake driver, and
# without it.
. "$(dirname "$0")/../cli/lib.sh"
fake=$3
service=$4
export ZC_CACHE_DIR="$dir/cache"
unset XDG_CACHE_HOME LD_LIBRARY_PATH
for variable in FAIL DEVICES MEMORY CC TRACE SHUFFLE; do unset "ZC_HOSTCUDA_$variable"; done
plan=$dir/digits.plan
stripped=$dir/stripped.plan
data_set=$dir/case
mkdir "$data_set"
cp -r "$model" "$src/models/digits/test_data_set_0" "$data_set"
mv "$data_set/digits.onnx" "$data_set/model.onnx"

# on NAME=VALUE... COMMAND...: with the fake driver. A folder with the driver alone has no NVRTC.
on() {
    env LD_LIBRARY_PATH="$fake" "$@"
}
mkdir "$dir/driver"
ln -s "$fake/libcuda.so.1" "$dir/driver/libcuda.so.1"
no_nvrtc() {
    env LD_LIBRARY_PATH="$dir/driver" "$@"
}

# ---- compiling ----
expect compile 0 "" on "$zc" compile "$model" -o "$plan" --target sm_90 --quiet
expect compile-strip 0 "" on "$zc" compile "$model" -o "$stripped" --target sm_90 --strip-sources --quiet
expect compile-fails 2 "NVRTC: NVRTC_ERROR_COMPILATION" on ZC_CACHE_DIR="$dir/none" \
    ZC_HOSTCUDA_FAIL=nvrtcCompileProgram:1:6 "$zc" compile "$model" -o "$dir/failed.plan" --target sm_90
expect compile-fails-no-plan 1 "" test -e "$dir/failed.plan"
# A file that may not grow, while one thread writes the constants and others compile.
echo old >"$dir/full.plan"
expect compile-full 2 "full.plan: cannot write (File too large)" \
    on sh -c 'ulimit -f 16 && exec "$@"' sh "$zc" compile "$model" -o "$dir/full.plan" --target sm_90
expect compile-full-kept 0 "old" cat "$dir/full.plan"

# ---- signals while kernels are compiled: the compiler takes the handlers ----
# ended_by SIGNAL COMPILER: the exit code of a compilation by the NVRTC in this folder that gets the signal after its first
# kernel, which no test has compiled before; a hang is killed.
ended_by() {
    rm -rf "$dir/signalled"
    env -u ZC_HOSTCUDA_CACHE --default-signal="$1" LD_LIBRARY_PATH="$2" ZC_CACHE_DIR="$dir/signalled" \
        "$zc" compile "$model" -o "$dir/signalled.plan" --target sm_90 --threads 1 --quiet &
    pid=$!
    while kill -0 $pid 2>/dev/null && [ -z "$(find "$dir/signalled" -type f 2>/dev/null)" ]; do sleep 0.02; done
    kill -"$1" $pid
    { sleep 20 && kill -KILL $pid; } 2>/dev/null &
    watchdog=$!
    wait $pid
    echo "ended $?"
    kill $watchdog
}
end_at_once() { # NAME COMPILER
    for signal in INT=130 TERM=143 HUP=129; do
        expect "$1-${signal%=*}" 0 "ended ${signal#*=}" ended_by "${signal%=*}" "$2"
        expect "$1-${signal%=*}-no-plan" 1 "" test -e "$dir/signalled.plan"
    done
}
end_at_once signal "$fake"
if [ -n "${ZC_NVRTC:-}" ]; then
    end_at_once signal-nvrtc "$ZC_NVRTC"
else
    skip signal-nvrtc "ZC_NVRTC is not set"
fi

# ---- products on the tensor cores only where they are asked for ----
uses_tf32() {
    on "$zc" compile "$model" -o "$dir/$1.plan" --target sm_90 --precision "$1" --quiet --emit-cuda "$dir/$1" &&
        grep -rl 'Z_MMA zc_mma_m16n8k8_tf32' "$dir/$1"
}
expect tf32 0 "linear" uses_tf32 tf32
expect tf32-run 0 "on hostcuda" on "$zc" run "$dir/tf32.plan" --random --dim batch=9 --device cuda
expect tf32-not-by-default 1 "" uses_tf32 f32

# ---- kernels for sizes that are named ----
expect profile 0 "" on "$zc" compile "$model" -o "$dir/profile.plan" --target sm_90 --profile batch=1,8 --quiet
expect profile-listed 0 "on sm_90 where batch = 8 by " "$zc" inspect "$dir/profile.plan"
expect profile-json 0 '"where": [{"size": "batch", "low": 1, "high": 1}]' "$zc" inspect "$dir/profile.plan" --json
expect no-profile 1 "" sh -c '"$1" inspect "$2" | grep "where batch ="' sh "$zc" "$plan"
expect target-listed 0 "for cuda (sm_90), format" "$zc" inspect "$plan"
expect tf32-listed 0 ", products by tf32" "$zc" inspect "$dir/tf32.plan"
# ---- why a kernel was chosen, and how long it took ----
inspects() { # SUFFIX-OF-TEXT OPTION...: what inspect says of the model's products, compiled with these options
    on "$zc" compile "$model" -o "$dir/why.plan" --target sm_90 --quiet "$@" && "$zc" inspect "$dir/why.plan"
}
expect why-no-tensor-cores 0 "; not gemm_mma: no exact tensor core product of f32)" inspects
expect why-instruction 0 "threads=384, smem=231552, cluster=1} (wgmma: 128x64 " inspects --precision f16
expect verbose 0 " kernels: " on env ZC_CACHE_DIR="$dir/cold" "$zc" compile "$model" -o "$dir/why.plan" --target sm_90 --verbose
expect verbose-cached 0 " sm_90: from the cache" \
    on env ZC_CACHE_DIR="$dir/cold" "$zc" compile "$model" -o "$dir/why.plan" --target sm_90 --verbose
expect verbose-no-gpu 1 "--verbose does nothing without --output, and --target of a GPU or --precision auto" \
    "$zc" compile "$model" -o "$dir/none.plan" --verbose

expect profile-run 0 "on hostcuda" on "$zc" run "$dir/profile.plan" --random --dim batch=8 --device cuda
expect profile-run-cpu 0 "on cpu" "$zc" run "$dir/profile.plan" --random --dim batch=8 --device cpu
expect profile-no-size 1 "--profile: got 'batch='" "$zc" compile "$model" -o "$dir/none.plan" --target sm_90 --profile batch=
expect profile-negative 1 "--profile: got 'batch=1,-8'" \
    "$zc" compile "$model" -o "$dir/none.plan" --target sm_90 --profile batch=1,-8
expect profile-unknown 1 "rows: no input has a dimension of this name" \
    on "$zc" compile "$model" -o "$dir/none.plan" --target sm_90 --profile rows=1
expect profile-no-gpu 1 "--profile does nothing without --target of a GPU" \
    "$zc" compile "$model" -o "$dir/none.plan" --profile batch=1
expect profile-no-plan 1 "" test -e "$dir/none.plan"

expect emit-no-gpu 1 "--emit-cuda does nothing without --target of a GPU" \
    "$zc" compile "$model" -o "$dir/none.plan" --target cpu --emit-cuda "$dir/none"

# ---- D1: no driver, no GPU ----
if ldconfig -p 2>/dev/null | grep -q libcuda.so.1; then
    skip no-driver "this machine has a CUDA driver"
else
    expect no-driver 5 "no CUDA driver is installed (libcuda.so.1" "$zc" run "$plan" --random --device cuda
    expect no-driver-conform 5 "no CUDA driver is installed" "$zc" conform "$data_set" --device cuda
    expect no-driver-conform-in-process 5 "no CUDA driver is installed" \
        "$zc" conform "$data_set" --device cuda --in-process
    expect no-driver-conform-auto 0 "1 passed" "$zc" conform "$data_set" --device auto --atol 1e-5
    expect no-driver-auto 0 "on cpu" "$zc" run "$plan" --random --device auto
fi
expect no-gpu 5 "the CUDA driver sees no GPU" on ZC_HOSTCUDA_DEVICES=0 "$zc" run "$plan" --random --device cuda
expect no-gpu-auto 0 "on cpu" on ZC_HOSTCUDA_DEVICES=0 "$zc" run "$plan" --random
expect gpu-99 5 "no such GPU (got number 99, there is 1)" on "$zc" run "$plan" --random --device cuda:99
expect gpu-none 1 "--device: got 'cuda:x', need a GPU's number" on "$zc" run "$plan" --random --device cuda:x
expect gpu 0 "on hostcuda sm_90 (sm_90): " on "$zc" run "$plan" --random --device cuda
expect gpu-auto 0 "on hostcuda sm_90 (sm_90): " on "$zc" run "$plan" --random
expect cpu-plan 2 "" "$zc" run "$dir/absent.plan" --device cuda
on "$zc" compile "$model" -o "$dir/cpu.plan" --quiet
expect cpu-plan-cuda 5 "the plan was compiled for the CPU alone" on "$zc" run "$dir/cpu.plan" --random --device cuda

# ---- D3, D4: another GPU; the compiler is needed for that only ----
expect other-gpu 0 "kernels were compiled now because the plan has none for this GPU" \
    on ZC_HOSTCUDA_CC=80 "$zc" run "$plan" --random --device cuda
expect other-gpu-stripped 5 "(built for sm_90, need sm_80)" \
    on ZC_HOSTCUDA_CC=80 "$zc" run "$stripped" --random --device cuda
expect run-traced 0 "on hostcuda" on ZC_HOSTCUDA_TRACE="$dir/trace" "$zc" run "$plan" --random --device cuda
expect run-without-nvrtc 1 "" grep nvrtc "$dir/trace"
expect run-driver-alone 0 "on hostcuda" no_nvrtc "$zc" run "$stripped" --random --device cuda

# ---- D6, D7, D10: faults on the way ----
expect no-memory 5 "MiB of 0 MiB are free)" on ZC_HOSTCUDA_MEMORY=1000 "$zc" run "$plan" --random --device cuda
expect lost 5 "CUDA_ERROR_ILLEGAL_ADDRESS (700): " \
    on ZC_HOSTCUDA_FAIL=cuStreamSynchronize:2:700 "$zc" run "$plan" --random --device cuda
expect lost-launch 5 "CUDA_ERROR_LAUNCH_FAILED (719): " \
    on ZC_HOSTCUDA_FAIL=cuLaunchKernelEx:2:719 "$zc" run "$plan" --random --device cuda
expect no-capture 0 "" on ZC_HOSTCUDA_FAIL=cuStreamBeginCapture_v2:1:900 "$zc" bench "$plan" --device cuda

# ---- what a measurement holds ----
# copies DIRECTION OPTION...: how many a bench with these options makes.
copies() {
    call=cuMemcpy$1Async_v2
    shift
    rm -f "$dir/trace"
    on ZC_HOSTCUDA_TRACE="$dir/trace" "$zc" bench "$plan" --device cuda --dim batch=1 --seconds 0 --warmup 0 "$@" \
        >/dev/null 2>&1 && grep -c "$call" "$dir/trace"
}
more_copies() { # ... 20 more runs make
    direction=$1
    shift
    few=$(copies "$direction" --iterations 1 "$@")
    many=$(copies "$direction" --iterations 21 "$@")
    echo "$((many - few)) more of $few"
}
expect transfers-in 0 "20 more of " more_copies HtoD
expect transfers-out 0 "20 more of " more_copies DtoH
expect no-transfers-in 0 "0 more of " more_copies HtoD --no-transfers
expect no-transfers-out 0 "0 more of " more_copies DtoH --no-transfers
expect no-transfers-together 0 "; inputs and results stayed there" \
    on "$zc" bench "$plan" --device cuda --seconds 0 --no-transfers --concurrency 2
expect transfers-said 0 "; with inputs brought there and results brought back" on "$zc" bench "$plan" --device cuda --seconds 0
# An event stands before each step and behind the last: none of them may have a copy of an input in it.
steps=$("$zc" inspect "$plan" --json | python3 -c "import json, sys; print(len(json.load(sys.stdin)['steps']))")
rm -f "$dir/trace"
expect steps-profiled 0 "" on ZC_HOSTCUDA_TRACE="$dir/trace" "$zc" profile "$plan" --device cuda --seconds 0 --no-peaks
expect steps-without-inputs 0 "8 copies" awk -v events="$((steps + 1))" '
    /cuEventRecord/ { n++ }
    n == 0 && /cuMemcpyHtoD/ { first = 1 }
    n > 0 && /cuMemcpyHtoD/ { later++; if (n % events) wrong++ }
    END { print first + later " copies"; exit wrong > 0 }' "$dir/trace"
on "$zc" bench "$plan" --device cuda --seconds 0 --no-transfers --save "$dir/times" >/dev/null 2>&1
expect transfers-kept 0 "" grep -q "^transfers none$" "$dir/times"
expect transfers-differ 2 "times of something else (got 'transfers none', need 'input " \
    on "$zc" bench "$plan" --device cuda --seconds 0 --baseline "$dir/times"

# ---- memory, foretold ----
check_json memory "
assert j['arch'] == 'sm_90' and j['code_bytes'] > 0 and j['device_weight_bytes'] > 0 and j['unknown_workspaces'] == 0
assert j['workspace_bytes'] == max(s['workspace_bytes'] for s in j['steps']) > 0" \
    "$zc" inspect "$plan" --memory --dim batch=300 --json
expect memory-text 0 " bytes of workspace on sm_90" "$zc" inspect "$plan" --memory --dim batch=300

# ---- the GPU's peaks ----
check_json peaks "
p = j['peaks']
assert p['bytes_per_second'] > 0 and p['f32_operations_per_second'] > 0 and p['launch_us'] > 0 and not p['kept']
assert set(p['tensor_core_operations_per_second']) == {'f16', 'bf16', 'tf32', 'e4m3', 's8'}, p
assert all(s['bound'] in ('memory', 'arithmetic', 'launch', None) for s in j['steps']) and any(s['peak_share'] for s in j['steps'])
assert all(s['products'] == '' for s in j['steps']) and any('no tensor cores' in s['choice'] for s in j['steps']), j['steps']" \
    on "$zc" profile "$plan" --device cuda --seconds 0 --json
check_json peaks-kept "assert j['peaks']['kept']" on "$zc" profile "$plan" --device cuda --seconds 0 --json
check_json peaks-of-products "
assert [s['products'] for s in j['steps'] if s['op'] == 'Linear'][0] == 'wgmma.tf32', [(s['op'], s['products']) for s in j['steps']]" \
    on "$zc" profile "$dir/tf32.plan" --dim batch=80 --device cuda --seconds 0 --json
check_json by-kernel "
g = j['kernels']
assert sum(x['steps'] for x in g) == len(j['steps']) and {x['name'] for x in g} == {x['kernel'] or '(none)' for x in j['steps']}
assert abs(sum(x['us'] for x in g) - j['sum_us']) < 0.01 * len(j['steps'])" \
    on "$zc" profile "$plan" --device cuda --seconds 0 --no-peaks --json
expect by-kernel-text 0 "steps of a kernel" on "$zc" profile "$plan" --device cuda --seconds 0 --no-peaks
check_json in-graph "
own = [s for s in j['steps'] if s['end_us'] > s['begin_us']]
assert j['in_graph'] and len(own) > 3 and all(s['kernel'] for s in own) and j['peaks']['launch_us'] is None
assert all(s['gap_us'] >= 0 and s['overlap_us'] >= 0 and 'median_us' not in s for s in j['steps'])
assert [s['begin_us'] for s in own] == sorted(s['begin_us'] for s in own) and own[0]['begin_us'] == 0
assert abs(sum(s['mean_us'] for s in j['steps']) - j['sum_us']) < 0.01 * len(j['steps'])
assert 0.9 * j['device_us'] < j['sum_us'] < 1.2 * j['device_us'], (j['device_us'], j['sum_us'])" \
    on "$zc" profile "$plan" --device cuda --seconds 0 --dim batch=100 --in-graph --trace "$dir/graph.json" --json
expect in-graph-trace 0 "" python3 -c "
import json
e = json.load(open('$dir/graph.json'))['traceEvents'][1:]
assert len(e) > 3 and e[0]['ts'] == 0 and {x['tid'] for x in e} <= {1, 2}
assert all(a['ts'] <= b['ts'] <= a['ts'] + a['dur'] + 0.01 <= b['ts'] + b['dur'] + 0.02 for a, b in zip(e, e[1:])), e
for row in (1, 2):
    x = [x for x in e if x['tid'] == row]
    assert all(a['ts'] + a['dur'] <= b['ts'] + 0.01 for a, b in zip(x, x[1:])), x"
expect in-graph-text 0 " means of 5 runs" on "$zc" profile "$plan" --device cuda --seconds 0 --in-graph
expect in-graph-stripped 2 "compile the model without --strip-sources" \
    on "$zc" profile "$stripped" --device cuda --seconds 0 --in-graph
expect in-graph-on-the-cpu 1 "--in-graph: needs a GPU" "$zc" profile "$plan" --device cpu --in-graph
expect peaks-in-words 0 "; tensor cores: f16 " on "$zc" profile "$plan" --device cuda --seconds 0
check_json peaks-mma "assert set(j['peaks']['tensor_core_operations_per_second']) == {'f16', 'bf16', 'tf32', 's8'} and not j['peaks']['kept']" on ZC_HOSTCUDA_CC=80 "$zc" profile "$plan" --device cuda --seconds 0 --json
expect peaks-listed 0 "peaks of hostcuda sm_90, driver for CUDA 13.0, measured by zc " on "$zc" cache
expect peaks-no-memory 5 "probe: not enough memory on hostcuda sm_90 (need 257 MiB" \
    on ZC_CACHE_DIR=/dev/null ZC_HOSTCUDA_MEMORY=200000000 "$zc" profile "$plan" --device cuda --seconds 0

# ---- energy and clocks, of the fake management library ----
for_a_second="--device cuda --dim batch=1 --seconds 1.1"
# shellcheck disable=SC2086
{
check_json energy "
e, c = j['energy']['gpu'], j['environment']['clocks']
assert 280 < e['watts'] < 320 and abs(e['joules'] - e['joules_per_run'] * j['runs']) < 1e-3 and e['joules'] > 280
assert c == {'sm_low_mhz': 1980, 'sm_high_mhz': 1980, 'memory_low_mhz': 2619, 'memory_high_mhz': 2619,
             'begin_celsius': 41, 'end_celsius': 41, 'moved': False, 'held_by': []}
e = j['environment']
assert (e['arch'], e['bus'], e['driver'], e['cuda'], e['transfers']) == ('sm_90', '0000:17:00.0', '580.65.06', '13.0', True)" \
    on "$zc" bench "$plan" $for_a_second --json
check_json energy-by-power "assert 299 < j['energy']['gpu']['watts'] < 301" on ZC_HOSTNVML=power "$zc" bench "$plan" $for_a_second --json
check_json energy-second-gpu "assert j['environment']['bus'] == '0000:18:00.0' and j['environment']['clocks']" \
    on ZC_HOSTCUDA_DEVICES=2 "$zc" bench "$plan" --device cuda:1 --seconds 0 --json
check_json energy-too-short "assert j['energy']['gpu'] is None and j['environment']['clocks']" \
    on "$zc" bench "$plan" --device cuda --seconds 0 --json
check_json energy-of-two "assert all(x['energy']['gpu'] is None for x in j['plans'])" \
    on "$zc" bench "$plan" "$stripped" $for_a_second --json
expect energy-reported 0 "" on "$zc" report "$plan" $for_a_second --no-peaks --save "$dir/energy.times" -o "$dir/energy.html"
expect energy-saved 0 "" awk '/^energy gpu / && $3 > 0 && $4 > 280 && $4 < 320 { found = 1 } END { exit !found }' "$dir/energy.times"
expect energy-on-the-page 0 "W on average" cat "$dir/energy.html"
expect clocks-on-the-page 0 "SM 1980 MHz, memory 2619 MHz, 41 to 41 C" cat "$dir/energy.html"
expect energy-text 0 " J a run, " on "$zc" bench "$plan" $for_a_second
expect clocks-moved 0 "clocks moved by more than 5 %: SM " on ZC_HOSTNVML=falling "$zc" bench "$plan" $for_a_second
expect clocks-held 0 "; held down by: power cap" on ZC_HOSTNVML=falling "$zc" profile "$plan" --device cuda --seconds 0
}
check_json no-energy "
assert j['energy']['gpu'] is None and j['environment']['clocks'] is None and j['environment']['driver'] is None" \
    on ZC_HOSTNVML=broken "$zc" bench "$plan" --device cuda --seconds 1.1 --json
check_json no-nvml "assert j['environment']['clocks'] is None and j['environment']['cuda'] == '13.0'" \
    no_nvrtc "$zc" profile "$plan" --device cuda --seconds 0 --json

# ---- the cache ----
expect cache-look 0 "$dir/cache: kernels: " on "$zc" cache
files=$(ls "$dir/cache" | wc -l)
expect cache-json 0 "\"folder\": \"$dir/cache\", \"files\": $files, " "$zc" cache --json
expect cache-both 1 "--clear and --keep exclude each other" "$zc" cache --clear --keep 1
expect cache-operand 1 "takes no operand (got 'x')" "$zc" cache x
expect cache-keep-bad 1 "--keep: got '-1'" "$zc" cache --keep -1
expect cache-keep-much 0 "\"files\": $files, " "$zc" cache --keep 1000 --json
expect cache-keep-none 0 "\"files\": 0, \"bytes\": 0, \"removed_files\": $files, " "$zc" cache --keep 0 --json
expect compile-again 0 "" on "$zc" compile "$model" -o "$dir/again.plan" --target sm_90 --quiet
expect compile-cached 0 "" on ZC_HOSTCUDA_FAIL=nvrtcCompileProgram:1:6 \
    "$zc" compile "$model" -o "$dir/cached.plan" --target sm_90 --quiet
expect same-plan 0 "" cmp "$dir/again.plan" "$dir/cached.plan"
expect cache-clear 0 "kernels: 0 (0.0 MB), removed: " "$zc" cache --clear
expect cache-empty 0 "kernels: 0 (0.0 MB)" "$zc" cache
expect cache-absent 0 "kernels: 0 (0.0 MB)" env ZC_CACHE_DIR="$dir/absent" "$zc" cache --clear
expect cache-none 0 "no cache: none of ZC_CACHE_DIR, XDG_CACHE_HOME and HOME" \
    env -u ZC_CACHE_DIR -u HOME -u XDG_CACHE_HOME "$zc" cache
expect cache-none-json 0 "\"folder\": null, \"files\": 0, " env -u ZC_CACHE_DIR -u HOME "$zc" cache --json
expect cache-no-folder 2 "cannot be read" env ZC_CACHE_DIR="$plan" "$zc" cache
expect compile-uncached 0 "" on ZC_CACHE_DIR=/dev/null "$zc" compile "$model" -o "$dir/again.plan" --target sm_90 --quiet
expect run-uncached 0 "on hostcuda" on "$zc" run "$dir/again.plan" --random --device cuda

# Two processes that compile the same at once.
on "$zc" compile "$model" -o "$dir/one.plan" --target sm_90 --quiet &
one=$!
expect compile-two 0 "" on "$zc" compile "$model" -o "$dir/two.plan" --target sm_90 --quiet
expect compile-one 0 "" wait $one
expect run-one 0 "on hostcuda" on "$zc" run "$dir/one.plan" --random --device cuda
expect run-two 0 "on hostcuda" on "$zc" run "$dir/two.plan" --random --device cuda
no_temporaries cache-temporaries "$dir/cache"

# ---- zc report ----
expect report 0 "" on "$zc" report "$plan" -o "$dir/report.html" --device cuda --seconds 0 --dim batch=2 --save "$dir/gpu.times"
expect report-device 0 "<td>hostcuda sm_90</td>" cat "$dir/report.html"
kernel=$(sed -n 's/^work .* \(zc_[a-z0-9_]*\)$/\1/p' "$dir/gpu.times" | head -1)
expect report-kernel 0 ">$kernel</td>" cat "$dir/report.html"
expect report-cpu-steps 0 "<h3>Steps on the CPU</h3>" cat "$dir/report.html"
expect report-roof 0 '<path class="roof"' cat "$dir/report.html"
expect report-peaks 0 "TFLOP/s" cat "$dir/report.html"
expect report-peaks-saved 0 "peak e4m3 " cat "$dir/gpu.times"
expect report-half-a-roof 0 "" on "$zc" report "$plan" --device cuda --seconds 0 --no-peaks --save "$dir/half.times" -o "$dir/half.html"
expect report-elsewhere 0 "" "$zc" report "$plan" --times "$dir/gpu.times" -o "$dir/elsewhere.html"
expect report-no-gpu 5 "the CUDA driver sees no GPU" on ZC_HOSTCUDA_DEVICES=0 "$zc" report "$plan" -o "$dir/none.html" --device cuda
expect report-none 1 "" test -e "$dir/none.html"

# ---- zc debug ----
echo 'rule bad { match o = Relu(x); emit o = LeakyRelu(x); }' >"$dir/leaky.zcr"
expect debug-clean 0 "no difference" on "$zc" debug "$model" --device cuda
expect debug-rule 3 "rule bad ($dir/leaky.zcr:1) is the first to change the answer" \
    on "$zc" debug "$model" --device cuda --rules "$dir/leaky.zcr" --force-rules
expect debug-no-gpu 5 "the CUDA driver sees no GPU" on ZC_HOSTCUDA_DEVICES=0 "$zc" debug "$model" --device cuda
expect debug-auto 0 "no difference" on ZC_HOSTCUDA_DEVICES=0 "$zc" debug "$model" --device auto

# ---- the example ----
expect service-usage 1 "usage: gpu_service" "$service" "$plan" cpu device 2 10
expect service-cpu 0 "answered 100, refused 0" "$service" "$plan" cpu host 4 100
expect service-host 0 "answered 60, refused 0" on "$service" "$plan" cuda host 4 60
expect service-device 0 "answered 60, refused 0" on "$service" "$plan" cuda device 4 60
expect service-no-gpu 3 "$plan: cuda: the CUDA driver sees no GPU" \
    on ZC_HOSTCUDA_DEVICES=0 "$service" "$plan" cuda host 2 10
expect service-passing 1 "answered 39, refused 1" on ZC_HOSTCUDA_FAIL=cuLaunchKernelEx:9:701 \
    "$service" "$plan" cuda host 3 40
expect service-lost 3 "the device is lost" on ZC_HOSTCUDA_FAIL=cuLaunchKernelEx:40:700 \
    "$service" "$plan" cuda device 3 100000
expect service-stopped 0 "refused 0" on timeout --preserve-status -s TERM 3 "$service" "$plan" cuda device 3 100000000

finish
