#!/bin/sh
# usage: inspect.sh ZC SOURCE_DIR: what zc inspect says of models and plans.
. "$(dirname "$0")/lib.sh"
plan=$dir/digits.plan
"$zc" compile "$model" -o "$plan" -q

expect head 0 "plan by zc 0.1.0 for cpu, format " "$zc" inspect "$plan"
hash=$(sha256sum <"$model" | cut -d' ' -f1)
expect model-hash 0 "SHA-256 $hash" "$zc" inspect "$plan"
expect input 0 "input image: f32[batch,1,8,8]" "$zc" inspect "$plan"
expect output 0 "output probabilities: f32[batch,10]" "$zc" inspect "$plan"
expect constant 0 "%net.head.2.bias: f32[10], 40 bytes" "$zc" inspect "$plan"
expect no-hash 1 "" sh -c '"$1" inspect "$2" | grep sha256:' sh "$zc" "$plan"
expect hashes 0 "bytes, sha256:" "$zc" inspect "$plan" --hashes
expect step 0 ': %probabilities: f32[batch,10] = Softmax(%linear: f32[batch,10]) {axis = 1} @ "node_softmax" from "node_softmax"' \
    "$zc" inspect "$plan"
expect provenance 0 'from "node_Conv_45", "node_relu"' "$zc" inspect "$plan"

# The SHA-256 of a constant of known elements: the i64 0 and 256.
hash=$(printf '\000\000\000\000\000\000\000\000\000\001\000\000\000\000\000\000' | sha256sum | cut -d' ' -f1)
expect constant-hash 0 "i64[2], 16 bytes, sha256:$hash" "$zc" inspect "$plan" --hashes

# Working memory, against what a session holds after a run: its inputs, outputs of 40 bytes a row, and tables beside.
expect memory-unknown 0 "working memory depends on dimensions" "$zc" inspect "$plan"
expect memory-bad-dim 1 "bogus: no input of the plan has a symbolic dimension of this name" \
    "$zc" inspect "$plan" --dim bogus=3
need=$("$zc" inspect "$plan" --dim batch=64 | sed -n 's/ bytes of working memory$//p')
held=$("$zc" bench "$plan" --random --dim batch=64 --seconds 0.05 --json | sed 's/.*"session_bytes": \([0-9]*\).*/\1/')
inputs=$((64 * 64 * 4))
expect memory 0 "" test "$need" -gt 100000 -a "$need" -le "$held" -a "$held" -le $((need + inputs + 64 * 40 + 262144))
"$zc" compile "$model" -o "$dir/static.plan" -q --dim batch=1
expect memory-static 0 " bytes of working memory" "$zc" inspect "$dir/static.plan"

expect memory-steps 0 "ConvNhwc  node_Conv_47  <- the most" "$zc" inspect "$plan" --memory --dim batch=64
expect memory-holders 0 "f32[64,8,8,32], steps " "$zc" inspect "$plan" --memory --dim batch=64
expect memory-no-dim 1 "working memory depends on dimensions (give them by --dim NAME=VALUE)" "$zc" inspect "$plan" --memory
expect memory-of-model 1 "--memory is of plans (got a model)" "$zc" inspect "$model" --memory
expect memory-dot 1 "needs one of --memory and --dot" "$zc" inspect "$plan" --memory --dot
check_json memory-json "
assert j['working_bytes'] == $need and j['live_bytes'] == max(s['live_bytes'] for s in j['steps'])
assert j['steps'][j['peak_step']]['live_bytes'] == j['live_bytes']
assert sum(v['bytes'] for v in j['values'] if v['at_peak']) == j['live_bytes']
assert abs(j['gaps'] - (1 - j['live_bytes'] / j['working_bytes'])) < 1e-5
assert j['arch'] is None and j['context_bytes'] is None and all(s['workspace_bytes'] is None for s in j['steps'])
for s in j['steps']:
    assert s['live_bytes'] == sum(v['bytes'] for v in j['values'] if v['first'] <= s['step'] <= v['last'])" \
    "$zc" inspect "$plan" --memory --dim batch=64 --json

if command -v python3 >/dev/null; then
    cat >"$dir/check.py" <<'CHECK'
import json, sys
plan = json.load(sys.stdin)
assert plan["target"] == "cpu" and plan["inputs"][0]["dims"] == ["batch", 1, 8, 8], plan["inputs"]
assert plan["outputs"][0]["name"] == "probabilities"
assert sum(c["bytes"] for c in plan["constants"]) == plan["weight_bytes"]
assert all(len(c["sha256"]) == 64 for c in plan["constants"])
assert plan["working_bytes"] == int(sys.argv[1]), plan["working_bytes"]
steps = {s["index"]: s for s in plan["steps"]}
assert [steps[i]["op"] for i in plan["blocks"][0]["steps"]][-1] == "Softmax"
made = {v["name"] for v in plan["inputs"]} | {c["name"] for c in plan["constants"]}
for i in plan["blocks"][0]["steps"]:
    assert all(v is None or v["name"] in made for v in steps[i]["inputs"]), steps[i]
    made |= {v["name"] for v in steps[i]["outputs"] if v}
