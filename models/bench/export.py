"""Export the benchmark models from PyTorch to ONNX, without their weights.

    python -m venv /tmp/venv && /tmp/venv/bin/pip install -r requirements.txt
    /tmp/venv/bin/python export.py                       # all of them
    /tmp/venv/bin/python export.py bert_base.dynamo.dyn  # or only those named

Writes NAME.onnx beside this file. NAME is <model>.<exporter>[.noopt][.dyn]:
legacy is the TorchScript exporter, dynamo the torch.export one, noopt the
latter without its optimiser, and dyn has dynamic batch and sequence axes (of
images: the batch alone; of a decoding step: the batch and the past's length).

Every weight, a float initialiser over 1 KiB, is left out: its tensor says
EXTERNAL, with an offset and a length in a file NAME.data that does not exist
(fill.py makes one). Integer and boolean tables and float ones of one repeated
value stay in the file, since the exporter computed them. The models are built
from their configurations with random parameters, and nothing is downloaded.
No matrix of the 7B model is ever allocated: each is one random row, expanded
with a zero stride.
"""
import io
import math
import sys
import tempfile
import warnings
from pathlib import Path
from typing import Callable, NamedTuple

import numpy as np
import onnx
import onnx_ir as ir
import torch
import torchvision
from onnx import TensorProto
from onnx.helper import tensor_dtype_to_np_dtype
from onnx.numpy_helper import to_array
from torch import Tensor, nn
from transformers import (BertConfig, BertModel, DynamicCache, GPT2Config, GPT2LMHeadModel,
                          LlamaConfig, LlamaForCausalLM)
from transformers.models.llama.modeling_llama import LlamaRotaryEmbedding

HERE = Path(__file__).resolve().parent
sys.path.append(str(HERE.parents[1] / "bench"))
from networks import Unet  # noqa: E402

LEGACY_OPSET = 17
DYNAMO_OPSET = 20
WEIGHT_BYTES = 1024  # a larger float initialiser is a weight
ALIGNMENT = 4096
SEED = 0
LLAMA_LAYERS = 32
LLAMA_HEADS = 32  # of 128
PAST = 512  # tokens in front of a decoding step of static length


class Bert(BertModel):
    def forward(self, input_ids: Tensor, attention_mask: Tensor) -> tuple[Tensor, Tensor]:
        result = super().forward(input_ids=input_ids, attention_mask=attention_mask)
        return result.last_hidden_state, result.pooler_output


class Gpt2(GPT2LMHeadModel):
    def forward(self, input_ids: Tensor) -> Tensor:
        return super().forward(input_ids=input_ids, use_cache=False).logits


class Llama(LlamaForCausalLM):
    def forward(self, input_ids: Tensor, attention_mask: Tensor) -> Tensor:
        return super().forward(input_ids=input_ids, attention_mask=attention_mask,
                               use_cache=False).logits


class LlamaStep(LlamaForCausalLM):
    """One token behind `past` others, whose keys and values come in and go out with its own."""

    def forward(self, input_ids: Tensor, *past: Tensor) -> tuple[Tensor, ...]:
        cache = DynamicCache.from_legacy_cache(tuple(zip(past[::2], past[1::2])))
        result = super().forward(input_ids=input_ids, past_key_values=cache, use_cache=True)
        present = result.past_key_values.to_legacy_cache()
        return result.logits, *(tensor for layer in present for tensor in layer)


def randomise(model: nn.Module) -> nn.Module:
    """Make all tensors differ, or the exporters merge equal ones (fresh norms, zero biases)."""
    for module in model.modules():
        for name, parameter in module.named_parameters(recurse=False):
            is_scale = name == "weight" and parameter.dim() == 1
            nn.init.normal_(parameter, 1.0 if is_scale else 0.0, 0.02)
        if isinstance(module, nn.BatchNorm2d):
            nn.init.normal_(module.running_mean, 0.0, 0.02)
            nn.init.uniform_(module.running_var, 0.5, 1.5)
    return model


def llama_7b(kind: type[LlamaForCausalLM], dtype: torch.dtype) -> nn.Module:
    config = LlamaConfig(vocab_size=32000, hidden_size=4096, intermediate_size=11008,
                         num_hidden_layers=LLAMA_LAYERS, num_attention_heads=LLAMA_HEADS)
    with torch.device("meta"):
        model = kind(config)
    model.model.rotary_emb = LlamaRotaryEmbedding(config)
    for module in model.modules():
        for name, parameter in module.named_parameters(recurse=False):
            row = (0.02 * torch.randn(parameter.shape[-1]) + (parameter.dim() == 1)).to(dtype)
            setattr(module, name, nn.Parameter(row.expand(parameter.shape), requires_grad=False))
    return model


