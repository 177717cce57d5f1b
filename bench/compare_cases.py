#!/usr/bin/env python3
"""Times PyTorch's best and zc in turn on one GPU: the same weights, shapes and inputs, f16; and compares both with f32.

usage: compare_cases.py --zc ZC --session GPU_SESSION [--modes eager,default,max-autotune] [--runs N] [--prepare N] [CASE ...]

A case is one of CASES below (convolution networks are in networks.py; llama_step is a step of decoding behind 512 tokens whose
keys and values come in and go out in both engines, llama_step_l4 with 4 of the 32 layers): a model with random weights, whose norms of batches have
seen the input, written to an ONNX file, which zc compiles for the GPU at hand (`zc compile --precision f16`, and --zc-options).
PyTorch: eager and torch.compile in the modes asked for, each replayed as a CUDA graph; the fastest counts. zc: `gpu_session
PLAN RUNS`. All run in turn, three rounds, and medians are compared. Errors are those of both engines' outputs in f16 against
PyTorch's in f32 without tf32: the greatest difference, over the greatest value of the output; the worst output counts.

--save DIR writes DIR/CASE.ENGINE.times, the times of each round, which `zc report DIR/CASE.*.times -o page.html` draws side by side.
--prepare N writes models, plans and what torch.compile caches by N processes at once beforehand.
"""
import argparse
import hashlib
import json
import pathlib
import statistics
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import torch
import torch.nn.functional as F
from torch import nn

from errors import relative
from networks import ConvNextTiny, Resnet50, Unet, efficientnet_b0, mobilenet_v2
from saved_times import write_times


class Layer(nn.Module):
    """A transformer's layer; pre: norms in front of the two halves, not behind them."""

    def __init__(self, width, heads, pre, causal, gelu):
        super().__init__()
        self.heads, self.pre, self.causal, self.gelu = heads, pre, causal, gelu
        self.qkv, self.out = nn.Linear(width, 3 * width), nn.Linear(width, width)
        self.up, self.down = nn.Linear(width, 4 * width), nn.Linear(4 * width, width)
        self.norm1, self.norm2 = nn.LayerNorm(width), nn.LayerNorm(width)

    def attend(self, x):
        b, s, w = x.shape
        q, k, v = self.qkv(x).view(b, s, 3, self.heads, -1).permute(2, 0, 3, 1, 4)
        y = F.scaled_dot_product_attention(q, k, v, is_causal=self.causal)
        return self.out(y.transpose(1, 2).reshape(b, s, w))

    def feed(self, x):
        return self.down(F.gelu(self.up(x), approximate=self.gelu))

    def forward(self, x):
        if self.pre:
            x = x + self.attend(self.norm1(x))
            return x + self.feed(self.norm2(x))
        x = self.norm1(x + self.attend(x))
        return self.norm2(x + self.feed(x))


class Bert(nn.Module):
    def __init__(self):
        super().__init__()
        self.words, self.places, self.types = nn.Embedding(30522, 768), nn.Embedding(512, 768), nn.Embedding(2, 768)
        self.norm = nn.LayerNorm(768)
        self.layers = nn.Sequential(*[Layer(768, 12, False, False, "none") for _ in range(12)])
        self.pool = nn.Linear(768, 768)

    def forward(self, ids):
        at = torch.arange(ids.shape[1], device=ids.device)
        x = self.norm(self.words(ids) + self.places(at) + self.types(torch.zeros_like(ids)))
        x = self.layers(x)
        return x, torch.tanh(self.pool(x[:, 0]))


class Gpt2(nn.Module):
    def __init__(self):
        super().__init__()
        self.words, self.places = nn.Embedding(50257, 768), nn.Embedding(1024, 768)
        self.layers = nn.Sequential(*[Layer(768, 12, True, True, "tanh") for _ in range(12)])
        self.norm = nn.LayerNorm(768)

    def forward(self, ids):
        at = torch.arange(ids.shape[1], device=ids.device)
        x = self.norm(self.layers(self.words(ids) + self.places(at)))
        return F.linear(x, self.words.weight)


