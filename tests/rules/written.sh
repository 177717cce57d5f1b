#!/bin/sh
# usage: written.sh ZC SOURCE_DIR WRITTEN: fusions in the forms in which exporters write them, written/*.txt. Each is
# fused as the file wants it, and its results are those of the model as it is, by the plain kernels.
# In the files, `want KIND FOUND THERE_ARE` is a row of zc compile --explain, `want steps N` is how many there are at
# most, `want OPERATION N` is how many of these there are, and `want bound X` is the error that is allowed (1e-5).
set -eu
zc=$(realpath "$1")
src=$(realpath "$2")
writer=$(realpath "$3")
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
count=0
faults=0
fail() { # TEXT
    echo "FAIL $model: $1"
    faults=$((faults + 1))
}

# What is explained, in the words of the files.
facts() {
    awk '/^fusions / { here = 1; next } !here { next }
        /^[a-z_]+ +[0-9]+ +[0-9]+  / { print $1, $2, $3 }
        /^[0-9]+ steps/ { print "steps", $1 }
        /^ +[0-9]+ [A-Za-z]+$/ { print $2, $1 }' "$dir/explained"
}
# Sizes of those dimensions that the model has.
sizes() {
    "$zc" inspect "$1" | grep '^ *input ' >"$dir/inputs"
    for size in n=3 h=4 w=2; do
        ! grep -q "[^a-zA-Z0-9_%\"]${size%=*}[],*+/]" "$dir/inputs" || echo "--dim $size"
    done
}
check_facts() {
    facts | awk -v model="$model" '
        NR == FNR { fact[$1] = $2 " " $3; next }
        $1 == "bound" { next }
        $1 == "steps" && fact[$1] + 0 > $2 + 0 { printf "more steps (got %d, need %d); ", fact[$1], $2; next }
        $1 != "steps" && fact[$1] != $2 " " $3 {
            printf "%s is not as wanted (got %s, need %s %s); ", $1, $1 in fact ? fact[$1] : "none", $2, $3
        }' - "$dir/$model.want"
}

for file in "$src"/tests/rules/written/*.txt; do
    "$writer" "$file" "$dir"
    for path in "$dir"/*.onnx; do
        model=$(basename "$path" .onnx)
        count=$((count + 1))
        if "$zc" compile "$path" --explain >"$dir/explained" 2>&1; then
            wrong=$(check_facts)
            [ -z "$wrong" ] || fail "$wrong"
        else
            fail "$(cat "$dir/explained")"
        fi
        bound=$(sed -n 's/^bound //p' "$dir/$model.want")
        # shellcheck disable=SC2046
        "$zc" debug "$path" --bound "${bound:-1e-5}" $(sizes "$path") >"$dir/debugged" 2>&1 ||
            fail "$(cat "$dir/debugged")"
    done
    rm -f "$dir"/*.onnx "$dir"/*.want
done
echo "$count forms, $faults faults"
[ "$faults" -eq 0 ] && [ "$count" -gt 0 ]