class Source(NamedTuple):
    build: Callable[[], nn.Module]
    inputs: tuple[str, ...]
    outputs: tuple[str, ...]
    materialised: bool = True


def cache_names(when: str) -> tuple[str, ...]:
    return tuple(f"{when}.{layer}.{kind}" for layer in range(LLAMA_LAYERS)
                 for kind in ("key", "value"))


SOURCES = {
    "bert_base": Source(lambda: randomise(Bert(BertConfig())),
                        ("input_ids", "attention_mask"), ("last_hidden_state", "pooler_output")),
    "gpt2": Source(lambda: randomise(Gpt2(GPT2Config())), ("input_ids",), ("logits",)),
    "gpt2_small": Source(lambda: randomise(Gpt2(GPT2Config(vocab_size=1000, n_positions=256, n_embd=256,
                                                           n_layer=4, n_head=4))),
                         ("input_ids",), ("logits",)),
    "llama_7b": Source(lambda: llama_7b(Llama, torch.float32), ("input_ids", "attention_mask"), ("logits",),
                       False),
    "llama_7b_step": Source(lambda: llama_7b(LlamaStep, torch.float16), ("input_ids", *cache_names("past")),
                            ("logits", *cache_names("present")), False),
    "resnet50": Source(lambda: randomise(torchvision.models.resnet50()), ("image",), ("logits",)),
    "vit_b16": Source(lambda: randomise(torchvision.models.vit_b_16()), ("image",), ("logits",)),
    "efficientnet_b0": Source(lambda: randomise(torchvision.models.efficientnet_b0()),
                              ("image",), ("logits",)),
    "mobilenet_v2": Source(lambda: randomise(torchvision.models.mobilenet_v2()),
                           ("image",), ("logits",)),
    "convnext_tiny": Source(lambda: randomise(torchvision.models.convnext_tiny()),
                            ("image",), ("logits",)),
    "unet": Source(lambda: randomise(Unet()), ("picture",), ("result",)),
}

NAMES = [
    "bert_base.legacy", "bert_base.legacy.dyn", "bert_base.dynamo", "bert_base.dynamo.dyn",
    "gpt2.legacy", "gpt2.legacy.dyn", "gpt2.dynamo", "gpt2.dynamo.dyn",
    "llama_7b.legacy.dyn", "llama_7b.dynamo.dyn",
    "resnet50.legacy", "resnet50.dynamo", "resnet50.dynamo.noopt",
    "vit_b16.legacy", "vit_b16.dynamo",
    "resnet50.dynamo.dyn", "efficientnet_b0.dynamo.dyn", "mobilenet_v2.dynamo.dyn",
    "convnext_tiny.dynamo.dyn", "unet.dynamo",
    "gpt2_small.dynamo.dyn", "llama_7b_step.dynamo", "llama_7b_step.dynamo.dyn",
]


def is_step(source: Source) -> bool:
    return any(name.startswith("past") for name in source.inputs)


def example_inputs(source: Source, dynamic: bool) -> tuple[Tensor, ...]:
    shape = (2, 24) if dynamic else (1, 128)  # torch.export fixes an axis whose example is 1
    if is_step(source):
        batch, past = (2, 24) if dynamic else (1, PAST)
        return (torch.randint(1000, (batch, 1)),
                *(torch.randn(batch, LLAMA_HEADS, past, 128).half() for _ in source.inputs[1:]))
    made = {"image": lambda: torch.randn(shape[0], 3, 224, 224),
            "picture": lambda: torch.randn(shape[0], 3, 512, 512),
            "input_ids": lambda: torch.randint(1000, shape),
            "attention_mask": lambda: torch.ones(shape, dtype=torch.int64)}
    return tuple(made[name]() for name in source.inputs)


def dynamic_axes(source: Source, name: str) -> dict[int, str]:
    if name.startswith("past"):
        return {0: "batch", 2: "past"}
    if is_step(source):
        return {0: "batch"}
    batch_alone = name == "pooler_output" or "image" in source.inputs
    return {0: "batch"} if batch_alone else {0: "batch", 1: "sequence"}


def is_weight(array: np.ndarray) -> bool:
    return array.dtype.kind == "f" and array.nbytes > WEIGHT_BYTES and array.min() < array.max()


