#!/bin/sh
# usage: precision.sh ZC SOURCE_DIR FAKE_DRIVER_DIR: plans whose types were chosen by part, on the fake GPU: weights of 4 and 8 bits,
# and products of bytes.
. "$(dirname "$0")/../cli/lib.sh"
fake=$3
export ZC_CACHE_DIR="$dir/cache"
unset XDG_CACHE_HOME LD_LIBRARY_PATH
lines=$src/models/lines
data=$lines/test_data_set_0
plan=$dir/lines.plan
on() {
    env LD_LIBRARY_PATH="$fake" "$@"
}

# check NAME OP ATOL OPTIONS...: the plan has eight steps of OP, and results within ATOL of f32's, on the GPU those of the CPU.
check() {
    what=$1
    op=$2
    within=$3
    shift 3
    expect "$what" 0 "" on "$zc" compile "$lines/lines.onnx" -o "$plan" --target sm_90 --precision auto --quiet "$@"
    expect "$what-steps" 0 "" sh -c 'test "$("$1" inspect "$2" | grep -c "= $3(")" = 8' sh "$zc" "$plan" "$op"
    expect "$what-cpu" 0 "" "$zc" run "$plan" --inputs "$data" --output-dir "$dir/cpu" --expect "$data" --rtol 0 --atol "$within"
    expect "$what-gpu" 0 "0 on the CPU" on "$zc" run "$plan" --device cuda --inputs "$data" --expect "$dir/cpu" --rtol 0 --atol 1e-2
}
check int4 PackedLinear 0.2 --max-error 1 --allow int4,f16
check w8 PackedLinear 1e-2 --max-error 1 --allow w8,f16
check int8 ScaledLinear 2e-2 --max-error 1 --allow int8 --dim batch=5 --calibration "$data"
finish
