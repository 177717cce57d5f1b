#!/bin/sh
# zc bench: what it prints, several plans and sessions, times that are kept and compared. No time is held to a number.
. "$(dirname "$0")/lib.sh"
cd "$dir" || exit 1
"$zc" compile "$src/models/digits/digits.onnx" -o digits.plan -q
cp digits.plan again.plan
"$zc" fill "$src/models/bench/mobilenet_v2.dynamo.dyn.onnx" -o other -q
quick="--seconds 0.1 --threads 1 --dim batch=1"

# ---- one plan ----
# shellcheck disable=SC2086
{
expect text 0 "runs: median" "$zc" bench digits.plan $quick
expect percentiles 0 "999 of 1000 within" "$zc" bench digits.plan $quick
expect throughput 0 "runs a second" "$zc" bench digits.plan $quick
check_json order "
v = [j[k] for k in ('min_ms', 'ci95_low_ms', 'median_ms', 'ci95_high_ms')] + [j['max_ms']]
assert v == sorted(v) and v[0] > 0
v = [j[k] for k in ('median_ms', 'p90_ms', 'p99_ms', 'p999_ms', 'max_ms')]
assert v == sorted(v)
assert j['runs'] >= 5 and j['warmup_runs'] >= 3 and j['stable'] in (True, False)
assert len(j['modes_ms']) in (0, 2)" "$zc" bench digits.plan $quick --json
check_json environment "
e = j['environment']
assert e['plan'] == 'digits.plan' and e['model'] == 'main_graph' and len(e['model_sha256']) == 64 and e['device'] == 'cpu'
assert [e[x] for x in ('arch', 'bus', 'driver', 'cuda', 'clocks', 'transfers')] == 6 * [None] and j['energy']['gpu'] is None
assert e['threads'] == 1 and e['concurrency'] == 1 and e['zc'] == e['compiled_by']
assert e['inputs'] == [{'name': 'image', 'type': 'f32[1,1,8,8]'}]" "$zc" bench digits.plan $quick --json
check_json steps "
s = j['steps']
assert [x['step'] for x in s] == list(range(len(s))) and len(s) > 3
assert all(x['ci95_low_us'] <= x['median_us'] <= x['ci95_high_us'] for x in s)
assert any(x['op'].startswith('Conv') and x['median_us'] > 0 for x in s)" "$zc" bench digits.plan $quick --json --steps
check_json warm-given "assert j['warmup_runs'] == 7 and j['stable'] is None and j['runs'] == 9" \
    "$zc" bench digits.plan --seconds 0 --iterations 9 --warmup 7 --json --dim batch=1
check_json processor-time "assert j['processor_time'] and 0 < j['min_ms'] <= j['median_ms']" \
    "$zc" bench digits.plan $quick --processor-time --json
expect processor-time-text 0 "ms of processor time (95" "$zc" bench digits.plan $quick --processor-time
expect processor-time-sessions 1 "--processor-time does nothing without one session" \
    "$zc" bench digits.plan $quick --processor-time --concurrency 2
check_json wall-time "assert not j['processor_time']" "$zc" bench digits.plan $quick --json
check_json warm-none "assert j['warmup_runs'] == 0" "$zc" bench digits.plan $quick --warmup 0 --json

expect export 0 "" "$zc" bench digits.plan $quick --iterations 7 --seconds 0 --export-times each.json
expect exported 0 "" python3 -c "
import json
each = json.load(open('each.json'))
assert len(each) >= 7 and all(x['latencyMs'] > 0 for x in each)"
expect export-alone 1 "--export-times does nothing without one plan" "$zc" bench digits.plan again.plan --export-times each.json

# ---- several sessions, several plans ----
check_json together "assert j['runs'] >= 12 and j['environment']['concurrency'] == 4 and j['runs_per_second'] > 0" \
    "$zc" bench digits.plan $quick --iterations 12 --concurrency 4 --json
check_json by-turns "
a, b = j['plans']
assert a['runs'] == b['runs'] and [x['environment']['plan'] for x in j['plans']] == ['digits.plan', 'again.plan']
(r,) = j['ratios']
assert r['plan'] == 'again.plan' and abs(r['ratio'] - b['median_ms'] / a['median_ms']) < 1e-3
assert 0 <= r['chance_longer'] <= 1 and 0 <= r['chance_less'] <= 1" "$zc" bench digits.plan again.plan $quick --json
expect ratio 0 "again.plan takes " "$zc" bench digits.plan again.plan $quick
expect among 0 "" "$zc" bench digits.plan again.plan $quick --max-slowdown 900%
check_json sweep "
assert [x['environment']['inputs'][0]['type'] for x in j['sweep']] == ['f32[%d,1,8,8]' % n for n in (1, 3, 2)]
assert all(x['median_ms'] > 0 for x in j['sweep'])" "$zc" bench digits.plan --seconds 0.05 --sweep batch=1,3,2 --json
expect sweep-text 0 "" sh -c '"$1" bench digits.plan --seconds 0.05 --sweep batch=1,3,2 >rows && [ "$(cut -f1 rows | tr "\n" " ")" = "batch 1 3 2 " ]' sh "$zc"
expect sweep-chart 0 "" sh -c '"$1" bench digits.plan --seconds 0.05 --sweep batch=1,200 --chart >rows &&
    grep -q "^batch=200  ############################################################ [0-9.]* ms$" rows &&
    grep -Eq "^batch=1    #* +[0-9.]* ms$" rows && [ "$(sed -n "3s/\t.*//p" rows)" = 200 ]' sh "$zc"
expect sweep-picture 0 "" sh -c '"$1" bench digits.plan --seconds 0.05 --sweep batch=1,200 --chart-file sweep.svg --json >rows' sh "$zc"
expect sweep-bars 0 "" python3 -c "
import json, re, xml.etree.ElementTree as tree
svg = '{http://www.w3.org/2000/svg}'
medians = [x['median_ms'] for x in json.load(open('rows'))['sweep']]
picture = tree.parse('sweep.svg').getroot()
widths = [float(r.get('width')) for r in picture.iter(svg + 'rect')]
assert picture.tag == svg + 'svg' and len(widths) == 2
assert abs(widths[0] / widths[1] - medians[0] / medians[1]) < 0.01, (widths, medians)
texts = [t.text for t in picture.iter(svg + 'text')]
labels = [re.fullmatch('batch=(1|200): ([0-9.e-]+) ms', text).groups() for text in texts[:2]]
assert [size for size, _ in labels] == ['1', '200'], labels
assert all(abs(float(ms) / median - 1) < 2e-3 for (_, ms), median in zip(labels, medians)), (labels, medians)"
expect picture-alone 1 "--chart-file does nothing without --sweep" "$zc" bench digits.plan --chart-file sweep.svg
expect picture-nowhere 2 "/nowhere/s.svg: cannot open the directory" \
    "$zc" bench digits.plan --seconds 0.05 --sweep batch=1,3 --chart-file /nowhere/s.svg
expect chart-alone 1 "--chart does nothing without --sweep" "$zc" bench digits.plan --chart
expect chart-json 1 "--chart does nothing without --sweep, and no --json" "$zc" bench digits.plan --sweep batch=1,3 --chart --json
expect sweep-size 1 "--sweep: got 'batch=1,-3', need NAME=1,8,32" "$zc" bench digits.plan --seconds 0.05 --sweep batch=1,-3
expect sweep-name 1 "bach: no input of the plan has a symbolic dimension of this name" "$zc" bench digits.plan --seconds 0.05 --sweep bach=1,3
expect sweep-save 1 "--sweep does nothing without one plan alone" "$zc" bench digits.plan --sweep batch=1,3 --save t
expect no-transfers-cpu 1 "transfers: there are none to leave out on the CPU" "$zc" bench digits.plan $quick --no-transfers
expect no-plan 1 "needs 1 to 16 plans (got 0)" "$zc" bench
expect alone-concurrency 1 "--concurrency does nothing without one plan" "$zc" bench digits.plan again.plan --concurrency 2
expect alone-save 1 "--save does nothing without one plan" "$zc" bench digits.plan again.plan --save t
expect absent 2 "absent.plan: cannot open" "$zc" bench digits.plan absent.plan $quick

# ---- times that are kept ----
expect save 0 "" "$zc" bench digits.plan $quick --save times
expect kept 0 "" sh -c 'grep -q "^zc-bench 1$" times && grep -q "^threads 1$" times && grep -q "^input f32\[1,1,8,8\] image$" times && grep -q "^step 0 " times'
expect save-nowhere 2 "/nowhere/times: cannot open the directory" "$zc" bench digits.plan $quick --save /nowhere/times
sed 's/^run .*/run 1000000/; s/^us .*/us 1000000 1000000 1000000 1000000 1000000 1000000 1000000/' times >slow
sed 's/^run .*/run 0.000001/; s/^us .*/us 0.000001 0.000001 0.000001 0.000001 0.000001 0.000001 0.000001/' times >fast
expect faster 0 "not slower than the baseline by more than 3%" "$zc" bench digits.plan $quick --baseline slow
expect slower 3 "digits.plan: slower than fast by more than 1000%" "$zc" bench digits.plan $quick --baseline fast --max-slowdown 1000%
expect slower-step 3 "(ConvNhwc) became slower (got " "$zc" bench digits.plan $quick --baseline fast
expect slower-json 3 "median_ms" "$zc" bench digits.plan $quick --baseline fast --json
sed '/^step/d; /^us/d;/^work/d' fast >stepless
expect stepless 3 "slower than stepless" "$zc" bench digits.plan $quick --baseline stepless

# ---- what is no baseline ----
"$zc" compile other/model.onnx -o other.plan -q
refused() { # NAME SED TEXT
    sed "$2" fast >bad
    expect "refused-$1" 2 "$3" "$zc" bench digits.plan $quick --baseline bad
}
refused version 's/^zc-bench 1/zc-bench 2/' 'bad: line 1: need "zc-bench 1"'
refused device 's/^device .*/device abacus/' "bad: times of something else (got 'device abacus', need 'device "
refused input 's/^input .*/input f32[2,1,8,8] image/' "times of something else (got 'input f32[2,1,8,8] image', need 'input f32[1,1,8,8] image')"
refused none '/^run/d' "need runs"
refused number '7,20s/^run .*/run fast/' "need a run's milliseconds"
refused negative 's/^run .*/run -1/' "need a run's milliseconds"
refused infinite 's/^run .*/run inf/' "need a run's milliseconds"
refused two 's/^run .*/run 1 2/' "need a run's milliseconds"
refused step 's/^step 0 /step x /' "need a step"
refused us 's/^us .*/us/' "need a step's microseconds"
refused many "s/^us .*/us $(seq -s ' ' 1 300)/" "need a step's microseconds"
{ sed '/^step/,$d' fast; yes 'run 0.000001' | head -4000; } >bad
expect refused-runs 2 "need no more runs" "$zc" bench digits.plan $quick --baseline bad
expect other-model 2 "times of something else (got 'model " "$zc" bench other.plan $quick --baseline fast
expect other-threads 2 "(got 'threads 1', need 'threads 2')" "$zc" bench digits.plan --seconds 0.1 --threads 2 --dim batch=1 --baseline fast
expect a-plan 2 'need "zc-bench 1"' "$zc" bench digits.plan $quick --baseline digits.plan
: >empty
expect empty 2 'need "zc-bench 1"' "$zc" bench digits.plan $quick --baseline empty
expect folder 2 "other" "$zc" bench digits.plan $quick --baseline other
expect missing 2 "missing: cannot open" "$zc" bench digits.plan $quick --baseline missing
expect limit-alone 1 "--max-slowdown does nothing without --baseline, or several plans" "$zc" bench digits.plan --max-slowdown 3%
for value in 3 -1% x% nan% 2000%; do
    expect "limit-$value" 1 "--max-slowdown: got '$value', need a share from 0% to 1000%" \
        "$zc" bench digits.plan --baseline fast --max-slowdown "$value"
done
}
finish
