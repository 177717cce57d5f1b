#!/bin/sh
# zc report: what stands in the page, as its text says; tests/browser/report.py looks at it with a browser.
. "$(dirname "$0")/lib.sh"
writer=$(realpath "$3")
cd "$dir" || exit 1
export ZC_CACHE_DIR="$dir/cache"
"$zc" compile "$model" -o digits.plan -q
"$zc" compile "$model" -o plain.plan -q --skip-pass all
quick="--seconds 0 --threads 1 --dim batch=2 --no-peaks"

# page NAME PYTHON: the file is one whole page of known tags that loads nothing, and fulfils the assertions about `p`:
# p.text, p.tags (name, attributes), p.rows (lists of cells' texts), p.file.
cat >page.py <<'END_PY'
import base64, hashlib, html.parser, re, sys

class Page(html.parser.HTMLParser):
    VOID = {"meta", "input"}
    KNOWN = set("""html head meta title style body header h1 h2 h3 nav a main section div table thead tbody tr th td p code strong
        small svg rect path circle text details summary ul li footer script""".split())

    def __init__(self, path):
        super().__init__()
        self.open, self.tags, self.rows, self.text, self.inside = [], [], [], "", {"script": "", "style": ""}
        self.file = open(path, "rb").read().decode()
        self.feed(self.file)
        self.close()
        assert not self.open, self.open

    def handle_starttag(self, tag, attributes):
        assert tag in self.KNOWN, tag
        for name, value in attributes:
            assert not name.startswith("on") and name not in ("src", "style", "srcdoc"), (tag, name)
            assert name not in ("href", "xlink:href") or value.startswith("#"), (tag, value)
        self.tags.append((tag, dict(attributes)))
        if tag == "tr": self.rows.append([])
        if tag in ("td", "th") and self.rows: self.rows[-1].append("")
        if tag not in self.VOID: self.open.append(tag)

    def handle_startendtag(self, tag, attributes):
        self.handle_starttag(tag, attributes)
        if tag not in self.VOID: self.open.pop()

    def handle_endtag(self, tag):
        assert self.open and self.open[-1] == tag, (tag, self.open)
        self.open.pop()

    def handle_data(self, data):
        if self.open and self.open[-1] in self.inside: self.inside[self.open[-1]] += data
        else: self.text += data
        if "td" in self.open or "th" in self.open: self.rows[-1][-1] += data

    def row(self, head):
        return [r for r in self.rows if r and r[0] == head][0]

    def count(self, tag, class_name):
        return sum(t == tag and a.get("class") == class_name for t, a in self.tags)

p = Page(sys.argv[1])
assert sum(t == "script" for t, a in p.tags) == 1 and sum(t == "style" for t, a in p.tags) == 1
policy = [a["content"] for t, a in p.tags if t == "meta" and "http-equiv" in a][0]
assert "default-src 'none'" in policy and "unsafe" not in policy, policy
for what in ("script", "style"):
    hash = base64.b64encode(hashlib.sha256(p.inside[what].encode()).digest()).decode()
    assert f"{what}-src 'sha256-{hash}'" in policy, what
assert "://" not in p.file and "{{" not in p.file.replace("{{summary}}&#96;", "") and "@import" not in p.file and "url(" not in p.file
assert not re.search(r"\b(nan|inf)\b", p.text, re.I)
exec(sys.argv[2])
END_PY
page() {
    expect "$1" 0 "" python3 page.py page.html "$2"
}

