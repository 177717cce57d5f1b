#!/bin/bash
# usage: gpu_sanitize.sh KERNEL_CHECK [PROCESSES [TOOL...]]: the whole kernel check on this machine's GPU under
# compute-sanitizer, each tool in turn (default: all four), in so many processes at a time (default: one a CPU).
# ZC_SANITIZE_SECONDS limits one tool's time. Logs go to gpu_sanitize/ in the current folder. Kernels are issued one by
# one: compute-sanitizer 2025.3.1 crashes where a CUDA graph with a copy in it is launched.
set -u
check=$1
processes=${2:-$(nproc)}
shift $(($# < 2 ? $# : 2))
tools=${*:-memcheck racecheck synccheck initcheck}
limit=${ZC_SANITIZE_SECONDS:-3600}
sanitizer=$(command -v compute-sanitizer || echo /usr/local/cuda/bin/compute-sanitizer)
[ -x "$sanitizer" ] || { echo "gpu_sanitize: compute-sanitizer is not installed" >&2; exit 2; }
mkdir -p gpu_sanitize

part() { # TOOL K
    timeout "$limit" "$sanitizer" --tool "$1" --report-api-errors no --error-exitcode 9 \
        "$check" --small --no-graphs --verbose --seed 7 --part "$2/$processes" >"gpu_sanitize/$1.$2.txt" 2>&1
    echo "exit $?" >>"gpu_sanitize/$1.$2.txt"
}

bad=0
for tool in $tools; do
    start=$SECONDS
    for k in $(seq "$processes"); do part "$tool" "$k" & done
    wait
    passed=$(cat gpu_sanitize/"$tool".*.txt | grep -c '^pass ')
    clean=$(grep -l '^exit 0$' gpu_sanitize/"$tool".*.txt | wc -l)
    variants=$("$check" --list | wc -l)
    echo "$tool: $passed of $variants variants ran and passed, $clean of $processes parts clean, $((SECONDS - start)) s"
    [ "$clean" = "$processes" ] || bad=1
    grep -hE '^FAIL|=+ (Invalid|Uninitialized|Error|Warning|Barrier|.*hazard)' gpu_sanitize/"$tool".*.txt |
        sed 's/0x[0-9a-f]*//g' | sort | uniq -c | sort -rn | head -5
done
exit $bad
