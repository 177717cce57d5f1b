"""Writes three small models and inputs for them: usage: make.py DIR. Needs nothing but Python.

ocr.onnx       reads a line of digits in a grey picture by comparing it with their shapes
voice.onnx     tells speech from silence, 512 samples at a time, by a loudness that it keeps as its state
filetype.onnx  tells a file's type from its first 64 bytes
"""
import math
import os
import struct
import sys
import zlib

FLOAT, INT32, INT64 = 1, 6, 7

# ---- ONNX, which is protobuf ----


def varint(n):
    out = b""
    while n > 127:
        out += bytes([n & 127 | 128])
        n >>= 7
    return out + bytes([n])


def field(number, value):
    if isinstance(value, int):
        return varint(number << 3) + varint(value & (1 << 64) - 1)
    data = value.encode() if isinstance(value, str) else value
    return varint(number << 3 | 2) + varint(len(data)) + data


def tensor(name, kind, dims, values):
    raw = struct.pack("<%d%s" % (len(values), {FLOAT: "f", INT32: "i", INT64: "q"}[kind]), *values)
    return b"".join(field(1, d) for d in dims) + field(2, kind) + field(8, name) + field(9, raw)


def value(name, kind, dims):
    shape = b"".join(field(1, field(2 if isinstance(d, str) else 1, d)) for d in dims)
    return field(1, name) + field(2, field(1, field(1, kind) + field(2, shape)))


def attribute(name, v):
    if isinstance(v, list):
        return field(1, name) + b"".join(field(8, i) for i in v) + field(20, 7)
    return field(1, name) + field(3, v) + field(20, 2)


def node(op, inputs, outputs, **attributes):
    return (b"".join(field(1, x) for x in inputs) + b"".join(field(2, y) for y in outputs) + field(3, outputs[0]) +
            field(4, op) + b"".join(field(5, attribute(k, v)) for k, v in attributes.items()))


def model(path, nodes, constants, inputs, outputs):
    graph = (b"".join(field(1, n) for n in nodes) + field(2, "graph") + b"".join(field(5, c) for c in constants) +
             b"".join(field(11, i) for i in inputs) + b"".join(field(12, o) for o in outputs))
    with open(path, "wb") as f:
        f.write(field(1, 8) + field(7, graph) + field(8, field(1, "") + field(2, 17)))


# ---- a line of digits ----

GLYPHS = ["01110 10001 10011 10101 11001 10001 01110", "00100 01100 00100 00100 00100 00100 01110",
          "01110 10001 00001 00110 01000 10000 11111", "11111 00010 00100 00010 00001 10001 01110",
          "00010 00110 01010 10010 11111 00010 00010", "11111 10000 11110 00001 00001 10001 01110",
          "00110 01000 10000 11110 10001 10001 01110", "11111 00001 00010 00100 01000 01000 01000",
          "01110 10001 10001 01110 10001 10001 01110", "01110 10001 10001 01111 00001 00010 01100"]
HEIGHT, WIDTH = 7, 6


def pixels(digit):
    return [[int(c) for c in row] + [0] for row in GLYPHS[digit].split()]


def write_ocr(dir):
    # Ink where the shape has it counts for, elsewhere against it: the right shape has the greatest sum.
    kernel = [1.0 if p else -1.0 for d in range(10) for row in pixels(d) for p in row]
    bias = [-float(sum(p for row in pixels(d) for p in row)) for d in range(10)]
    model(os.path.join(dir, "ocr.onnx"),
          [node("Conv", ["line", "shapes", "ink"], ["sums"], strides=[HEIGHT, WIDTH]),
           node("Squeeze", ["sums", "axes"], ["rows"]), node("Transpose", ["rows"], ["scores"], perm=[1, 0]),
           node("Softmax", ["scores"], ["characters"], axis=1)],
          [tensor("shapes", FLOAT, [10, 1, HEIGHT, WIDTH], kernel), tensor("ink", FLOAT, [10], bias),
           tensor("axes", INT64, [2], [0, 2])],
          [value("line", FLOAT, [1, 1, HEIGHT, "width"])], [value("characters", FLOAT, ["characters", 10])])
    write_png(os.path.join(dir, "line.png"), [3, 1, 4, 1, 5, 9, 2, 6])
    with open(os.path.join(dir, "digits.txt"), "w") as f:
        f.write("".join("%d\n" % d for d in range(10)))