class Vit(nn.Module):
    def __init__(self):
        super().__init__()
        self.patches = nn.Conv2d(3, 768, 16, 16)
        self.token, self.places = nn.Parameter(torch.randn(1, 1, 768)), nn.Parameter(torch.randn(1, 197, 768))
        self.layers = nn.Sequential(*[Layer(768, 12, True, False, "none") for _ in range(12)])
        self.norm, self.head = nn.LayerNorm(768), nn.Linear(768, 1000)

    def forward(self, image):
        x = self.patches(image).flatten(2).transpose(1, 2)
        x = torch.cat([self.token.expand(x.shape[0], -1, -1), x], 1) + self.places
        return self.head(self.norm(self.layers(x))[:, 0])


class LlamaLayer(nn.Module):
    def __init__(self):
        super().__init__()
        self.qkv, self.out = nn.Linear(4096, 12288, bias=False), nn.Linear(4096, 4096, bias=False)
        self.gate, self.up = nn.Linear(4096, 11008, bias=False), nn.Linear(4096, 11008, bias=False)
        self.down = nn.Linear(11008, 4096, bias=False)
        self.norm1, self.norm2 = nn.RMSNorm(4096, eps=1e-6), nn.RMSNorm(4096, eps=1e-6)

    def attend(self, x, cos, sin, past):
        b, s, w = x.shape
        q, k, v = (y.view(b, s, 32, 128).transpose(1, 2) for y in self.qkv(x).chunk(3, -1))
        q, k = (y * cos + torch.cat([-y[..., 64:], y[..., :64]], -1) * sin for y in (q, k))
        if past:
            k, v = (torch.cat([old.to(x.dtype), new], 2) for old, new in zip(past, (k, v)))
        y = F.scaled_dot_product_attention(q, k, v, is_causal=not past)
        return self.out(y.transpose(1, 2).reshape(b, s, w)), (k.half(), v.half())

    def forward(self, x, cos, sin, past):
        y, present = self.attend(self.norm1(x), cos, sin, past)
        x = x + y
        h = self.norm2(x)
        return x + self.down(F.silu(self.gate(h)) * self.up(h)), present


class Llama(nn.Module):
    """Of 7B shape. past: keys and values of each layer in f16; without any the whole text, else one token behind it."""

    def __init__(self, layers):
        super().__init__()
        self.words, self.head = nn.Embedding(32000, 4096), nn.Linear(4096, 32000, bias=False)
        self.layers = nn.ModuleList(LlamaLayer() for _ in range(layers))
        self.norm = nn.RMSNorm(4096, eps=1e-6)

    def forward(self, ids, *past):
        first = past[0].shape[2] if past else 0
        at = torch.arange(first, first + ids.shape[1], device=ids.device)
        rates = 10000 ** (torch.arange(64, device=ids.device) / -64)
        x = self.words(ids)
        angles = (at[:, None] * rates).repeat(1, 2)
        cos, sin = angles.cos().to(x.dtype), angles.sin().to(x.dtype)
        present = []
        for i, layer in enumerate(self.layers):
            x, kept = layer(x, cos, sin, past[2 * i : 2 * i + 2])
            present.extend(kept)
        logits = self.head(self.norm(x))
        return (logits, *present) if past else logits


def ids(batch, length):
    return (torch.randint(0, 30000, (batch, length), device="cuda"),)


def image(batch, side=224):
    return (torch.randn(batch, 3, side, side, device="cuda"),)


def step(layers):
    return *ids(1, 1), *(torch.randn(1, 32, 512, 128, device="cuda").half() for _ in range(2 * layers))


CASES = {
    "bert_b1_s128": (Bert, lambda: ids(1, 128)),
    "bert_b1_s512": (Bert, lambda: ids(1, 512)),
    "bert_b32_s128": (Bert, lambda: ids(32, 128)),
    "bert_b32_s512": (Bert, lambda: ids(32, 512)),
    "gpt2_s128": (Gpt2, lambda: ids(1, 128)),
    "gpt2_s1024": (Gpt2, lambda: ids(1, 1024)),
    "llama_step": (lambda: Llama(32), lambda: step(32)),
    "llama_step_l4": (lambda: Llama(4), lambda: step(4)),
    "llama_s512": (lambda: Llama(32), lambda: ids(1, 512)),
    "llama_s512_l4": (lambda: Llama(4), lambda: ids(1, 512)),
    "vit_b1": (Vit, lambda: image(1)),
    "vit_b32": (Vit, lambda: image(32)),
    "resnet_b1": (Resnet50, lambda: image(1)),
    "resnet_b32": (Resnet50, lambda: image(32)),
    "efficientnet_b1": (efficientnet_b0, lambda: image(1)),
    "efficientnet_b32": (efficientnet_b0, lambda: image(32)),
    "mobilenet_b1": (mobilenet_v2, lambda: image(1)),
    "convnext_b1": (ConvNextTiny, lambda: image(1)),
    "convnext_b32": (ConvNextTiny, lambda: image(32)),
    "unet_b1": (Unet, lambda: image(1, 512)),
}


