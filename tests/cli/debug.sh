#!/bin/sh
# usage: debug.sh ZC SOURCE_DIR: zc debug names the rule or pass that changes an answer; zc compile --explain.
. "$(dirname "$0")/lib.sh"
cd "$dir"

# ---- debug ----
expect clean 0 "no difference: worst error" "$zc" debug "$model"
expect clean-f16 0 "(bound 0.02)" "$zc" debug "$model" --precision f16
printf '\n\nrule bad {\n  match o = Relu(x);\n  emit o = LeakyRelu(x);\n}\n' >leaky.zcr
echo 'rule right { match o = Relu(x); emit o = Max(x, 0.0); }' >right.zcr
expect refused 3 "rule 'bad' (line 3) is refused" "$zc" debug "$model" --rules leaky.zcr
expect rule 3 "rule bad (leaky.zcr:3) is the first to change the answer, by rewrite 1 of" \
    "$zc" debug "$model" --rules leaky.zcr --force-rules --bound 1e-5
expect rule-node 3 "  node_relu" "$zc" debug "$model" --rules leaky.zcr --force-rules --bound 1e-5
expect rule-output 3 "  output probabilities, element" "$zc" debug "$model" --rules leaky.zcr --force-rules --bound 1e-5
expect rule-left-out 0 "no difference" "$zc" debug "$model" --rules leaky.zcr --force-rules --no-rule bad
expect rule-right 0 "no difference" "$zc" debug "$model" --rules right.zcr
expect rules-skipped 0 "no difference" "$zc" debug "$model" --rules leaky.zcr --force-rules --skip-pass opt_rules

# The wrong rewrite is not the first one: three right ones come before it.
cat >fourth.zcr <<'END'
rule right priority 1 { match o = Relu(x); emit o = Max(x, 0.0); }
rule wrong { match o = Softmax(x) { ... }; emit o = Sigmoid(x); }
END
expect later 3 "rule wrong (fourth.zcr:2) is the first to change the answer, by rewrite 4 of" \
    "$zc" debug "$model" --rules fourth.zcr --force-rules
expect kernels 3 "it is the kernels" "$zc" debug "$model" --bound 0
expect precision 3 "pass lower_precision" "$zc" debug "$model" --precision bf16 --bound 1e-6
expect files 0 "no difference" "$zc" debug "$model" --input image="$src/models/digits/sample_7.npy"

expect auto 0 "no difference" "$zc" debug "$model" --device auto
expect no-model 1 "needs one model" "$zc" debug
expect bad-bound 1 "--bound: got 'x'" "$zc" debug "$model" --bound x
expect absent-rules 2 "No such file" "$zc" debug "$model" --rules absent.zcr
expect absent-inputs 2 "No such file" "$zc" debug "$model" --inputs absent
expect unknown-rule 1 "bat: no such rule" "$zc" debug "$model" --rules leaky.zcr --force-rules --no-rule bat

# ---- explain ----
bert=$src/models/bench/bert_base.legacy.onnx
expect explain-weightless 0 "there are" "$zc" compile "$bert" --explain
expect explain-kind 0 "attention" "$zc" compile "$bert" --explain
expect explain-steps 0 "of shape arithmetic" "$zc" compile "$bert" --explain
echo 'rule never kind activation unchecked "it never applies" { match o = Relu(x); where rank(x) == 77; emit o = Max(x, 0.0); }' >never.zcr
expect explain-places 0 "at node_relu_2 and 2 more: 1 of 1 operations matched" "$zc" compile "$model" --explain --rules never.zcr
expect explain-why 0 "1 of 1 operations matched, at node node_relu" "$zc" compile "$model" --explain --rules never.zcr
expect explain-plan 0 "there are" "$zc" compile "$model" --explain -o explained.plan
expect explain-plan-runs 0 "ran in" "$zc" run explained.plan --random
expect explain-json 0 '"kind": "linear", "found": 1, "there_are": 1, "missed": []' "$zc" compile "$model" --explain --json
expect explain-json-rule 0 '"rule": "never", "kind": "activation", "file": "never.zcr", "line": 1, "builtin": false' \
    "$zc" compile "$model" --explain --json --rules never.zcr
expect explain-gpu 0 "steps on the GPU by" "$zc" compile "$model" --explain --target sm_90
expect explain-gpu-json 0 '"cpu_steps": 0' "$zc" compile "$model" --explain --json --target sm_90
expect explain-gpu-weightless 0 "weights are absent" "$zc" compile "$bert" --explain --target sm_90
expect explain-gpu-none 0 '"gpu": null' "$zc" compile "$bert" --explain --json --target sm_90
for kind in $(sed -n 's/^KIND(\([a-z_]*\),.*/\1/p' "$src/src/census/kinds.def"); do
    expect "kind-$kind" 0 '"found"' sh -c '"$1" compile "$2" --explain --json | grep "\"$3\""' sh "$zc" "$model" "$kind"
    expect "manual-$kind" 0 "$kind" grep -w "$kind" "$src/docs/rules.md"
done
expect json-alone 1 "--json does nothing without --explain" "$zc" compile "$model" --json -o x.plan
expect no-output 1 "needs --output PLAN or --explain" "$zc" compile "$model"

finish
