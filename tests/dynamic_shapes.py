"""Compares zc with ONNX Runtime on models with symbolic dimensions, one plan for all shapes.

usage: python3 tests/dynamic_shapes.py ZC RTOL ATOL MODEL...
Optional: needs the packages onnx and onnxruntime. For each model it compiles one plan, and for three sizes of the
symbolic dimensions runs both on the same random inputs. Exit code 1 when a result differs.
"""

import pathlib
import subprocess
import sys
import tempfile

import numpy as np
import onnxruntime

SIZES = [(1, 7), (2, 19), (3, 33)]  # values for the first and for every later symbol of a model


def make_input(value, sizes: dict, first: int, later: int, rng: np.random.Generator) -> np.ndarray:
    shape = []
    for dim in value.shape:
        if isinstance(dim, str):
            sizes.setdefault(dim, later if sizes else first)
            dim = sizes[dim]
        shape.append(dim)
    if value.type == "tensor(float)":
        return rng.standard_normal(shape).astype(np.float32)
    if value.type == "tensor(bool)":
        return rng.random(shape) < 0.9
    ones = "mask" in value.name
    return (np.ones(shape) if ones else rng.integers(0, 2, shape)).astype(np.int64)


def check(zc: str, rtol: float, atol: float, model: pathlib.Path) -> bool:
    session = onnxruntime.InferenceSession(str(model), providers=["CPUExecutionProvider"])
    good = True
    with tempfile.TemporaryDirectory() as scratch:
        plan = f"{scratch}/model.plan"
        subprocess.run([zc, "compile", str(model), "-o", plan, "--quiet"], check=True)
        for first, later in SIZES:
            rng, sizes, feeds = np.random.default_rng(first * 100 + later), {}, {}
            for i, value in enumerate(session.get_inputs()):
                feeds[value.name] = make_input(value, sizes, first, later, rng)
                np.save(f"{scratch}/input_{i}.npy", feeds[value.name])
            expected = session.run(None, feeds)
            subprocess.run([zc, "run", plan, "--inputs", scratch, "--output-dir", scratch, "--top", "0"], check=True,
                           stdout=subprocess.DEVNULL)
            worst = 0.0
            for i, want in enumerate(expected):
                got = np.load(f"{scratch}/output_{i}.npy")
                same = got.shape == want.shape and got.dtype == want.dtype
                if same and want.size:
                    worst = max(worst, float(np.max(np.abs(got - want) / (atol + rtol * np.abs(want)))))
                good &= same and worst <= 1
            print(f"{model}: {sizes}: worst error {worst:.3f} of the tolerance", flush=True)
    return good


def main() -> None:
    zc, rtol, atol = sys.argv[1], float(sys.argv[2]), float(sys.argv[3])
    results = [check(zc, rtol, atol, pathlib.Path(model)) for model in sys.argv[4:]]
    sys.exit(0 if all(results) else 1)


if __name__ == "__main__":
    main()