# shellcheck disable=SC2086
{
# ---- a plan that is measured ----
expect measured 0 "" "$zc" report digits.plan -o page.html $quick --save digits.times --model "$model"
no_temporaries measured-temporaries .
steps=$("$zc" inspect digits.plan --json | python3 -c "import json, sys; print(len(json.load(sys.stdin)['blocks'][0]['steps']))")
"$zc" inspect digits.plan --json >digits.json
page measured-page "
import collections, json
of = [name for step in json.load(open('digits.json'))['steps'] for name in step['from']]
rules = collections.Counter(name[5:] for name in of if name.startswith('rule '))
nodes = {name for name in of if not name.startswith('rule ')}
assert rules and all([name, str(n)] in p.rows for name, n in rules.items()), rules
assert p.row('ONNX nodes')[1].startswith('%d nodes in $steps steps, of which ' % len(nodes)), p.row('ONNX nodes')
assert p.text.count('digits.plan') >= 3
assert p.row('times')[1] == 'measured for this report' and p.row('threads')[1] == '1'
assert p.row('inputs')[1] == 'f32[2,1,8,8] image' and 'what it can do' not in p.text
head = [r for r in p.rows if r[:3] == ['step', 'operation', 'name']][0]
at = p.rows.index(head)
steps = p.rows[at + 1:at + 1 + $steps]
assert [r[0] for r in steps] == [str(i) for i in range($steps)] and 'Softmax' in steps[-1][1] and steps[-1][2] == 'node_softmax'
assert p.count('svg', 'timeline') == p.count('svg', 'roofline') == p.count('svg', 'memory') == p.count('svg', 'runs') == 1
assert p.count('path', 'roof') == 0 and 'not known (--peaks)' in p.text
assert [r[2:4] for r in p.rows if r[:1] == ['epilogue']] == [['3', '3']]
assert 'With --expect' in p.text"
"$zc" inspect digits.plan --dim batch=2 >plan.txt
bytes=$(sed -n 's/ bytes of working memory$//p' plan.txt)
page memory "assert p.row('working memory')[1].startswith('%.2f kB' % ($bytes / 1000)), p.row('working memory')"
expect peaks 0 "" "$zc" report digits.plan -o page.html --seconds 0 --threads 1
page measured-peaks "assert p.count('path', 'roof') == 1 and 'GFLOP/s' in p.row('what it can do')[1]"

# ---- saved times: the same bytes, and what they say ----
expect saved 0 "" "$zc" report digits.plan --times digits.times -o page.html --peaks 10,100
cp page.html first.html
expect saved-again 0 "" "$zc" report digits.plan --times digits.times -o page.html --peaks 10,100
expect same-bytes 0 "" cmp page.html first.html
page saved-page "
assert p.row('times')[1] == 'digits.times' and p.row('what it can do')[1] == '10.0 GB/s, 100.0 GFLOP/s'
assert p.count('path', 'roof') == 1 and p.count('svg', 'memory') == 1"
cat >made.times <<'END_TIMES'
zc-bench 1
model 00
device abacus
threads 3
concurrency 2
beads wooden
input f32[4] x
run 2.000000
run 4.000000
run 3.000000
peaks 1000000000 4000000000
step 0 MatMul product
us 100 300 200
work 1000 1000 400000
step 1 Add sum
us 50
work 4000 0 -1 some_kernel_0
END_TIMES
expect alone 0 "" "$zc" report made.times -o page.html
page alone-page "
assert p.row('device')[1] == 'abacus' and p.row('also')[1] == 'concurrency 2beads wooden' and p.row('inputs')[1] == 'f32[4] x'
assert p.row('median of a run')[1].startswith('3.000 ms') and p.row('steps')[1] == '2, together 250.00 µs'
assert ['0', ' MatMul', 'product', '', '', '200.00', '100.00', '80.0', '0.002', '0.01', '2.00', '50.0 arithmetic'] in p.rows, p.rows
assert ['1', ' Add', 'sum', 'some_kernel_0', '', '50.00', '0.00', '20.0', '0.004', '0.08', '–', '8.0 memory'] in p.rows, p.rows
assert p.count('svg', 'memory') == 0 and 'known of plans' in p.text
# The spot: 200 operations a byte at 2 GFLOP/s, between 1 and 1000 and between 1 and 10; the corner at 4.
assert [a for t, a in p.tags if t == 'circle'][0]['cx'] == '739.6', [a for t, a in p.tags if t == 'circle']
bars = [a for t, a in p.tags if t == 'rect' and a.get('height') == '26' and a['class'] != 'plot']
assert [(a['x'], a['width']) for a in bars] == [('80.00', '688.00'), ('768.00', '172.00')], bars"
sed 's/^peaks/energy gpu 0.25 350.5\nenergy cpu 2e-3 80\nclocks SM 1400 to 1980 MHz; held down by: power cap <b>\n&/' made.times >energy.times
expect energy 0 "" "$zc" report energy.times -o page.html
page energy-page "
assert p.row('energy')[1] == \"GPU: 0.25 J a run, 350.5 W on averageCPU's packages: 0.002 J a run, 80.0 W on average\", p.row('energy')
assert p.row('clocks')[1] == 'SM 1400 to 1980 MHz; held down by: power cap <b>' and p.count('b', None) == 0"
sed 's/^peaks .*/peaks 1000000000 0/' made.times >slope.times
expect slope 0 "" "$zc" report slope.times -o page.html
page slope-page "assert p.count('path', 'roof') == 1 and 'How fast the device computes all of them is not known' in p.text and p.row('what it can do')[1] == '1.0 GB/s'"
# Each type of products has its own roof; a step that is as short as an empty kernel is bound by its launch.
{
    sed '/^peaks/,$d' made.times
    cat <<'END_TIMES'
peaks 1000000000 4000000000
peak f16 40000000000
launch 40.000
step 0 MatMul product
us 100
work 1000 1000 2000000 kernel_0
products wgmma.f16
step 1 MatMul other
us 100
work 1000 1000 200000 kernel_1
step 2 Add sum
us 50
work 4000 0 -1 kernel_2
END_TIMES
} >roofs.times
expect roofs 0 "" "$zc" report roofs.times -o page.html
page roofs-page "
assert p.count('path', 'roof') == 2 and 'f16 0.0 TFLOP/s' in p.row('what it can do')[1] and 'is not known' not in p.text
assert ['0', ' MatMul', 'product', 'kernel_0', 'wgmma.f16', '100.00', '0.00', '40.0', '0.002', '0.02', '20.00', '50.0 arithmetic'] in p.rows, p.rows
assert ['1', ' MatMul', 'other', 'kernel_1', '', '100.00', '0.00', '40.0', '0.002', '0.02', '2.00', '50.0 arithmetic'] in p.rows, p.rows
assert ['2', ' Add', 'sum', 'kernel_2', '', '50.00', '0.00', '20.0', '0.004', '0.08', '–', '80.0 launch'] in p.rows, p.rows"
sed '/^step/d; /^us/d; /^work/d; /^peaks/d' made.times >stepless.times
expect stepless 0 "" "$zc" report stepless.times -o page.html
page stepless-page "assert 'saved without steps' in p.text and p.count('svg', 'timeline') == 0"
sed '/^work/d' made.times >workless.times
expect workless 0 "" "$zc" report workless.times -o page.html
page workless-page "assert p.count('svg', 'timeline') == 1 and p.count('svg', 'roofline') == 0"

# ---- several ----
sed 's/^us 100 300 200/us 150 450 300/; s/^run /run 1/' made.times >slow.times
expect several 0 "" "$zc" report made.times slow.times -o page.html
page several-page "
assert p.count('svg', 'comparison') == 1 and p.row('times the first\'s')[2].startswith('4.3333')
assert [' MatMul', '200.00 (1)', '300.00 (1) +50.0 %'] in p.rows, p.rows
assert [r for r in p.rows if r[2:3] == ['product']][1][-1] == '+50.0'"
# Other engines' times, as bench/compare.py writes them.
expect others 0 "" python3 -c "
import pathlib, sys
sys.path.insert(0, '$src/bench')
from saved_times import write_times
for engine, runs in (('zc', [0.5, 0.5, 0.25]), ('PyTorch 2.11, eager', [1, 0.75, 1.5])):
    write_times(pathlib.Path(engine[:2] + '.times'), '00', 'abacus', engine, runs)"
expect others-report 0 "" "$zc" report zc.times Py.times -o page.html
page others-page "
assert p.count('svg', 'comparison') == 1 and p.row('times the first\'s')[2].startswith('2.0000'), p.row('times the first\'s')
assert 'engine PyTorch 2.11, eager' in p.row('also')[2] and p.row('device')[1:] == ['abacus', 'abacus']"
{ sed '/^step/,$d' slow.times; sed -n '/^step 1/,$p' slow.times; sed -n '/^step 0/,/^work/p' slow.times; } >moved.times
expect moved 0 "" "$zc" report made.times moved.times -o page.html
page moved-page "assert [r[2::10] for r in p.rows if r[-1:] in (['+0.0'], ['+50.0'])] == [['sum', '+0.0'], ['product', '+50.0']]"
expect two-plans 0 "" "$zc" report digits.plan plain.plan -o page.html $quick
page two-plans-page "
assert p.rows[0] == ['', 'digits.plan', 'plain.plan'] and p.count('svg', 'memory') == 2
assert int(p.row('steps')[1].split(',')[0]) < int(p.row('steps')[2].split(',')[0])"
expect mixed 0 "" "$zc" report digits.plan made.times -o page.html $quick
page mixed-page "assert p.row('device')[2] == 'abacus' and p.row('weights')[2] == ''"

# ---- accuracy ----
"$zc" run digits.plan --random --dim batch=2 --output-dir good >good.txt
"$zc" run digits.plan --random --seed 7 --dim batch=2 --output-dir other >other.txt
expect accurate 0 "" "$zc" report digits.plan -o page.html $quick --expect good
page accurate-page "assert ['digits.plan', 'good', 'probabilities', '0', '0', 'ok, 20 elements'] in p.rows, p.rows"
expect inaccurate 3 "probabilities: " "$zc" report digits.plan --times digits.times -o page.html --dim batch=2 --expect other
page inaccurate-page "assert [r for r in p.rows if r[:3] == ['digits.plan', 'other', 'probabilities'] and ' of 20 elements differ, worst at [' in r[5]]"
expect tolerant 0 "" "$zc" report digits.plan --times digits.times -o page.html --dim batch=2 --expect other --atol 1
"$zc" run digits.plan --random --dim batch=3 --output-dir larger >larger.txt
expect other-shape 3 "wrong type (got f32[2,10], need f32[3,10])" \
    "$zc" report digits.plan --times digits.times -o page.html --dim batch=2 --expect larger
page other-shape-page "assert 'wrong type: got f32[2,10], need f32[3,10]' in p.text"

expect verified 0 "" "$zc" report digits.plan --times digits.times -o page.html --model "$model" --verify --dim batch=2
page verified-page "
r = [r for r in p.rows if r[1:3] == ['the model by plain kernels', 'probabilities']][0]
assert r[0] == 'digits.plan' and 0 < float(r[3]) < 1e-5 and r[5] == 'ok, 20 elements', r"
"$zc" compile "$model" -o static.plan -q --dim batch=3
expect verified-static 0 "" "$zc" report static.plan -o page.html --seconds 0 --no-peaks --model "$model" --verify --expect larger
page verified-static-page "assert [r[1] for r in p.rows if r[0] == 'static.plan' and r[-1] == 'ok, 30 elements'] == ['larger', 'the model by plain kernels']"
expect verified-not 3 "elements differ, worst at" \
    "$zc" report digits.plan --times digits.times -o page.html --model "$model" --verify --dim batch=2 --rtol 0 --atol 0

# ---- names that would break out; bytes that are not UTF-8 are refused in models, and can only be in a file of times ----
evil='</script><script>alert(1)</script>"><img/src=x/onerror=alert(2)>'"'"'&amp;{{summary}}`'
{
    printf 'form hostile\nopset 17\nin a 1 4\nout y 1 *\n'
    printf 'node Softmax a b name=%s\n' "$evil"
    printf 'node Exp b c name=bell\007escape\033\n'
    printf 'node Softmax c y name=--><svg/onload=alert(3)>\n'
} >forms.txt
"$writer" forms.txt . >/dev/null && "$zc" compile hostile.onnx -o "<img onerror=x>.plan" -q
expect hostile 0 "" "$zc" report "./<img onerror=x>.plan" -o page.html --seconds 0 --no-peaks --save hostile.times --model hostile.onnx
page hostile-page "
names = [r[2] for r in p.rows if len(r) > 8]
assert '''$evil''' in names, names
assert 'bell\\\\x07escape\\\\x1B' in p.text
assert '<img onerror=x>.plan' in p.text and not re.search('[\x00-\x08\x0b-\x1f\x7f]', p.file)"
expect hostile-saved 0 "" "$zc" report "./<img onerror=x>.plan" --times hostile.times -o page.html
page hostile-saved-page "assert '''$evil''' in p.text"
{
    printf 'zc-bench 1\nmodel %s\ndevice %s\nthreads <b>\n%s %s\ninput %s\nrun 1\n' "$evil" "$evil" "$evil" "$evil" "$evil"
    printf 'step 0 %s %s\nus 1\nwork 1 1 1 %s\n' "$evil" "$evil" "$evil"
    printf 'step 1 Op\001\377 \033[2Jname\nus 1\nwork 1 1 1 %s\n' "$evil"
} >evil.times
expect hostile-times 0 "" "$zc" report evil.times -o page.html
page hostile-times-page "
assert p.row('device')[1] == p.row('its SHA-256')[1] == '''$evil''' and p.text.count('''$evil''') >= 8
assert [r for r in p.rows if r[1:3] == [' Op\\\\x01\\\\xFF', '\\\\x1B[2Jname']], p.rows"

# ---- what is refused leaves the page that is there ----
echo "the old page" >page.html
cp page.html old.html
# kept NAME CODE TEXT COMMAND...
kept() {
    expect "$@"
    expect "$1-keeps" 0 "" cmp page.html old.html
}
damaged() {
    sed "$2" made.times >bad.times
    kept "damaged-$1" 2 "bad.times: $3" "$zc" report bad.times -o page.html
}
damaged version 's/^zc-bench 1/zc-bench 2/' 'line 1: need "zc-bench 1"'
damaged runs '/^run/d' "line 9: need runs"
damaged run 's/^run 4.*/run four/' "line 9: need a run's milliseconds"
damaged infinite 's/^run 4.*/run inf/' "line 9: need a run's milliseconds"
damaged peaks 's/^peaks .*/peaks 1/' "line 11: need bytes and operations a second"
damaged no-peaks 's/^peaks .*/peaks 0 0/' "line 11: need bytes and operations a second"
damaged energy 's/^peaks/energy sun 1 1\n&/' "line 11: need gpu or cpu, joules a run and watts"
damaged joules 's/^peaks/energy gpu 1\n&/' "line 11: need gpu or cpu, joules a run and watts"
damaged peak 's/^peaks.*/&\npeak f17 1000/' "line 12: need a type and its operations a second"
damaged launch 's/^peaks.*/&\nlaunch soon/' "line 12: need a launch's microseconds"
damaged step 's/^step 0 .*/step 0 MatMul/' "line 12: need a step"
damaged us 's/^us 100.*/us nan/' "line 13: need a step's microseconds"
damaged many-us "s/^us 50/us $(seq -s ' ' 1 300)/" "line 16: need a step's microseconds"
damaged work 's/^work 1000 .*/work 1000 1000/' "line 14: need a step's bytes and operations"
damaged negative 's/^work 1000 .*/work -1 1000 1/' "line 14: need a step's bytes and operations"
damaged rest '$s/$/\nthe end/' "line 18: need a step"
printf 'zc-bench 1\nrun 1\n\000' >bad.times
kept nul 2 "bad.times: need text (got a NUL byte)" "$zc" report bad.times -o page.html
{ echo "zc-bench 1"; echo "run 1"; seq 0 100000 | sed 's/.*/step & Op name\nus 1/'; } >bad.times
kept many-steps 2 "need no more steps" "$zc" report bad.times -o page.html
{ echo "zc-bench 1"; yes "run 1" | head -3001; } >bad.times
kept many-runs 2 "need no more runs" "$zc" report bad.times -o page.html
: >empty
kept empty-plan 2 "empty: " "$zc" report empty -o page.html
kept no-file 2 "nowhere.plan: cannot open" "$zc" report nowhere.plan -o page.html
kept no-times 2 "nowhere.times: cannot open" "$zc" report digits.plan --times nowhere.times -o page.html
kept other-model 2 "times of something else: model (got '00', need '" "$zc" report digits.plan --times made.times -o page.html
kept other-steps 2 "digits.times: times of something else: number of steps" \
    "$zc" report plain.plan --times digits.times -o page.html
sed 's/^\(step [0-9]* \)Softmax /\1Hardmax /' digits.times >bad.times
kept other-step 2 "times of something else: a step (got 'node_softmax', need 'node_softmax'" \
    "$zc" report digits.plan --times bad.times -o page.html
kept other-onnx 2 "hostile.onnx: is the model of no plan here" "$zc" report digits.plan --times digits.times --model hostile.onnx -o page.html
kept no-expect 2 "cannot open" "$zc" report digits.plan --times digits.times --expect nowhere -o page.html
kept no-plan 1 "needs 1 to 16 plans or files of times (got 0)" "$zc" report -o page.html
kept two-times 1 "needs --times for every plan (got 1, need 2)" "$zc" report digits.plan plain.plan --times digits.times -o page.html
for value in 1 1, ,1 1,2,3 0,1 1,0 1,x inf,1 1e99,1 ''; do
    kept "peaks-$value" 1 "--peaks: got '$value', need GB/s,GFLOP/s" "$zc" report made.times --peaks "$value" -o page.html
done
kept save-alone 1 "--save does nothing without one plan that is measured" "$zc" report digits.plan --times digits.times --save x -o page.html
kept rtol-alone 1 "--rtol does nothing without --expect DIR or --verify" "$zc" report made.times --rtol 1 -o page.html
kept verify-alone 1 "--verify does nothing without --model MODEL" "$zc" report made.times --verify -o page.html
kept rules-alone 1 "--rules does nothing without --model MODEL" "$zc" report made.times --rules x -o page.html
expect no-output 1 "needs --output FILE" "$zc" report made.times
expect no-folder 2 "/nowhere/page.html: cannot open the directory" "$zc" report made.times -o /nowhere/page.html
expect onto-folder 2 "good: " "$zc" report made.times -o good
no_temporaries temporaries .
}
finish
