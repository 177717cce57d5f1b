#!/bin/sh
# usage: rules.sh ZC SOURCE_DIR: zc rules, rules in zc compile, and the tutorial of docs/rules.md.
. "$(dirname "$0")/lib.sh"
cd "$dir"

# ---- the manual ----
awk '/^```zcr/ { file = "tutorial" ++n ".zcr"; next } /^```cuda / { file = $2; next } /^```/ { file = "" }
    file { print > file }' "$src/docs/rules.md"
count=$(ls tutorial*.zcr | wc -l)
expect tutorial-count 0 "" test "$count" -eq 5
for file in tutorial*.zcr; do
    expect "check-$file" 0 "1 rules" "$zc" rules check "$file"
    expect "silent-$file" 0 "" sh -c '! "$1" rules check -q "$2" 2>&1 | grep .' sh "$zc" "$file"
    expect "test-$file" 0 "ok    12 places" "$zc" rules test "$file"
    expect "compile-$file" 0 "steps" "$zc" compile "$model" -o out.plan --rules "$file"
done
expect three-files 0 "linear_relu" "$zc" rules list tutorial1.zcr tutorial2.zcr tutorial3.zcr tutorial4.zcr
# Every function and every limit that the code has is in the manual.
for name in $(sed -n 's/^FN(\([a-z_]*\),.*/\1/p' "$src/src/rules/functions.def"); do
    expect "manual-$name" 0 "$name" grep -w "\`$name" "$src/docs/rules.md"
done

# ---- check ----
printf 'rule a {\n  match o = Mull(x, x);\n  emit o = x;\n}\n' >bad.zcr
expect check-bad 2 "bad.zcr:2:13: error: no such operation 'Mull' (did you mean 'Mul'?)" "$zc" rules check bad.zcr
expect check-caret 2 "                ^~~~" "$zc" rules check bad.zcr
expect check-absent 2 "No such file" "$zc" rules check absent.zcr
expect check-none 1 "check needs a rule file" "$zc" rules check
expect no-action 1 "needs an action" "$zc" rules
expect bad-action 1 "unknown action 'frobnicate'" "$zc" rules frobnicate
expect list 0 "(built in)" "$zc" rules list

# ---- test ----
echo 'rule wrong { match o = Div(x, x); emit o = Pow(x, 0.0); }' >wrong.zcr
expect test-wrong 3 "emit gives 1" "$zc" rules test wrong.zcr
expect test-input 3 "zero values" "$zc" rules test wrong.zcr
expect test-builtin 0 "layer_norm" "$zc" rules test --all
echo 'rule never { match o = Relu(x); where rank(x) == 77; emit o = Max(x, 0.0); }' >never.zcr
expect test-never 3 "no operands were found" "$zc" rules test never.zcr

expect test-no-gpu 5 "CUDA" env -u LD_LIBRARY_PATH ZC_CACHE_DIR="$dir/cache" "$zc" rules test tutorial4.zcr --device cuda:77

# ---- compile ----
echo 'rule bad { match o = Relu(x); emit o = LeakyRelu(x); }' >leaky.zcr
expect refused 3 "leaky.zcr: rule 'bad' (line 1) is refused" "$zc" compile "$model" -o refused.plan --rules leaky.zcr
expect refused-no-plan 0 "" test ! -e refused.plan
expect forced 0 "steps" "$zc" compile "$model" -o forced.plan --rules leaky.zcr --force-rules
expect forced-applies 0 "rule bad (leaky.zcr:1)" "$zc" inspect forced.plan --json
expect left-out 0 "" sh -c '"$1" compile "$2" -o none.plan --rules leaky.zcr --no-rule bad -q' sh "$zc" "$model"
expect no-rule-unknown 1 "bat: no such rule (did you mean 'bad'?)" "$zc" compile "$model" -o x.plan --rules leaky.zcr --no-rule bat
expect compile-bad 2 "bad.zcr:2:13: no such operation" "$zc" compile "$model" -o x.plan --rules bad.zcr

# ---- explain ----
expect explain 0 "rewritten" "$zc" rules explain leaky.zcr "$model"
expect explain-miss 0 "the condition in line 1, column" "$zc" rules explain never.zcr "$model"
expect explain-args 1 "explain needs rule files" "$zc" rules explain

finish
