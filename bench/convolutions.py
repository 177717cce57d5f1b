"""Makes single convolutions as ONNX files, f32 and channels first, for what the layout pass weighs on Hopper (bench/NOTES.md).

usage: python3 bench/convolutions.py FOLDER
Small ones, where transposes count, beside large ones; two in a row with a ReLU between. Needs onnx and numpy.
"""

import pathlib
import sys

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

# Name, operator, image, weights, attributes, how many in a row.
CASES = [
    ("depth1_small", "Conv", [1, 64, 128], [64, 1, 5], {"group": 64, "pads": [2, 2]}, 1),
    ("depth1_large", "Conv", [8, 512, 2000], [512, 1, 31], {"group": 512, "pads": [15, 15]}, 1),
    ("depth2_small", "Conv", [1, 96, 14, 14], [96, 1, 3, 3], {"group": 96, "pads": [1] * 4}, 1),
    ("one_small", "Conv", [1, 64, 128], [64, 64, 3], {"pads": [1, 1]}, 1),
    ("one_wide", "Conv", [1, 512, 128], [512, 512, 3], {"pads": [1, 1]}, 1),
    ("one_two", "Conv", [1, 64, 128], [64, 64, 3], {"pads": [1, 1]}, 2),
    ("grouped_small", "Conv", [1, 64, 14, 14], [64, 8, 3, 3], {"group": 8, "pads": [1] * 4}, 1),
    ("grouped_large", "Conv", [1, 896, 14, 14], [896, 112, 3, 3], {"group": 8, "pads": [1] * 4}, 1),
    ("two_small", "Conv", [1, 64, 14, 14], [64, 64, 3, 3], {"pads": [1] * 4}, 1),
    ("point_small", "Conv", [1, 64, 14, 14], [64, 64, 1, 1], {}, 1),
    ("two_large", "Conv", [8, 128, 28, 28], [128, 128, 3, 3], {"pads": [1] * 4}, 1),
    ("transposed2_small", "ConvTranspose", [1, 64, 10, 10], [64, 64, 2, 2], {"strides": [2, 2]}, 1),
    ("transposed2_large", "ConvTranspose", [1, 256, 64, 64], [256, 128, 2, 2], {"strides": [2, 2]}, 1),
    ("transposed4", "ConvTranspose", [1, 64, 32, 32], [64, 32, 4, 4], {"strides": [2, 2], "pads": [1] * 4}, 1),
    ("transposed4_large", "ConvTranspose", [8, 256, 64, 64], [256, 128, 4, 4], {"strides": [2, 2], "pads": [1] * 4}, 1),
    ("vocoder", "ConvTranspose", [1, 512, 200], [512, 256, 16], {"strides": [8], "pads": [4, 4]}, 1),
    ("three_small", "Conv", [1, 32, 8, 14, 14], [32, 32, 3, 3, 3], {"pads": [1] * 6}, 1),
    ("three", "Conv", [1, 32, 16, 32, 32], [32, 32, 3, 3, 3], {"pads": [1] * 6}, 1),
]


def make(folder: pathlib.Path, name: str, op: str, image: list[int], shape: list[int], attributes: dict, count: int) -> None:
    random = np.random.default_rng(1)
    nodes, weights, at = [], [], "x"
    for i in range(count):
        w = random.standard_normal(shape) / np.sqrt(np.prod(shape[1:]))
        weights.append(numpy_helper.from_array(w.astype(np.float32), f"w{i}"))
        last = i == count - 1
        nodes.append(helper.make_node(op, [at, f"w{i}"], ["y" if last else f"c{i}"], name=f"conv{i}", **attributes))
        if not last:
            nodes.append(helper.make_node("Relu", [f"c{i}"], [f"r{i}"], name=f"relu{i}"))
            at = f"r{i}"
    graph = helper.make_graph(nodes, name, [helper.make_tensor_value_info("x", TensorProto.FLOAT, image)],
                              [helper.make_tensor_value_info("y", TensorProto.FLOAT, None)], weights)
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
    onnx.save(onnx.shape_inference.infer_shapes(model, strict_mode=True), str(folder / f"{name}.onnx"))


def main() -> None:
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    folder = pathlib.Path(sys.argv[1])
    folder.mkdir(parents=True, exist_ok=True)
    for case in CASES:
        make(folder, *case)


main()
