#!/bin/sh
# usage: media.sh ZC SOURCE_DIR WRITER: inputs from .npz, bare elements, PNG, JPEG and WAV; casts; results as .npz and
# bare elements; damaged and hostile files of each kind.
. "$(dirname "$0")/lib.sh"
writer=$(realpath "$3")
cd "$dir"
cat >forms.txt <<'END'
form one
opset 17
in x 1 n
out y 1 n
node Neg x y
form two
opset 17
in a 1 2
in b 7 2
out y 1 2
out z 7 2
node Neg a y
node Neg b z
form planes
opset 17
in x 1 1,3,2,2
out y 1 1,3,2,2
node Identity x y
form last
opset 17
in x 2 1,h,w,3
out y 2 1,h,w,3
node Identity x y
form grey
opset 17
in x 1 1,1,h,w
out y 1 1,1,h,w
node Identity x y
form sound
opset 17
in x 1 1,n
out y 1 1,n
node Identity x y
form sound16
opset 17
in x 5 n
out y 5 n
node Identity x y
form features
opset 17
in x 1 1,5,h,w
out y 1 1,5,h,w
node Identity x y
END
"$writer" forms.txt . >/dev/null || exit 1
for name in one two planes last grey sound sound16 features; do "$zc" compile $name.onnx -o $name.plan -q; done
cat >make.py <<'END'
import base64, io, struct, sys, zipfile, zlib
def npy(kind, shape, data):
    head = "{'descr': '%s', 'fortran_order': False, 'shape': (%s), }" % (kind, shape)
    head += ' ' * (117 - len(head)) + '\n'
    return b'\x93NUMPY\x01\x00' + struct.pack('<H', len(head)) + head.encode() + data
f2 = npy('<f4', '2,', struct.pack('<2f', 1, 2))
i2 = npy('<i8', '2,', struct.pack('<2q', 3, 4))
d2 = npy('<f8', '2,', struct.pack('<2d', 1.5, 300))
def archive(path, method, entries):
    with zipfile.ZipFile(path, 'w', method) as z:
        for name, data in entries: z.writestr(name, data)
archive('stored.npz', zipfile.ZIP_STORED, [('a.npy', f2), ('b.npy', i2)])
archive('packed.npz', zipfile.ZIP_DEFLATED, [('b.npy', i2), ('a.npy', f2)])
archive('single.npz', zipfile.ZIP_DEFLATED, [('arr_0.npy', f2)])
archive('gap.npz', zipfile.ZIP_STORED, [('a.npy', f2)])
archive('text.npz', zipfile.ZIP_STORED, [('a.npy', b'no array'), ('b.npy', i2)])
archive('lzma.npz', zipfile.ZIP_LZMA, [('a.npy', f2), ('b.npy', i2)])
open('cut.npz', 'wb').write(open('packed.npz', 'rb').read()[:-30])
def patched(path, source, old, new):
    data = open(source, 'rb').read()
    assert old in data
    open(path, 'wb').write(data.replace(old, new))
patched('checksum.npz', 'stored.npz', struct.pack('<2f', 1, 2), struct.pack('<2f', 1, 3))
z = zipfile.ZipFile('packed.npz').getinfo('a.npy')
size = struct.pack('<2I', z.compress_size, z.file_size)
patched('bomb.npz', 'packed.npz', size, struct.pack('<2I', z.compress_size, 0xF0000000))
patched('more.npz', 'packed.npz', size, struct.pack('<2I', z.compress_size, z.file_size + 1))
patched('less.npz', 'packed.npz', size, struct.pack('<2I', z.compress_size, z.file_size - 1))
patched('zip64.npz', 'packed.npz', size, struct.pack('<2I', z.compress_size, 0xFFFFFFFF))
patched('zip64-end.npz', 'stored.npz', b'PK\5\6\0\0\0\0\2\0\2\0', b'PK\5\6\0\0\0\0\xff\xff\xff\xff')
negated = [('z.npy', npy('<i8', '2,', struct.pack('<2q', -3, -4))), ('y.npy', npy('<f4', '2,', struct.pack('<2f', -1, -2)))]
archive('negated.npz', zipfile.ZIP_DEFLATED, negated)
archive('negated-wrong.npz', zipfile.ZIP_STORED, [('z.npy', npy('<i8', '2,', struct.pack('<2q', -3, -5))), negated[1]])
archive('gap-out.npz', zipfile.ZIP_STORED, [negated[0], ('q.npy', f2)])
open('f2.npy', 'wb').write(f2)
open('i2.npy', 'wb').write(i2)
open('d2.npy', 'wb').write(d2)
open('f2.bin', 'wb').write(struct.pack('<2f', 1, 2))
def chunk(kind, data):
    return struct.pack('>I', len(data)) + kind + data + struct.pack('>I', zlib.crc32(kind + data))
