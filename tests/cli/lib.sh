# Shared by the command-line tests, which are called as TEST.sh ZC SOURCE_DIR and end with `finish`.
set -u
zc=$(realpath "$1")
src=$(realpath "$2")
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
passed=0
failed=0

# expect NAME CODE TEXT COMMAND...: the exit code, and TEXT somewhere in what it printed. Sets name, code, text, got.
expect() {
    name=$1
    code=$2
    text=$3
    shift 3
    "$@" >"$dir/out" 2>&1
    got=$?
    if [ "$got" -eq "$code" ] && { [ -z "$text" ] || grep -qF -- "$text" "$dir/out"; }; then
        passed=$((passed + 1))
    else
        failed=$((failed + 1))
        echo "FAIL $name: got exit $got, need $code and '$text' in:"
        sed 's/^/  /' "$dir/out" | head -5
    fi
}

# check_json NAME PYTHON COMMAND...: the JSON that it prints, as `j`, fulfils the assertions.
check_json() {
    what=$1
    how=$2
    shift 2
    "$@" >"$dir/json" 2>"$dir/notes"
    expect "$what" 0 "" python3 -c "import json
j = json.load(open('$dir/json'))
$how"
}

# skip NAME REASON: a check that this machine cannot do.
skip() {
    echo "skipped $1: $2"
}

# Can the program live with a limit on its address space? Where AddressSanitizer is in it, it cannot.
has_memory_limits() {
    (ulimit -v 4000000) 2>/dev/null && ! ldd "$zc" | grep -q libasan
}

# no_temporaries NAME FOLDER: no writer left its temporary file there.
no_temporaries() {
    expect "$1" 0 "" sh -c '! ls -a "$1" | grep "^\.zc-.*\.tmp$"' sh "$2"
}

finish() {
    echo "$passed passed, $failed failed"
    [ "$failed" -eq 0 ]
}

model=$src/models/digits/digits.onnx
labels=$src/models/digits/labels.txt
