#!/usr/bin/env python3
"""Times PyTorch's best and zc in turn on one GPU: models of the same shapes, f16, random weights and inputs.

usage: compare.py --session GPU_SESSION [--runs N] NAME=PLAN ...

PyTorch: eager and torch.compile, each replayed as a CUDA graph; the faster counts. zc: `gpu_session PLAN RUNS`. The two run
in turn, three rounds, and the medians are compared. The models are written out here, without masks, because the weights of
the exports are not needed for times; results are not compared here (zc conform and zc run --expect do that).
Cases: those of CASES below; convolution networks are in networks.py.
"""
import argparse
import json
import statistics
import subprocess
import sys
import time

import torch
import torch.nn.functional as F
from torch import nn

from networks import ConvNextTiny, Resnet50, Unet, efficientnet_b0, mobilenet_v2


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


def ids(batch, length):
    return torch.randint(0, 30000, (batch, length), device="cuda")


def image(batch, side=224):
    return torch.randn(batch, 3, side, side, device="cuda", dtype=torch.half)


CASES = {
    "bert_b1_s128": (Bert, lambda: ids(1, 128)),
    "bert_b1_s512": (Bert, lambda: ids(1, 512)),
    "bert_b32_s128": (Bert, lambda: ids(32, 128)),
    "bert_b32_s512": (Bert, lambda: ids(32, 512)),
    "gpt2_s128": (Gpt2, lambda: ids(1, 128)),
    "vit_b1": (Vit, lambda: image(1)),
    "resnet_b1": (Resnet50, lambda: image(1)),
    "resnet_b32": (Resnet50, lambda: image(32)),
    "efficientnet_b1": (efficientnet_b0, lambda: image(1)),
    "efficientnet_b32": (efficientnet_b0, lambda: image(32)),
    "mobilenet_b1": (mobilenet_v2, lambda: image(1)),
    "convnext_b1": (ConvNextTiny, lambda: image(1)),
    "convnext_b32": (ConvNextTiny, lambda: image(32)),
    "unet_b1": (Unet, lambda: image(1, 512)),
}


def graph_of(model, x):
    side = torch.cuda.Stream()
    with torch.no_grad(), torch.cuda.stream(side):
        for _ in range(3):
            model(x)
    torch.cuda.synchronize()
    graph = torch.cuda.CUDAGraph()
    with torch.no_grad(), torch.cuda.graph(graph):
        model(x)
    return graph


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


def pytorch_graphs(name):
    make, inputs = CASES[name]
    model, x = make().cuda().half().eval(), inputs()
    if x.dim() == 4:
        model, x = model.to(memory_format=torch.channels_last), x.to(memory_format=torch.channels_last)
    graphs = {"eager": graph_of(model, x)}
    torch._dynamo.reset()
    graphs["compile"] = graph_of(torch.compile(model), x)
    return graphs


def time_zc(session, plan, runs):
    out = subprocess.run([session, plan, str(runs)], capture_output=True, text=True, check=True).stdout
    return next(json.loads(line)["wall_us"] for line in out.splitlines() if "wall_us" in line)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--session", required=True, help="the program gpu_session")
    parser.add_argument("--runs", type=int, default=50)
    parser.add_argument("plans", nargs="+", metavar="NAME=PLAN", help="of " + ", ".join(CASES))
    args = parser.parse_args()
    print(f"{torch.cuda.get_device_name()}, PyTorch {torch.__version__}; us, medians of three rounds in turn")
    print(f"{'case':16} {'eager':>9} {'compile':>9} {'zc':>9}  PyTorch's best / zc")
    for item in args.plans:
        name, plan = item.split("=", 1)
        begin = time.time()
        graphs = pytorch_graphs(name)
        times = {key: [] for key in (*graphs, "zc")}
        for _ in range(3):
            for key, graph in graphs.items():
                times[key].append(time_graph(graph, args.runs))
            times["zc"].append(time_zc(args.session, plan, args.runs))
        us = {key: statistics.median(v) for key, v in times.items()}
        best = min(us["eager"], us["compile"])
        print(f"{name:16} {us['eager']:9.1f} {us['compile']:9.1f} {us['zc']:9.1f}  {best / us['zc']:.2f}"
              f"   ({time.time() - begin:.0f} s)", flush=True)
        del graphs


if __name__ == "__main__":
    sys.exit(main())
