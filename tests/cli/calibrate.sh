#!/bin/sh
# usage: calibrate.sh ZC SOURCE_DIR: ranges of the bundled digit classifier's tensors.
. "$(dirname "$0")/lib.sh"
data=$src/models/digits/test_data_set_0
cal() { "$zc" calibrate "$model" "$@"; }

# has FILE AWK: the file has a line of which this is true, its fields separated by tabs.
has() {
    awk -F '\t' "$2 { n++ } END { exit !n }" "$1"
}

expect data 0 "12 activations of 1 runs, 4 weights" cal --inputs "$data" -o "$dir/a.cal"
expect again 0 "" cal --inputs "$data" -o "$dir/b.cal"
expect deterministic 0 "" cmp "$dir/a.cal" "$dir/b.cal"
expect model-hash 0 "" grep -q "$(sha256sum <"$model" | cut -d' ' -f1)" "$dir/a.cal"
expect image 0 "" has "$dir/a.cal" '$1 == "activation" && $2 == "image" && $3 == 256 && $4 == 0 && $5 == 0 && $6 == 1 && $7 == 1'
expect channels 0 "" has "$dir/a.cal" '$1 == "weight" && $3 == 0 && split($4, t, " ") == 10'
expect folders 0 "12 activations of 1 runs" cal --inputs "$src/models/digits" -o "$dir/f.cal"
for method in minmax percentile entropy mse; do
    expect "method-$method" 0 "activations" cal --random 3 --method $method -o "$dir/$method.cal"
    expect "method-$method-said" 0 "" has "$dir/$method.cal" "\$1 == \"model\" && \$4 == \"$method\""
done
expect clips 0 "" sh -c 'paste "$1" "$2" | awk -F "\t" "\$1 == \"activation\" && \$15 > \$7 { exit 1 }"' \
    sh "$dir/minmax.cal" "$dir/mse.cal"

# Files add up to what one pass over all gives.
mkdir "$dir/all" "$dir/one"
cp -r "$data" "$dir/all/0"
mkdir "$dir/all/1"
cp "$src/models/digits/sample_7.npy" "$dir/all/1/input_0.npy"
cp "$src/models/digits/sample_7.npy" "$dir/one/input_0.npy"
expect both 0 "of 2 runs" cal --inputs "$dir/all" -o "$dir/both.cal"
expect one 0 "of 1 runs" cal --inputs "$dir/one" -o "$dir/one.cal"
expect merge 0 "of 2 runs" "$zc" calibrate --merge "$dir/a.cal" "$dir/one.cal" -o "$dir/sum.cal"
expect merge-is-exact 0 "" cmp "$dir/both.cal" "$dir/sum.cal"

# What is refused, and the file that was there stays.
cp "$dir/a.cal" "$dir/kept.cal"
sed '2s/	[0-9a-f]\{64\}	/	0000000000000000000000000000000000000000000000000000000000000000	/' "$dir/a.cal" >"$dir/other.cal"
grep -v '^activation	relu	' "$dir/a.cal" >"$dir/fewer.cal"
sed 's/^\(activation	image	256	0	\)0	/\1nan	/' "$dir/a.cal" >"$dir/nan.cal"
sed 's/^\(activation	image	\)256	/\1257	/' "$dir/a.cal" >"$dir/count.cal"
head -c 500 "$dir/a.cal" >"$dir/short.cal"
expect other-model 2 "other.cal: is of another model (got 0000" \
    "$zc" calibrate --merge "$dir/a.cal" "$dir/other.cal" -o "$dir/kept.cal"
expect missing 2 "relu: is missing" "$zc" calibrate --merge "$dir/a.cal" "$dir/fewer.cal" -o "$dir/kept.cal"
expect not-known 2 "relu: is no tensor of the others" \
    "$zc" calibrate --merge "$dir/fewer.cal" "$dir/a.cal" -o "$dir/kept.cal"
expect range 2 "image: line 7: the range is none" "$zc" calibrate --merge "$dir/nan.cal" -o "$dir/kept.cal"
expect count 2 "image: line 7: the histogram has not all elements" \
    "$zc" calibrate --merge "$dir/count.cal" -o "$dir/kept.cal"
expect short 2 "short.cal" "$zc" calibrate --merge "$dir/short.cal" -o "$dir/kept.cal"
expect no-calibration 2 "is no calibration" "$zc" calibrate --merge "$labels" -o "$dir/kept.cal"
printf '\223NUMPY\001\000v\000' >"$dir/one/input_0.npy"
{
    printf '%-117s\n' "{'descr': '<f4', 'fortran_order': False, 'shape': (1, 1, 8, 8), }"
    head -c 252 /dev/zero
    printf '\000\000\300\177'
} >>"$dir/one/input_0.npy"
expect not-a-number 2 "image: element 63 is NaN: it has no range" cal --inputs "$dir/one" -o "$dir/kept.cal"
expect no-inputs 1 "needs --inputs DIR or --random N" cal -o "$dir/kept.cal"
expect two-inputs 1 "needs --inputs DIR or --random N" cal --inputs "$data" --random 2 -o "$dir/kept.cal"
expect none-random 1 "--random: got '0'" cal --random 0 -o "$dir/kept.cal"
expect no-output 1 "needs --output FILE" cal --random 2
expect method 1 "--method: got 'kl', need one of: minmax percentile entropy mse" cal --random 2 --method kl -o "$dir/kept.cal"
expect stays 0 "" cmp "$dir/kept.cal" "$dir/a.cal"
no_temporaries no-rest "$dir"
finish
