"""Give a weightless model random weights, run it in onnxruntime and keep the result.

    python fill.py bert_base.dynamo.dyn.onnx /tmp/filled/bert --dim batch=2 --dim sequence=37

Writes model.onnx, its external data and test_data_set_0/ into the folder. The
weights are normal, scaled by fan-in where they are multiplied, so that the
activations stay finite. Token ids are below 1000; the last eighth of an
attention mask is zero.
"""
import argparse
import math
from collections import defaultdict
from pathlib import Path

import numpy as np
import onnx
import onnxruntime as ort
from onnx import TensorProto, helper, numpy_helper

TOKENS = 1000


def normal(rng: np.random.Generator, shape: tuple[int, ...], mean: float,
           deviation: float) -> np.ndarray:
    return np.float32(mean) + np.float32(deviation) * rng.standard_normal(shape, np.float32)


def make_weight(rng: np.random.Generator, shape: tuple[int, ...], use: onnx.NodeProto,
                slot: int) -> np.ndarray:
    """slot is the input of the node `use` that takes the weight."""
    op = use.op_type
    if op == "BatchNormalization" and slot == 4:
        return rng.uniform(0.5, 1.5, shape).astype(np.float32)
    if len(shape) == 1:
        is_scale = slot == 1 and op.endswith("Normalization") or op == "Mul"
        return normal(rng, shape, 1.0 if is_scale else 0.0, 0.1)
    if op == "Gather" or op == "Add":
        return normal(rng, shape, 0.0, 0.02)
    if op == "MatMul":
        fan_in = shape[-2]
    elif op == "Gemm":
        fan_in = shape[1 if any(a.name == "transB" and a.i for a in use.attribute) else 0]
    else:
        fan_in = math.prod(shape[1:])
    return normal(rng, shape, 0.0, 1 / math.sqrt(fan_in))


def write_weights(model: onnx.ModelProto, folder: Path, rng: np.random.Generator) -> None:
    uses = defaultdict(list)
    for node in model.graph.node:
        for slot, name in enumerate(node.input):
            uses[name].append((node, slot))
    for tensor in model.graph.initializer:
        if tensor.data_location != TensorProto.EXTERNAL:
            continue
        if tensor.data_type != TensorProto.FLOAT:
            raise ValueError(f"{tensor.name}: only float32 weights are made")
        entry = {item.key: item.value for item in tensor.external_data}
        path = folder / entry["location"]
        path.touch()
        with open(path, "r+b") as data:
            data.seek(int(entry["offset"]))
            make_weight(rng, tuple(tensor.dims), *uses[tensor.name][0]).tofile(data)


def make_input(value: onnx.ValueInfoProto, dims: dict[str, int],
               rng: np.random.Generator) -> np.ndarray:
    kind = value.type.tensor_type
    shape = [dims[d.dim_param] if d.dim_param else d.dim_value for d in kind.shape.dim]
    dtype = helper.tensor_dtype_to_np_dtype(kind.elem_type)
    if dtype.kind == "f":
        return rng.standard_normal(shape).astype(dtype)
    if "mask" in value.name:
        mask = np.ones(shape, dtype)
        mask[..., shape[-1] - shape[-1] // 8:] = 0
        return mask
    return rng.integers(0, TOKENS, shape, dtype)


def write_tensor(path: Path, name: str, value: np.ndarray) -> None:
    path.write_bytes(numpy_helper.from_array(value, name).SerializeToString())


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("model", type=Path)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--dim", action="append", default=[], metavar="NAME=SIZE")
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    dims = {name: int(size) for name, size in (item.split("=") for item in options.dim)}
    rng = np.random.default_rng(options.seed)

    tests = options.folder / "test_data_set_0"
    tests.mkdir(parents=True, exist_ok=True)
    path = options.folder / "model.onnx"
    path.write_bytes(options.model.read_bytes())
    model = onnx.load(path, load_external_data=False)
    write_weights(model, options.folder, rng)

    feeds = {value.name: make_input(value, dims, rng) for value in model.graph.input}
    session = ort.InferenceSession(path, providers=["CPUExecutionProvider"])
    results = session.run(None, feeds)
    for index, (name, array) in enumerate(feeds.items()):
        write_tensor(tests / f"input_{index}.pb", name, array)
    for index, (value, array) in enumerate(zip(model.graph.output, results)):
        if not np.isfinite(array).all():
            raise ValueError(f"{value.name} is not finite")
        write_tensor(tests / f"output_{index}.pb", value.name, array)
        print(f"{options.model.name:28} {value.name:18} {str(array.shape):18}"
              f" std {array.std():.3f}, max |x| {np.abs(array).max():.3f}")


if __name__ == "__main__":
    main()
