#!/bin/sh
# usage: bench_kernels.sh BENCH_KERNELS SOURCE_DIR FAKE_DRIVER_DIR FAKE_LIBRARIES_DIR: the kernels' benchmark without a GPU,
# and on the fake one, where its times mean nothing but its results are compared.
. "$(dirname "$0")/../cli/lib.sh"
fake=$3
libraries=$4
bench=$zc
cd "$dir"
export ZC_CACHE_DIR=/dev/null
unset LD_LIBRARY_PATH
on() {
    env LD_LIBRARY_PATH="$fake" "$@"
}
# is NAME COMMAND...: it succeeds.
is() {
    what=$1
    shift
    expect "$what" 0 "" "$@"
}

# ---- no GPU ----
expect list 0 "products/bert_base_128_qkv: Linear(f16[1,128,768], f16[768,2304]=, f16[2304]=) {}" "$bench" --list
"$bench" --list --filter . >names
sed 's/:.*//' names | sort | uniq -d >twice
is names-differ test ! -s twice
for group in gemm products linear attention resnet50_b1 resnet50_b32 rows smoke; do
    is "group-$group" grep "^$group/" names
done
expect smoke-not-asked-for 1 "" sh -c '"$1" --list | grep ^smoke/' sh "$bench"
expect no-gpu 77 "no CUDA driver" "$bench"
expect no-case 1 "no case is named nothing" "$bench" --filter nothing
expect usage 2 "usage: bench_kernels" "$bench" --wrong
expect filter 2 "usage: bench_kernels" "$bench" --filter '('
expect rounds 2 "usage: bench_kernels" "$bench" --rounds 0

# ---- the fake GPU: all kinds of kernels, right, beside fake libraries; and without any ----
expect smoke 0 "| smoke | 12 | 0 | 12 |" on "$bench" --filter ^smoke --rounds 2 --libraries "/nowhere:$libraries" --json all.json
check_json json 'assert len(j["cases"]) == 12 and not any(c["wrong"] for c in j["cases"])
assert all(len(c[s]["rounds"]) == 2 for c in j["cases"] for s in ("zc", "yardstick"))
errors = {c["case"]: c["yardstick"]["error"] for c in j["cases"]}
assert all(0 < e < 0.01 for n, e in errors.items() if n not in ("s8", "layer_norm", "softmax")), errors
assert errors["s8"] == 0 and all(c["zc"]["error"] == 0 for c in j["cases"] if c["case"] == "s8"), errors' cat all.json
expect alone 0 "no cuBLASLt: --alone, no cuDNN: --alone" on "$bench" --filter smoke/linear --rounds 1 --by-cost --alone
expect wrong 0 ", WRONG: " on env ZC_TEST_WRONG=1 "$bench" --filter smoke/linear --rounds 1 --libraries "$libraries"
expect wrong-is-not-compared 0 "| smoke | 1 | 0 | 0 |" on env ZC_TEST_WRONG=1 "$bench" --filter smoke/linear --rounds 1 --libraries "$libraries"
expect compile 0 "smoke/conv: conv_few_sm90" on "$bench" --compile --filter ^smoke

# ---- a case that fails: the others go on, and it is told ----
expect no-tuned 1 "FAILED: none.tuned" on "$bench" --filter 'smoke/(linear|gelu)' --tuned none.tuned
expect both-told 1 "smoke/gelu | FAILED" on "$bench" --filter 'smoke/(linear|gelu)' --tuned none.tuned
expect no-folder 1 "nowhere/all.json" on "$bench" --filter smoke/linear --rounds 1 --json nowhere/all.json
finish