def png(path, w, h, kind, rows):
    raw = b''.join(b'\0' + row for row in rows)
    open(path, 'wb').write(b'\x89PNG\r\n\x1a\n' + chunk(b'IHDR', struct.pack('>IIBBBBB', w, h, 8, kind, 0, 0, 0)) +
                           chunk(b'IDAT', zlib.compress(raw)) + chunk(b'IEND', b''))
png('rgb.png', 2, 2, 2, [bytes([1, 2, 3, 4, 5, 6]), bytes([7, 8, 9, 10, 11, 12])])
png('grey.png', 4, 2, 0, [bytes([0, 10, 20, 30]), bytes([40, 50, 60, 70])])
png('clear.png', 1, 1, 6, [bytes([9, 9, 9, 0])])
png('flat.png', 30, 20, 2, [bytes([50, 100, 150] * 30)] * 20)
png('bomb.png', 60000, 60000, 0, [b'\0'])
open('cut.png', 'wb').write(open('flat.png', 'rb').read()[:-20])
open('flat.jpg', 'wb').write(base64.b64decode(sys.argv[1]))
open('cut.jpg', 'wb').write(base64.b64decode(sys.argv[1])[:-6])
jpeg = bytearray(base64.b64decode(sys.argv[1]))
at = jpeg.index(b'\xff\xc0')
jpeg[at + 5:at + 9] = b'\xff\xff\xff\xff'
open('bomb.jpg', 'wb').write(jpeg)
def wav(path, kind, channels, bits, data, size=None):
    fmt = struct.pack('<HHIIHH', kind, channels, 16000, 32000, 2, bits)
    body = b'WAVEfmt ' + struct.pack('<I', 16) + fmt + b'LIST' + struct.pack('<I', 3) + b'abc\0' + \
        b'data' + struct.pack('<I', len(data) if size is None else size) + data
    open(path, 'wb').write(b'RIFF' + struct.pack('<I', len(body)) + body)
wav('pcm16.wav', 1, 1, 16, struct.pack('<4h', 0, 16384, -32768, 8192))
wav('pcm8.wav', 1, 1, 8, bytes([128, 192, 0]))
wav('pcm24.wav', 1, 1, 24, bytes([0, 0, 64, 0, 0, 128]))
wav('pcm32.wav', 1, 1, 32, struct.pack('<2i', 1 << 30, -(1 << 31)))
wav('float.wav', 3, 1, 32, struct.pack('<2f', 0.25, -1))
wav('stereo.wav', 1, 2, 16, struct.pack('<4h', 16384, 0, -16384, -16384))
wav('open.wav', 1, 1, 16, struct.pack('<2h', 16384, 0), 0xFFFFFFFF)
wav('adpcm.wav', 2, 1, 4, b'1234')
wav('many.wav', 1, 65000, 16, b'1234')
open('cut.wav', 'wb').write(open('pcm16.wav', 'rb').read()[:30])
END
python3 make.py "$(cat "$src/tests/cli/flat.jpg.base64")" || exit 1
one() {
    "$zc" run one.plan --json "$@"
}
two() {
    "$zc" run two.plan --json "$@"
}
input() { # FORM FILE OPTION...
    form=$1
    file=$2
    shift 2
    "$zc" run "$form.plan" --json --input "x=$file" "$@"
}

# ---- .npz ----
for file in stored packed; do
    expect "npz-$file-a" 0 '"name": "y", "type": "f32", "shape": [2], "data": [-1, -2]' two --inputs $file.npz
    expect "npz-$file-b" 0 '"name": "z", "type": "i64", "shape": [2], "data": [-3, -4]' two --inputs $file.npz
