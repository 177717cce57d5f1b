#!/bin/sh
# usage: rules.sh ZC SOURCE_DIR: zc rules, rules in zc compile, and the tutorial of docs/rules.md.
. "$(dirname "$0")/lib.sh"
cd "$dir"

# ---- the manual ----
awk '/^```zcr/ { file = "tutorial" ++n ".zcr"; next } /^```cuda / { file = $2; next } /^```/ { file = "" }
    file { print > file }' "$src/docs/rules.md"
count=$(ls tutorial*.zcr | wc -l)
expect tutorial-count 0 "" test "$count" -eq 8
for file in tutorial*.zcr; do
    expect "check-$file" 0 "1 rules" "$zc" rules check "$file"
    expect "silent-$file" 0 "" sh -c '! "$1" rules check -q "$2" 2>&1 | grep .' sh "$zc" "$file"
    expect "test-$file" 0 "ok   " "$zc" rules test "$file"
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

expect check-columns 2 "wide.zcr:1:31: error: no such operation" sh -c \
    'printf "rule r { match /* äöü€ */ o = Reluu(x); emit o = x; }\n" >wide.zcr; "$1" rules check wide.zcr' sh "$zc"
expect check-tiny 2 "number out of range (got 1e-99999)" sh -c \
    'echo "rule r { match o = Add(x, 1e-99999); emit o = Relu(x); }" >tiny.zcr; "$1" rules check tiny.zcr' sh "$zc"
expect check-shadow 2 "'exp' is a function of expressions" sh -c \
    'echo "pointwise exp(x) = 2 * x;" >exp.zcr; "$1" rules check exp.zcr' sh "$zc"

# ---- a library of definitions ----
mkdir -p lib
echo 'condition narrow(x) = dtype(x) in {f16, bf16};' >lib/types.zcr
printf 'include "types.zcr";\npattern Gate(x, g) { g = Sigmoid(x); o = Mul(x, g); }\n' >lib/gates.zcr
sed 's/types/gates/' >uses.zcr <<'END'
include "lib/types.zcr";
include "lib/types.zcr";
rule gate { match o = Gate(x, _g); emit o = Swish(x); }
END
expect include 0 "1 rules" "$zc" rules check uses.zcr
expect include-test 0 "ok   " "$zc" rules test uses.zcr
printf 'include "../uses.zcr";\n' >lib/up.zcr
expect include-up 2 "must lie in the rule file's folder" "$zc" rules check lib/up.zcr
ln -sf ../leaky.zcr lib/link.zcr
echo 'include "link.zcr";' >lib/up.zcr
touch leaky.zcr
expect include-link 2 "leads out of the rule file's folder" "$zc" rules check lib/up.zcr
echo 'include "none.zcr";' >none.zcr
expect include-self 0 "0 rules" "$zc" rules check none.zcr
echo 'rule r { match o = Reluu(x); emit o = x; }' >lib/types.zcr
expect include-place 2 "lib/types.zcr:1:20: error: no such operation" "$zc" rules check uses.zcr

# ---- test ----
echo 'rule wrong { match o = Div(x, x); emit o = Pow(x, 0.0); }' >wrong.zcr
expect test-wrong 3 "emit gives 1" "$zc" rules test wrong.zcr
expect test-input 3 "zero values" "$zc" rules test wrong.zcr
expect test-builtin 0 "layer_norm" "$zc" rules test --all
echo 'rule never { match o = Relu(x); where rank(x) == 77; emit o = Max(x, 0.0); }' >never.zcr
expect test-never 3 "no operands were found" "$zc" rules test never.zcr

expect test-not-run 0 "its kernels were not run: no GPU" "$zc" rules test tutorial4.zcr
expect test-no-gpu 5 "CUDA" env -u LD_LIBRARY_PATH ZC_CACHE_DIR="$dir/cache" "$zc" rules test tutorial4.zcr --device cuda:77

# ---- what a kernel's source may bring along ----
mkdir -p kernels
kernel() { # SOURCE-FILE
    printf 'kernel K(x) { file "%s"; entry "k"; result y = like(x); grid 1; block 1; meaning = x; }\n' "$1" >kernels/k.zcr
}
kernel k.cu
for line in '#include "/etc/hostname"' '  # include </etc/hostname>' '%:include "/etc/hostname"' '/**/ #include "../up.h"' \
    '#define H "/etc/hostname"\n#include H' '#inc\\\nlude "/etc/hostname"' '#inc\\ \nlude "/etc/hostname"' '#include "zc/../../up.h"' \
    '// /*\n#include "/etc/hostname"\n// */' 'const char *s = "/*";\n#include "/etc/hostname"\n// */' \
    '/*\n*/ # /*\n*/ include "/etc/hostname"' '#if __has_include("/etc/hostname")\n#endif' \
    '#include "zc/device.cuh"\n#include "/etc/hostname"'; do
    printf '%b\n' "$line" >kernels/k.cu
    expect "include $line" 2 "includes another file than zc's headers" "$zc" rules check kernels/k.zcr
done
printf '#if __has_include(<zc/device.cuh>)\n#include /* it */ "zc/device.cuh"\n#endif\n// #include "/etc/hostname"\nvoid k();\n' \
    >kernels/k.cu
expect include-own 0 "0 rules" "$zc" rules check kernels/k.zcr
echo '// out' >out.cu
ln -s ../out.cu kernels/link.cu
ln -s k.cu kernels/within.cu
kernel link.cu
expect link-out 2 "leads out of the rule file's folder" "$zc" rules check kernels/k.zcr
kernel within.cu
expect link-within 0 "0 rules" "$zc" rules check kernels/k.zcr