def calibrate(model, inputs):
    """Norms over batches take the statistics of the inputs, so that activations neither vanish nor grow."""
    for part in model.modules():
        if isinstance(part, nn.BatchNorm2d):
            part.momentum = 1.0
    model.train()
    with torch.no_grad():
        model(*inputs)
    return model.eval()


class Case:
    """A case's model and inputs, and the files that hold what zc reads of them."""

    def __init__(self, name, work):
        self.name, self.folder = name, work / name
        self.inputs = self.folder / "inputs"
        self.weights, self.onnx, self.plan = (self.folder / f for f in ("weights.pt", "model.onnx", "model.plan"))

    def model(self):
        """In f32, on the GPU; and its inputs, in the types that the exported model takes."""
        make, make_inputs = CASES[self.name]
        torch.manual_seed(1)
        with torch.device("cuda"):
            model = make()
        inputs = make_inputs()
        if self.weights.exists():
            model.load_state_dict(torch.load(self.weights))
            return model.eval(), inputs
        return calibrate(model, inputs), inputs

    def prepare(self, zc, options):
        if self.plan.exists():
            return
        self.inputs.mkdir(parents=True)
        model, inputs = self.model()
        torch.save(model.state_dict(), self.weights)
        for i, x in enumerate(inputs):
            np.save(self.inputs / f"input_{i}.npy", x.cpu().numpy())
        torch.onnx.export(model.cpu(), tuple(x.cpu() for x in inputs), self.onnx, dynamo=True, verbose=False)
        major, minor = torch.cuda.get_device_capability()
        subprocess.run([zc, "compile", self.onnx, "-o", self.plan, "--precision", "f16", "--target", f"sm_{major}{minor}",
                        "--quiet", *options], check=True)

    def outputs_of_zc(self, zc):
        folder = self.folder / "outputs"
        folder.mkdir(exist_ok=True)
        subprocess.run([zc, "run", self.plan, "--device", "cuda", "--inputs", self.inputs, "--output-dir", folder], check=True,
                       stdout=subprocess.DEVNULL)
        return [np.load(folder / f"output_{i}.npy") for i in range(len(list(folder.glob("output_*.npy"))))]


def tensors(result):
    return [t.float().cpu().numpy() for t in (result if isinstance(result, tuple) else (result,))]


def error(outputs, reference):
    if len(outputs) != len(reference):
        raise ValueError(f"{len(outputs)} outputs where the reference has {len(reference)}")
    return max(relative(a, b) for a, b in zip(outputs, reference))


def graph_of(model, inputs):
    """A captured graph, and where its replays leave the result."""
    side = torch.cuda.Stream()
    with torch.no_grad(), torch.cuda.stream(side):
        for _ in range(3):
            model(*inputs)
    torch.cuda.synchronize()
    graph = torch.cuda.CUDAGraph()
    with torch.no_grad(), torch.cuda.graph(graph):
        result = model(*inputs)
    return graph, result


def in_mode(model, mode):
    if mode == "eager":
        return model
    torch._dynamo.reset()
    return torch.compile(model, mode=None if mode == "default" else mode + "-no-cudagraphs")


def half(model, inputs):
    model = model.half()
    if inputs[0].dim() == 4:
        model = model.to(memory_format=torch.channels_last)
        inputs = tuple(x.half().to(memory_format=torch.channels_last) for x in inputs)
    return model, inputs


def time_graph(graph, runs):
    """us of a replay, when replays follow each other."""
    for _ in range(3):
        graph.replay()
    begin, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
    begin.record()
    for _ in range(runs):
        graph.replay()
    end.record()
    torch.cuda.synchronize()
    return begin.elapsed_time(end) * 1000 / runs