def write_png(path, digits):
    def chunk(kind, data):
        return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))
    rows = b"".join(b"\0" + bytes(255 * p for d in digits for p in pixels(d)[y]) for y in range(HEIGHT))
    head = struct.pack(">IIBBBBB", WIDTH * len(digits), HEIGHT, 8, 0, 0, 0, 0)
    with open(path, "wb") as f:
        f.write(b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", head) + chunk(b"IDAT", zlib.compress(rows)) + chunk(b"IEND", b""))


# ---- speech ----


def write_voice(dir):
    model(os.path.join(dir, "voice.onnx"),
          [node("Mul", ["sound", "sound"], ["power"]), node("ReduceMean", ["power"], ["now"], axes=[1]),
           node("Mul", ["state", "keep"], ["kept"]), node("Mul", ["now", "take"], ["taken"]),
           node("Add", ["kept", "taken"], ["state_out"]), node("Sub", ["state_out", "threshold"], ["over"]),
           node("Mul", ["over", "slope"], ["score"]), node("Sigmoid", ["score"], ["speech"])],
          [tensor(name, FLOAT, [], [v])
           for name, v in (("keep", 0.6), ("take", 0.4), ("threshold", 0.01), ("slope", 500.0))],
          [value("sound", FLOAT, [1, 512]), value("state", FLOAT, [1, 1])],
          [value("speech", FLOAT, [1, 1]), value("state_out", FLOAT, [1, 1])])
    loud = [8000 <= i < 24000 for i in range(32000)]
    samples = [int(12000 * math.sin(i / 20) * math.sin(i / 500)) if on else 20 * (i % 3) for i, on in enumerate(loud)]
    data = struct.pack("<%dh" % len(samples), *samples)
    head = b"WAVEfmt " + struct.pack("<IHHIIHH", 16, 1, 1, 16000, 32000, 2, 16) + b"data" + struct.pack("<I", len(data))
    with open(os.path.join(dir, "talk.wav"), "wb") as f:
        f.write(b"RIFF" + struct.pack("<I", len(head) + len(data)) + head + data)


# ---- types of files ----

TYPES = [("png", b"\x89PNG"), ("zip", b"PK\x03\x04"), ("pdf", b"%PDF"), ("wav", b"RIFF"), ("elf", b"\x7fELF")]


def write_filetype(dir):
    magic = [b for _, bytes in TYPES for b in bytes]
    model(os.path.join(dir, "filetype.onnx"),
          [node("Slice", ["bytes", "begin", "end", "axis"], ["head"]), node("Unsqueeze", ["head", "axis"], ["heads"]),
           node("Equal", ["heads", "magic"], ["same"]), node("Cast", ["same"], ["hits"], to=FLOAT),
           node("ReduceSum", ["hits", "last"], ["sums"], keepdims=0), node("Mul", ["sums", "slope"], ["known"]),
           node("Concat", ["known", "other"], ["scores"], axis=1), node("Softmax", ["scores"], ["type"], axis=1)],
          [tensor("begin", INT64, [1], [0]), tensor("end", INT64, [1], [4]), tensor("axis", INT64, [1], [1]),
           tensor("last", INT64, [1], [2]), tensor("magic", INT32, [1, len(TYPES), 4], magic),
           tensor("slope", FLOAT, [], [4.0]), tensor("other", FLOAT, [1, 1], [10.0])],
          [value("bytes", INT32, [1, 64])], [value("type", FLOAT, [1, len(TYPES) + 1])])
    with open(os.path.join(dir, "types.txt"), "w") as f:
        f.write("".join(name + "\n" for name, _ in TYPES) + "other\n")


os.makedirs(sys.argv[1], exist_ok=True)
write_ocr(sys.argv[1])
write_voice(sys.argv[1])
write_filetype(sys.argv[1])
