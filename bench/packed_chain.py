#!/usr/bin/env python3
"""packed_chain.py DIR [--rows N|NAME] [--size N] [--products N] [--block N]

Writes chains of products of few rows by square matrices, as steps of decoding have them: f16.onnx of
--products MatMuls, int8.onnx of twice as many and int4.onnx of four times as many (MatMulNBits of
com.microsoft), and mxfp4.onnx and nvfp4.onnx of as many (DequantizeLinear of FLOAT4E2M1 by FLOAT8E8M0 in
blocks of 32, by FLOAT8E4M3FN and one number for all in blocks of 16, whatever --block says), so that all read as much: weights.bin or codes.bin, random numbers of such a
size that a product's results are about as large as its operand. sparse.onnx is f16.onnx with two zeros in
each four weights along the summed axis (sparse.bin).
Nothing but the standard library is needed. How long they take: zc compile, then gpu_session PLAN; of
rows by a name, which are not certain: zc bench PLAN --random --dim NAME=512."""
import argparse
import math
import os
import random
import struct

F32, F16, U8, E4M3, E2M1, E8M0 = 1, 10, 2, 17, 23, 24
SMALL = bytes(i & 0x83 | 0x20 for i in range(256))  # as f16's high byte: 2^-7 to 2^-6 and their negatives


def field(number, data):
    """A field of the wire format: a whole number, text or a message."""
    if isinstance(data, int):
        return varint(number << 3) + varint(data)
    data = data.encode() if isinstance(data, str) else data
    return varint(number << 3 | 2) + varint(len(data)) + data


def varint(n):
    out = b""
    while n > 127:
        out += bytes([n & 127 | 128])
        n >>= 7
    return out + bytes([n])


def tensor(name, dtype, dims, data=None, file="", offset=0, length=0):
    out = b"".join(field(1, d) for d in dims) + field(2, dtype) + field(8, name)
    if data is not None:
        return out + field(9, data)
    entries = {"location": file, "offset": str(offset), "length": str(length)}
    for key, value in entries.items():
        out += field(13, field(1, key) + field(2, value))
    return out + field(14, 1)


def value(name, dims):
    shape = b"".join(field(1, field(1 if isinstance(d, int) else 2, d)) for d in dims)
    return field(1, name) + field(2, field(1, field(1, F16) + field(2, shape)))


def node(op, inputs, output, domain="", **attrs):
    out = b"".join(field(1, v) for v in inputs) + field(2, output) + field(4, op) + field(7, domain)
    for name, n in attrs.items():
        out += field(5, field(1, name) + field(3, n) + field(20, 2))
    return out


def nbits(i, bits, size, block):
    inputs = (f"x{i}", f"w{i}", f"s{i}")
    out = node("MatMulNBits", inputs, f"x{i + 1}", "com.microsoft", K=size, N=size, bits=bits, block_size=block)
    length = size * size * bits // 8
    scale = 0.217 / size**0.5 / 2 ** (bits - 4)
    scales = struct.pack("<2e", scale, -scale) * (size * size // block // 2)
    weights = tensor(f"w{i}", U8, (size, size // block, block * bits // 8), None, "codes.bin", i * length, length)
    return [out], [weights, tensor(f"s{i}", F16, (size * size // block,), scales)]


def fp4(i, size, block):
    length = size * size // 2
    weights = tensor(f"w{i}", E2M1, (size, size), None, "codes.bin", i * length, length)
    real = node("DequantizeLinear", (f"w{i}", f"s{i}"), f"r{i}", axis=0, block_size=block, output_dtype=F16)
    product = node("MatMul", (f"x{i}", f"r{i}"), f"x{i + 1}")
    return real, product, weights, (size // block, size)


# Numbers of 2.7 by root mean square, and two scales, for what a product of them is divided by.
def mxfp4(i, size):
    real, product, weights, blocks = fp4(i, size, 32)
    exponent = 127 - round(math.log2(2.7 * size**0.5))
    scales = bytes((exponent, exponent - 1)) * (blocks[0] * blocks[1] // 2)
    return [real, product], [weights, tensor(f"s{i}", E8M0, blocks, scales)]


def nvfp4(i, size):
    real, product, weights, blocks = fp4(i, size, 16)
    scales = bytes((0x38, 0x30)) * (blocks[0] * blocks[1] // 2)  # 1 and 0.5
    scaled = node("DequantizeLinear", (f"c{i}", f"a{i}"), f"s{i}")
    all_of = tensor(f"a{i}", F32, (), struct.pack("<f", 1 / (2.1 * size**0.5)))
    return [scaled, real, product], [weights, tensor(f"c{i}", E4M3, blocks, scales), all_of]


def plain(i, size, file):
    length = 2 * size * size
    out = node("MatMul", (f"x{i}", f"w{i}"), f"x{i + 1}")
    return [out], [tensor(f"w{i}", F16, (size, size), None, file, i * length, length)]


def pruned(data, size, pick):
    """Of each four rows of a matrix two become zeros."""
    out = bytearray(data)
    line = 2 * size
    for first in range(0, size, 4):
        for row in pick.sample(range(first, first + 4), 2):
            out[row * line : (row + 1) * line] = bytes(line)
    return out


def write(path, o, count, product):
    nodes, weights = zip(*(product(i) for i in range(count)))
    graph = b"".join(field(1, n) for ns in nodes for n in ns) + field(2, "chain")
    graph += b"".join(field(5, t) for ts in weights for t in ts)
    graph += field(11, value("x0", (o.rows, o.size)))
    graph += field(12, value(f"x{count}", (o.rows, o.size)))
    sets = field(8, field(1, "") + field(2, 24)) + field(8, field(1, "com.microsoft") + field(2, 1))
    with open(path, "wb") as f:
        f.write(field(1, 10) + field(7, graph) + sets)


def main():
    p = argparse.ArgumentParser()
    p.add_argument("dir")
    p.add_argument("--rows", type=lambda s: int(s) if s.isdigit() else s, default=1)
    p.add_argument("--size", type=int, default=4096)
    p.add_argument("--products", type=int, default=8)
    p.add_argument("--block", type=int, default=32)
    o = p.parse_args()
    os.makedirs(o.dir, exist_ok=True)
    weights = open(os.path.join(o.dir, "weights.bin"), "wb")
    sparse = open(os.path.join(o.dir, "sparse.bin"), "wb")
    codes = open(os.path.join(o.dir, "codes.bin"), "wb")
    with weights, sparse, codes:
        for i in range(o.products):
            data = bytearray(random.Random(i).randbytes(2 * o.size * o.size))
            codes.write(data)
            data[1::2] = data[1::2].translate(SMALL)
            weights.write(data)
            sparse.write(pruned(data, o.size, random.Random(i)))
    for bits in (4, 8):
        chain = lambda i: nbits(i, bits, o.size, o.block)
        write(os.path.join(o.dir, f"int{bits}.onnx"), o, o.products * 16 // bits, chain)
    for name, chain in (("mxfp4", mxfp4), ("nvfp4", nvfp4)):
        write(os.path.join(o.dir, f"{name}.onnx"), o, o.products * 4, lambda i: chain(i, o.size))
    write(os.path.join(o.dir, "f16.onnx"), o, o.products, lambda i: plain(i, o.size, "weights.bin"))
    write(os.path.join(o.dir, "sparse.onnx"), o, o.products, lambda i: plain(i, o.size, "sparse.bin"))


main()