done
expect npz-input 0 '"data": [-3, -4]' two --input a=f2.npy --input b=packed.npz
expect npz-single 0 '"data": [-1, -2]' one --input x=single.npz
expect npz-stdin 0 '"data": [-1, -2]' sh -c '"$1" run one.plan --json --input x=- <single.npz' sh "$zc"
expect npz-gap 1 "b: has no value (no array of this name in gap.npz; --random fills gaps)" two --inputs gap.npz
expect npz-gap-filled 0 '"data": [-1, -2]' two --inputs gap.npz --random
expect npz-name 2 "stored.npz: the archive has no array of this name (got 2 others, need 'x')" one --input x=stored.npz
expect npz-cut 2 "cut.npz: the zip archive is damaged or cut short: it has no end record" two --inputs cut.npz
expect npz-text 2 "text.npz: a.npy: this looks like text, not a .npy array" two --inputs text.npz
expect npz-lzma 2 "lzma.npz: a.npy: unknown compression (got method 14, need 0 or 8)" two --inputs lzma.npz
expect npz-checksum 2 "checksum.npz: a.npy: the archive's entry is damaged (its checksum is another)" two --inputs checksum.npz
if has_memory_limits; then
    expect npz-bomb 2 "bomb.npz: a.npy: the archive's entry is damaged (it says 4026531840 bytes from" \
        sh -c 'ulimit -v 4000000; "$@"' sh "$zc" run two.plan --inputs bomb.npz
else
    skip npz-bomb "no limit on address space here, or a sanitizer that needs much"
fi
for file in more less; do
    expect "npz-$file" 2 "a.npy: the archive's entry is damaged (its bytes do not inflate to what it says)" two --inputs $file.npz
done
expect npz-zip64 2 "zip64.npz: a.npy: zip64 is not read: this entry is too large (need below 4 GiB)" two --inputs zip64.npz
expect npz-zip64-end 2 "zip64-end.npz: a zip64 archive is not read" two --inputs zip64-end.npz
expect expect-npz 0 '"data": [-1, -2]' two --inputs stored.npz --expect negated.npz
expect expect-npz-differs 3 "z: 1 of 2 elements differ, worst at [1] (got -4, need -5)" two --inputs stored.npz --expect negated-wrong.npz
expect expect-npz-name 2 "gap-out.npz: the archive has no array of this name (got 2 others, need 'y')" two --inputs stored.npz --expect gap-out.npz
expect expect-no-npz 2 "forms.txt: this is no .npz file (need one, or a folder)" two --inputs stored.npz --expect forms.txt
expect npz-other 2 "forms.txt: this is no .npz file (need one, or a folder)" two --inputs forms.txt
expect npz-saved 0 "ran in" "$zc" run two.plan --inputs stored.npz --output-dir results --format npz
expect npz-python 0 "['y.npy', 'z.npy']" \
    python3 -c 'import zipfile; z = zipfile.ZipFile("results/outputs.npz"); assert not z.testzip(); print(z.namelist())'