def time_zc(session, plan, runs):
    out = subprocess.run([session, plan, str(runs)], capture_output=True, text=True, check=True).stdout
    return next(json.loads(line)["wall_us"] for line in out.splitlines() if "wall_us" in line)


def save(case, times, args):
    args.save.mkdir(parents=True, exist_ok=True)
    model = hashlib.sha256(case.onnx.read_bytes()).hexdigest()
    for key, us in times.items():
        engine = "zc" if key == "zc" else f"PyTorch {torch.__version__}, {key}"
        write_times(args.save / f"{case.name}.{key}.times", model, torch.cuda.get_device_name(), engine, [t / 1000 for t in us])


def compare(case, modes, args):
    """us of each mode and of zc; PyTorch's worst error of the modes, and zc's."""
    case.prepare(args.zc, args.zc_options)
    model, inputs = case.model()
    with torch.no_grad():
        reference = tensors(model(*inputs))
    model, inputs = half(model, inputs)
    graphs = {mode: graph_of(in_mode(model, mode), inputs) for mode in modes}
    times = {key: [] for key in (*modes, "zc")}
    for _ in range(3):
        for mode, (graph, _) in graphs.items():
            times[mode].append(time_graph(graph, args.runs))
        times["zc"].append(time_zc(args.session, case.plan, args.runs))
    us = {key: statistics.median(v) for key, v in times.items()}
    if args.save:
        save(case, times, args)
    torch_error = max(error(tensors(result), reference) for _, result in graphs.values())
    return us, torch_error, error(case.outputs_of_zc(args.zc), reference)


def warm(case, modes, args):
    """What compare() makes and keeps in files, but for max-autotune, whose measurements want the GPU alone."""
    case.prepare(args.zc, args.zc_options)
    model, inputs = half(*case.model())
    with torch.no_grad():
        for mode in modes:
            if mode != "max-autotune":
                in_mode(model, mode)(*inputs)


def warm_all(args):
    command = [sys.executable, __file__, "--zc", args.zc, "--session", args.session, "--work", args.work, "--modes", args.modes,
               "--only-prepare", *(f"--zc-options={option}" for option in args.zc_options)]
    with ThreadPoolExecutor(args.prepare) as pool:
        list(pool.map(lambda name: subprocess.run([*command, name], check=True, stdout=sys.stderr), args.cases))


def arguments():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--zc", required=True, help="the program zc")
    parser.add_argument("--session", required=True, help="the program gpu_session")
    parser.add_argument("--zc-options", action="append", default=[], help="another option of zc compile (repeatable)")
    parser.add_argument("--work", type=pathlib.Path, default="compare.work", help="a folder for models and plans; what is there is used")
    parser.add_argument("--modes", default="eager,default")
    parser.add_argument("--runs", type=int, default=50)
    parser.add_argument("--save", type=pathlib.Path, metavar="DIR", help="a folder for the times, as zc bench --save has them")
    parser.add_argument("--prepare", type=int, default=0, metavar="N")
    parser.add_argument("--only-prepare", action="store_true", help=argparse.SUPPRESS)
    parser.add_argument("cases", nargs="*", metavar="CASE", help="of " + ", ".join(CASES), default=list(CASES))
    return parser.parse_args()


def main():
    args = arguments()
    modes = args.modes.split(",")
    torch.backends.cudnn.allow_tf32 = False
    if args.only_prepare:
        for name in args.cases:
            warm(Case(name, args.work), modes, args)
        return
    if args.prepare:
        warm_all(args)
    print(f"{torch.cuda.get_device_name()}, PyTorch {torch.__version__}; us, medians of three rounds in turn")
    print("case".ljust(16), *(name.rjust(12) for name in (*modes, "zc", "best / zc", "error", "zc's error")))
    for name in args.cases:
        begin = time.time()
        us, torch_error, zc_error = compare(Case(name, args.work), modes, args)
        best = min(us[mode] for mode in modes)
        print(name.ljust(16), *(f"{us[key]:12.1f}" for key in (*modes, "zc")), f"{best / us['zc']:12.2f}",
              f"{torch_error:12.1e} {zc_error:12.1e}   ({time.time() - begin:.0f} s)", flush=True)
        torch.cuda.empty_cache()


if __name__ == "__main__":
    sys.exit(main())