def export_legacy(source: Source, model: nn.Module, args: tuple[Tensor, ...],
                  dynamic: bool) -> onnx.ModelProto:
    names = source.inputs + source.outputs
    axes = {name: dynamic_axes(source, name) for name in names} if dynamic else None
    buffer = io.BytesIO()
    torch.onnx.export(model, args, buffer, dynamo=False, opset_version=LEGACY_OPSET,
                      input_names=source.inputs, output_names=source.outputs, dynamic_axes=axes,
                      export_params=source.materialised, do_constant_folding=source.materialised)
    proto = onnx.load_from_string(buffer.getvalue())
    parameters = proto.graph.input[len(source.inputs):]  # there are some if not export_params
    for value in parameters:
        kind = value.type.tensor_type
        proto.graph.initializer.add(name=value.name, data_type=kind.elem_type,
                                    dims=[d.dim_value for d in kind.shape.dim],
                                    data_location=TensorProto.EXTERNAL)
    del proto.graph.input[len(source.inputs):]
    return proto


def export_dynamo(source: Source, model: nn.Module, args: tuple[Tensor, ...],
                  dynamic: bool, optimise: bool) -> onnx.ModelProto:
    axes = tuple(dynamic_axes(source, name) for name in source.inputs) if dynamic else None
    if axes and is_step(source):
        axes = axes[0], axes[1:]
    program = torch.onnx.export(model, args, dynamo=True, opset_version=DYNAMO_OPSET,
                                input_names=source.inputs, output_names=source.outputs,
                                dynamic_shapes=axes, optimize=optimise, verbose=False)
    for value in program.model.graph.initializers.values():
        tensor = value.const_value
        if is_weight(tensor.numpy()):
            value.const_value = ir.ExternalTensor("", 0, tensor.nbytes, tensor.dtype,
                                                  shape=tensor.shape, name=tensor.name)
    return program.model_proto


def strip_metadata(proto: onnx.ModelProto) -> None:
    graph = proto.graph
    for item in (proto, graph, *graph.node, *graph.initializer, *graph.value_info,
                 *graph.input, *graph.output):
        item.ClearField("metadata_props")
        item.ClearField("doc_string")


def strip_weights(proto: onnx.ModelProto, location: str) -> int:
    """Point each weight into the absent file; return that file's size."""
    end = 0
    for tensor in proto.graph.initializer:
        if tensor.data_location != TensorProto.EXTERNAL and not is_weight(to_array(tensor)):
            continue
        offset = -(-end // ALIGNMENT) * ALIGNMENT
        length = math.prod(tensor.dims) * tensor_dtype_to_np_dtype(tensor.data_type).itemsize
        end = offset + length
        for field in ("raw_data", "float_data", "external_data"):
            tensor.ClearField(field)
        tensor.data_location = TensorProto.EXTERNAL
        for key, value in (("location", location), ("offset", offset), ("length", length)):
            tensor.external_data.add(key=key, value=str(value))
    return end


def check(path: Path, location: str, size: int) -> None:
    """Run onnx.checker with shape inference, against a sparse file of zeros."""
    with tempfile.TemporaryDirectory() as folder:
        copy = Path(folder) / path.name
        copy.write_bytes(path.read_bytes())
        with open(copy.with_name(location), "wb") as data:
            data.truncate(size)
        onnx.checker.check_model(str(copy), full_check=True)


def export(name: str) -> None:
    model_name, exporter, *flags = name.split(".")
    source = SOURCES[model_name]
    dynamic = "dyn" in flags
    torch.manual_seed(SEED)
    model = source.build().eval()
    args = example_inputs(source, dynamic)
    if exporter == "legacy":
        proto = export_legacy(source, model, args, dynamic)
    else:
        proto = export_dynamo(source, model, args, dynamic, "noopt" not in flags)

    strip_metadata(proto)
    size = strip_weights(proto, f"{name}.data")
    path = HERE / f"{name}.onnx"
    path.write_bytes(proto.SerializeToString(deterministic=True))
    check(path, f"{name}.data", size)
    print(f"{path.name:28} {path.stat().st_size:8} bytes, {size / 1e6:9.1f} MB of weights,"
          f" {len(proto.graph.node):5} nodes, opset {proto.opset_import[0].version}", flush=True)


if __name__ == "__main__":
    warnings.filterwarnings("ignore")
    for wanted in sys.argv[1:] or NAMES:
        export(wanted)