print("ok")
CHECK
    "$zc" inspect "$plan" --json --hashes --dim batch=64 >"$dir/plan.json"
    expect json 0 "ok" python3 "$dir/check.py" "$need" <"$dir/plan.json"
    "$zc" inspect "$plan" --json >"$dir/plan.json"
    expect json-unknown 0 '"working_bytes": null' cat "$dir/plan.json"
else
    skip json "no python3"
fi
expect dot-plan 0 "digraph plan {" "$zc" inspect "$plan" --dot
expect dot-model 0 "digraph model {" "$zc" inspect "$model" --dot
if command -v dot >/dev/null; then
    "$zc" inspect "$plan" --dot >"$dir/plan.dot"
    expect dot-reads 0 "<svg" dot -Tsvg "$dir/plan.dot"
fi

# Stages of a model.
expect imported 0 "= Conv(" "$zc" inspect "$model"
expect after-pass 0 "= Linear(" "$zc" inspect "$model" --pass opt_rules
expect before-layout 1 "" sh -c '"$1" inspect "$2" --pass opt_rules | grep ConvNhwc' sh "$zc" "$model"
expect after-layout 0 "ConvNhwc" "$zc" inspect "$model" --pass opt_layout
expect optimised 0 "ConvNhwc" "$zc" inspect "$model" --stage optimised
expect program 0 "steps:" "$zc" inspect "$model" --stage program
expect program-same 0 "" sh -c '"$1" inspect "$2" --stage program >"$3/a" && "$1" inspect "$4" >"$3/b" && cmp "$3/a" "$3/b"' \
    sh "$zc" "$model" "$dir" "$plan"
expect program-dim 0 "input image: f32[3,1,8,8]" "$zc" inspect "$model" --stage program --dim batch=3
expect import-dim 0 "f32[3,1,8,8]" "$zc" inspect "$model" --dim batch=3
expect every-pass 0 "" sh -c 'for p in $("$1" inspect --passes | cut -d" " -f1); do "$1" inspect "$2" --pass $p >"$3" || exit; grep -q ^graph "$3" || exit; done' \
    sh "$zc" "$model" "$dir/graph"
expect unknown-pass 1 "--pass: got 'no_pass', need one of: opt_canonicalize" "$zc" inspect "$model" --pass no_pass
expect skipped-pass 1 "opt_fold: this pass was not run" "$zc" inspect "$model" --pass opt_fold --skip-pass all
expect unknown-stage 1 "--stage: got 'final', need one of: import optimised program" "$zc" inspect "$model" --stage final
expect pass-and-stage 1 "needs one of --pass and --stage" "$zc" inspect "$model" --pass opt_cse --stage import
expect json-model 1 "--json: is of plans" "$zc" inspect "$model" --json
expect stage-plan 1 "--stage is of models (got a plan)" "$zc" inspect "$plan" --stage import
expect absent 2 "absent.plan" "$zc" inspect "$dir/absent.plan"

# What a model says of itself; a plan's precision, attributes, epilogues, and results whose sizes depend on values.
expect metadata 0 "# producer: pytorch" "$zc" inspect "$model"
expect opset 0 "# opset: ai.onnx 18" "$zc" inspect "$model"
expect metadata-plan 0 'producer "pytorch"' "$zc" inspect "$plan"
expect metadata-json 0 '"producer": "pytorch"' "$zc" inspect "$plan" --json
# A value of 300 bytes, field 14 of the model: people see its beginning, programs all of it.
value=$(printf '%0300d' 0)
{ cat "$model"; printf '\162\265\002\012\004note\022\254\002%s' "$value"; } >"$dir/noted.onnx"
"$zc" compile "$dir/noted.onnx" -o "$dir/noted.plan" -q
begin=$(printf '%0200d' 0)
expect metadata-long 0 "# metadata note: $begin ... (100 bytes more)" "$zc" inspect "$dir/noted.onnx"
expect metadata-long-plan 0 "metadata \"note\": \"$begin\" ... (100 bytes more)" "$zc" inspect "$dir/noted.plan"
expect metadata-long-json 0 "$value" "$zc" inspect "$dir/noted.plan" --json
expect precision 0 "precision: f32 (10 values)" "$zc" inspect "$plan"
"$zc" compile "$model" -o "$dir/half.plan" --precision f16 -q
expect precision-f16 0 "precision: f32 (" "$zc" inspect "$dir/half.plan"
expect precision-f16-values 0 "f16 (" "$zc" inspect "$dir/half.plan"
expect attribute-json 0 '"attributes": {"axis": 1}' "$zc" inspect "$plan" --json
cat >"$dir/forms.txt" <<'END'
form open
opset 17
in x 1 4,4
in w 1 4,4
out y 7 *
out z 1 4,4
node NonZero x y
node MatMul x,w m
node Sigmoid m z
END
"$3" "$dir/forms.txt" "$dir" >/dev/null
"$zc" compile "$dir/open.onnx" -o "$dir/open.plan" -q
expect depends-on-values 0 "and on top 1 results of steps whose sizes depend on values" "$zc" inspect "$dir/open.plan"
expect depends-json 0 '"unplanned_values": 1' "$zc" inspect "$dir/open.plan" --json
expect epilogue 0 'MatMul(%x: f32[4,4], %w: f32[4,4]) {epilogue = ' "$zc" inspect "$dir/open.plan"
finish