expect npz-same 0 '"data": [1, 2]' sh -c 'python3 -c "
import zipfile
z = zipfile.ZipFile(\"results/outputs.npz\")
open(\"y.npy\", \"wb\").write(z.read(\"y.npy\"))" && "$1" run one.plan --json --input x=y.npy' sh "$zc"
echo old >results/outputs.npz
expect npz-kept 2 "cannot write (File too large)" sh -c 'ulimit -f 1; "$@"' sh \
    "$zc" run one.plan --random --dim n=4096 --output-dir results --format npz
expect npz-old 0 "old" cat results/outputs.npz
no_temporaries npz-temporaries results

# ---- bare elements, casts ----
expect raw 0 '"data": [-1, -2]' one --input x=f2.bin --raw x=f32:2
expect raw-stdin 0 '"data": [-1, -2]' sh -c '"$1" run one.plan --json --input x=- --raw x=f32:2 <f2.bin' sh "$zc"
expect raw-size 2 "f2.bin: wrong size for f32[3] (got 8 bytes, need 12)" one --input x=f2.bin --raw x=f32:3
expect raw-huge 2 "f2.bin: wrong size for" one --input x=f2.bin --raw x=f32:4000000000x4000000000
expect raw-type 1 "got 'f31:2', need TYPE:SHAPE, as f32:1x3x8" one --input x=f2.bin --raw x=f31:2
expect raw-name 1 "the plan has no input of this name, or it is given twice (got 'q=f32:2')" one --random --raw q=f32:2
expect raw-saved 0 "ran in" "$zc" run one.plan --input x=f2.npy --output-dir raw --format raw
expect raw-same 0 '"data": [1, 2]' one --input x=raw/output_0.bin --raw x=f32:2
expect cast-none 2 "x: wrong element type (got i64, need f32)" one --input x=i2.npy
expect cast 0 '"data": [-3, -4]' one --input x=i2.npy --cast
expect raw-twice 1 "or it is given twice (got 'x=f32:2')" one --input x=f2.bin --raw x=u8:8 --raw x=f32:2
expect raw-cast 0 '"data": [-0, -0, -128, -63, -0, -0, -0, -64]' one --input x=f2.bin --raw x=u8:8 --cast
expect cast-whole 0 '"type": "i64", "shape": [2], "data": [-1, -300]' two --input a=f2.npy --input b=d2.npy --cast

# ---- images ----
expect png 0 '"shape": [1, 3, 2, 2], "data": [1, 4, 7, 10, 2, 5, 8, 11, 3, 6, 9, 12]' input planes rgb.png
expect png-last 0 '"type": "u8", "shape": [1, 2, 2, 3], "data": [1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12]' input last rgb.png
expect png-grey 0 '"shape": [1, 1, 2, 4], "data": [0, 10, 20, 30, 40, 50, 60, 70]' input grey grey.png
expect png-clear 0 '"data": [255]' input grey clear.png
expect png-numbers 0 '"data": [0, 1.5, 3, 4.5, 0, 0.75,' input planes rgb.png --mean 1,2,3 --scale 0.5,0.25,1
expect png-halved 0 '"shape": [1, 1, 1, 2]' input grey grey.png --dim h=1 --dim w=2
expect png-smaller 0 '"shape": [1, 3, 2, 2], "data": [50, 50, 50, 50, 100, 100, 100, 100, 150, 150, 150, 150]' input planes flat.png
expect png-larger 0 '"shape": [1, 1, 1, 4], "data": [255, 255, 255, 255]' input grey clear.png --dim h=1 --dim w=4
expect jpeg 0 '"shape": [1, 3, 2, 2], "data": [200, 200, 200, 200, 100, 100, 100, 100, 50, 50, 50, 50]' input planes flat.jpg
expect jpeg-grey 0 '"shape": [1, 1, 8, 8]' input grey flat.jpg
expect png-cut 2 "cut.png: a damaged PNG image (" input planes cut.png
expect jpeg-cut 2 "cut.jpg: a damaged JPEG image (" input planes cut.jpg
expect png-bomb 2 "bomb.png: too large an image (got 60000 x 60000" input grey bomb.png
expect jpeg-bomb 2 "bomb.jpg: " input grey bomb.jpg
expect image-rank 2 "an image needs an input of 4 dimensions (got 1)" input one rgb.png
expect image-channels 2 "an image has 1 or 3 channels (the plan takes 5 as dimension 1" input features rgb.png
expect mean-alone 1 "--mean: is of images (no input is one)" one --input x=f2.npy --mean 1
expect layout-alone 1 "--layout: is of images (no input is one)" one --random --layout nhwc
expect raw-alone 1 "x: --raw: no file is given for it" one --random --raw x=f32:2
expect json-labels 1 "--json and --labels exclude each other" one --random --labels forms.txt
expect mean-words 1 "--mean: got '1,2', need one number, or three with commas" input planes rgb.png --mean 1,2

# ---- sound ----
expect wav-16 0 '"shape": [1, 4], "data": [0, 0.5, -1, 0.25]' input sound pcm16.wav
expect wav-8 0 '"data": [0, 0.5, -1]' input sound pcm8.wav
expect wav-24 0 '"data": [0.5, -1]' input sound pcm24.wav
expect wav-32 0 '"data": [0.5, -1]' input sound pcm32.wav
expect wav-float 0 '"data": [0.25, -1]' input sound float.wav
expect wav-stereo 0 '"data": [0.25, -0.5]' input sound stereo.wav
expect wav-open 0 '"data": [0.5, 0]' input sound open.wav
expect wav-whole 0 '"type": "i16", "shape": [4], "data": [0, 16384, -32768, 8192]' input sound16 pcm16.wav
expect wav-note 0 "zc: note: sound of 2 samples, 16000 Hz, 2 channels" input sound stereo.wav
expect wav-sliced 0 '"shape": [1, 4], "data": [0, 0.5, -1, 0.25]' input sound pcm16.wav --slice x=1:2 --concat 1
expect wav-adpcm 2 "adpcm.wav: unknown WAV encoding (got format 2 of 4 bits" input sound adpcm.wav
expect wav-many 2 "many.wav: the WAV file has 65000 channels (need 1 to 64)" input sound many.wav
expect wav-cut 2 "cut.wav: the WAV file lacks its format" input sound cut.wav
expect wav-type 2 "sound needs an input of floats or i16 with a dimension (got u8, rank 4)" input last pcm16.wav

finish
