#!/bin/sh
# usage: tsan.sh [BUILD]: the examples that use several threads, and the tests of threads, under ThreadSanitizer, in the
# build folder BUILD (build-tsan), which is made. scripts/tsan.supp names what belongs to oneDNN; an entry that nothing
# matches fails the run.
set -eu
cd "$(dirname "$0")/.."
build=${1:-build-tsan}
[ -f "$build/build.ninja" ] ||
    meson setup "$build" -Db_sanitize=thread -Db_lundef=false -Doptimization=1
ninja -C "$build" examples/digits.plan examples/service examples/background tests/unit/test_session_threads \
    tests/unit/test_embed tests/unit/test_pool tests/unit/test_session_misuse tests/unit/test_counters
log=$(mktemp -d)
trap 'rm -rf "$log"' EXIT

run() {
    TSAN_OPTIONS="suppressions=scripts/tsan.supp print_suppressions=1 log_path=$log/tsan exitcode=66" "$@" >"$log/out" 2>&1 || {
        cat "$log/out" "$log"/tsan.*
        echo "tsan: exit code $? of $*"
        exit 1
    }
    echo "tsan: $* has no race"
}
# Whether threads meet in oneDNN is chance.
for _ in 1 2 3 4 5; do run "$build/examples/service" "$build/examples/digits.plan" 4 50; done
run "$build/examples/background" "$build/examples/digits.plan" 3 50
run "$build/tests/unit/test_session_threads"
run "$build/tests/unit/test_embed"
run "$build/tests/unit/test_pool"
run "$build/tests/unit/test_session_misuse"
run "$build/tests/unit/test_counters"

grep -v '^#' scripts/tsan.supp | while read -r entry; do
    [ -z "$entry" ] || grep -qh "^[0-9]* $entry\$" "$log"/tsan.* || { echo "tsan: needs no suppression $entry"; exit 1; }
done
