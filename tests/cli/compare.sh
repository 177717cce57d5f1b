#!/bin/sh
# bench/compare.py on a model file: each engine's row, in words, JSON and files of times. No time is held to a number.
. "$(dirname "$0")/lib.sh"
cd "$dir" || exit 1
compare=$src/bench/compare.py
expect help 0 "compare.py OPTIONS MODEL.onnx..." python3 "$compare" --help
python3 -c "import numpy, onnx, onnxruntime" 2>/dev/null || {
    expect no-packages 1 "compare.py: python3 has no module " env PYTHONPATH= python3 "$compare" --zc "$zc" model.onnx
    finish && exit 77
    exit 1
}
quick="--seconds 0.05 --rounds 2"
# shellcheck disable=SC2086
{
expect table 0 "onnxruntime CPU to zc: " python3 "$compare" --zc "$zc" $quick --save times --json all.json "$model"
expect rows 0 "" python3 -c "
import json
(rows,) = json.load(open('all.json'))['models'].values()
assert [r['engine'] for r in rows] == ['zc', 'onnxruntime CPU'] and rows[0]['ratio'] == 1
assert all(r['runs'] >= 10 and 0 < r['median_ms'] <= r['p99_ms'] and r['first_s'] > 0 and r['compile_s'] > 0 for r in rows)
assert all(0 <= r['error'] < 1e-5 and r['peak_mb'] > 1 for r in rows), rows"
expect report 0 "" "$zc" report times/*.times -o page.html
expect page 0 "onnxruntime CPU" cat page.html
expect no-provider 1 "failed: onnxruntime has no provider Abacus here" python3 "$compare" --zc "$zc" $quick --providers Abacus,CPU --json some.json "$model"
expect others 0 "" python3 -c "
import json
(rows,) = json.load(open('some.json'))['models'].values()
assert [r['engine'] for r in rows] == ['zc', 'onnxruntime CPU', 'onnxruntime Abacus'] and ['failed' in r for r in rows] == [False, False, True]"
expect no-model 1 "absent.onnx: " python3 "$compare" --zc "$zc" $quick absent.onnx
python3 -c 'import onnx2torch' 2>/dev/null || expect no-pytorch 1 "failed: ModuleNotFoundError: No module named 'onnx2torch'" python3 "$compare" --zc "$zc" $quick --pytorch eager "$model"
expect no-zc 1 "No such file or directory: 'absent'" python3 "$compare" --zc absent $quick "$model"
}
finish