# What a launch would refuse is said when the file is read, all of it at once.
launch() { # TUNE GRID BLOCK ENTRY
    printf 'extern "C" __global__ void k(float *x) {}\n' >kernels/k.cu
    printf 'kernel K(x) { file "k.cu"; entry "%s"; result y = like(x); tune %s; grid %s; block %s; meaning = x; }\n' "$4" "$1" "$2" "$3" \
        >kernels/k.zcr
}
launch 'A in {1}' 'size(x), 0' 256 k
expect launch-grid 2 "grid is 0 with A=1 (need at least 1)" "$zc" rules check kernels/k.zcr
launch 'A in {1, 3}' 'size(x)' '512 * A' k
expect launch-block 2 "block is 1536 with A=3 (need 1 to 1024)" "$zc" rules check kernels/k.zcr
launch 'A in {1}' 'size(x)' 256 main
expect launch-entry 2 "the source has no function 'main'" "$zc" rules check kernels/k.zcr
launch 'A in {1, 1.5}, b in {2}' 'size(x)' 0 k
expect launch-all 2 "3 errors" sh -c '"$1" rules check "$2" 2>&1 | grep -c "error:" | sed "s/$/ errors/"; exit 2' sh "$zc" kernels/k.zcr

# ---- compile ----
echo 'rule bad { match o = Relu(x); emit o = LeakyRelu(x); }' >leaky.zcr
expect refused 3 "leaky.zcr: rule 'bad' (line 1) is refused" "$zc" compile "$model" -o refused.plan --rules leaky.zcr
expect refused-no-plan 0 "" test ! -e refused.plan
echo 'rule bad unchecked "a test" { match o = Relu(x); emit o = LeakyRelu(x); }' >unchecked.zcr
expect unchecked 0 "steps" "$zc" compile "$model" -o unchecked.plan --rules unchecked.zcr
expect unchecked-reason 0 "rule bad (unchecked.zcr:1, unchecked: a test)" "$zc" inspect unchecked.plan --json
expect unchecked-test 3 "compiled without this check: a test" "$zc" rules test unchecked.zcr
echo 'rule other { match o = Relu(x); emit o = Abs(x); }' >>unchecked.zcr
expect unchecked-one 3 "rule 'other' (line 2) is refused" "$zc" compile "$model" -o refused.plan --rules unchecked.zcr
echo 'rule bad unchecked " " { match o = Relu(x); emit o = LeakyRelu(x); }' >no-reason.zcr
expect unchecked-no-reason 2 "needs a reason" "$zc" rules check no-reason.zcr
expect no-force 1 "force-rules" "$zc" compile "$model" -o forced.plan --rules leaky.zcr --force-rules
expect left-out 0 "" sh -c '"$1" compile "$2" -o none.plan --rules leaky.zcr --no-rule bad -q' sh "$zc" "$model"
expect no-rule-unknown 1 "bat: no such rule (did you mean 'bad'?)" "$zc" compile "$model" -o x.plan --rules leaky.zcr --no-rule bat
expect compile-bad 2 "bad.zcr:2:13: no such operation" "$zc" compile "$model" -o x.plan --rules bad.zcr

# ---- explain ----
expect explain 0 "rewritten" "$zc" rules explain leaky.zcr "$model"
expect explain-miss 0 "the condition in line 1, column" "$zc" rules explain never.zcr "$model"
expect explain-value 0 "does not hold (got 4, need == 77)" "$zc" rules explain never.zcr "$model"
echo 'rule never { match o = Softmax(x) { axis = 0 }; emit o = Exp(LogSoftmax(x) { axis = 0 }); }' >axis.zcr
expect explain-attribute 0 "attribute 'axis' has another value (got " "$zc" rules explain axis.zcr "$model"
echo 'rule open { match o = Relu(x); where dim(x, 0) % 8 == 0; emit o = Max(x, 0.0); }' >open.zcr
expect explain-uncertain 0 "is not certain (got batch%8, need == 0)" "$zc" rules explain open.zcr "$model"
cat >taken.zcr <<'END'
rule first priority 3 { match o = Softmax(x) { axis = a }; emit o = Exp(LogSoftmax(x) { axis = a }); }
rule last { match o = Softmax(Gemm(x, w, b) { transB = 1 }) { axis = 1 }; emit o = Exp(LogSoftmax(Gemm(x, w, b) { transB = 1 }) { axis = 1 }); }
END
expect explain-taken 0 "became part of other rules' matches, the last of 'first'" "$zc" rules explain taken.zcr "$model"
cat >place.zcr <<'END'
rule near priority 3 { match o = Softmax(Gemm(x, _w, _b) { ... }) { ... }; where rank(x) == 77; emit o = Exp(x); }
rule first { match o = Softmax(x) { axis = a }; emit o = Exp(LogSoftmax(x) { axis = a }); }
END
expect explain-place 0 "; rule 'first' took its place" "$zc" rules explain place.zcr "$model"
sed -i 's/ {/ unchecked "NaN" {/' taken.zcr
expect explain-compile 0 "last: 0 places tried" "$zc" compile "$model" --explain --rules taken.zcr
expect explain-brief 1 "" sh -c '"$1" compile "$2" --explain --rules taken.zcr | grep "places tried" | grep -v -e first -e last' \
    sh "$zc" "$model"
expect explain-args 1 "explain needs rule files" "$zc" rules explain

finish
