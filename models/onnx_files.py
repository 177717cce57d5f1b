"""What the scripts that train models here write."""
from pathlib import Path

import numpy as np
import onnx
from onnx import numpy_helper


def write_model(path: Path, model: onnx.ModelProto) -> None:
    """Without the exporter's metadata."""
    del model.metadata_props[:]
    for node in model.graph.node:
        del node.metadata_props[:]
    for value in (*model.graph.value_info, *model.graph.input, *model.graph.output,
                  *model.graph.initializer):
        del value.metadata_props[:]
    onnx.checker.check_model(model, full_check=True)
    path.write_bytes(model.SerializeToString(deterministic=True))


def write_tensor(path: Path, name: str, value: np.ndarray) -> None:
    path.parent.mkdir(exist_ok=True)
    path.write_bytes(numpy_helper.from_array(value, name).SerializeToString(deterministic=True))
