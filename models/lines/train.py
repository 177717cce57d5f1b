"""Train a transformer that tells what language a line of text is in, and export it to ONNX.

    python -m venv /tmp/venv && /tmp/venv/bin/pip install -r ../bench/requirements.txt
    /tmp/venv/bin/python train.py

Writes lines.onnx, labels.txt, held_out.npy, calibration.npy and test_data_set_0/ beside this file.
The data are the lines of this repository's own files, so nothing is downloaded, and another state of
the repository gives another model.
"""
import random
import subprocess
import sys
from pathlib import Path

import numpy as np
import onnxruntime as ort
import torch
from torch import nn

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent))
from onnx_files import write_model, write_tensor  # noqa: E402

SEED = 7
EPOCHS = 24
OPSET = 18
LABELS = {"c": "C", "md": "Markdown", "py": "Python", "sh": "shell", "zir": "graph"}
LENGTH = 32  # characters that are looked at
SHORTEST = 12
TRAINED, HELD_OUT, CALIBRATION = 1500, 100, 16  # lines of each language; the last are trained on
VOCABULARY, WIDTH, HEADS, LAYERS = 128, 64, 4, 2


class Block(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.norm1, self.norm2 = nn.LayerNorm(WIDTH), nn.LayerNorm(WIDTH)
        self.qkv, self.out = nn.Linear(WIDTH, 3 * WIDTH), nn.Linear(WIDTH, WIDTH)
        self.up, self.down = nn.Linear(WIDTH, WIDTH), nn.Linear(WIDTH, WIDTH)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        q, k, v = (part.unflatten(2, (HEADS, WIDTH // HEADS)).transpose(1, 2)
                   for part in self.qkv(self.norm1(x)).chunk(3, dim=2))
        mixed = nn.functional.scaled_dot_product_attention(q, k, v)
        x = x + self.out(mixed.transpose(1, 2).flatten(2))
        return x + self.down(nn.functional.gelu(self.up(self.norm2(x))))


class LineNet(nn.Module):
    """Returns logits; Probabilities below adds the softmax for export."""

    def __init__(self) -> None:
        super().__init__()
        self.characters = nn.Embedding(VOCABULARY, WIDTH)
        self.places = nn.Parameter(torch.randn(LENGTH, WIDTH) * 0.1)
        self.blocks = nn.Sequential(*(Block() for _ in range(LAYERS)))
        self.norm, self.drop = nn.LayerNorm(WIDTH), nn.Dropout(0.2)
        self.head = nn.Linear(WIDTH, len(LABELS))

    def forward(self, text: torch.Tensor) -> torch.Tensor:
        x = self.blocks(self.characters(text) + self.places)
        return self.head(self.drop(self.norm(x).mean(dim=1)))


class Probabilities(nn.Module):
    def __init__(self, net: nn.Module) -> None:
        super().__init__()
        self.net = net

    def forward(self, text: torch.Tensor) -> torch.Tensor:
        return self.net(text).softmax(dim=1)


def encode(line: str, label: int) -> list[int]:
    """ASCII without indentation, 0 behind the end; the label last."""
    codes = [ord(c) if ord(c) < VOCABULARY else ord("?") for c in line.strip()[:LENGTH]]
    return codes + [0] * (LENGTH - len(codes)) + [label]


def load() -> tuple[np.ndarray, np.ndarray]:
    """Lines to train on and lines held out, as many of each language; no line is in both."""
    chosen = random.Random(SEED)
    parts: tuple[list, list] = [], []
    for label, suffix in enumerate(LABELS):
        files = subprocess.run(["git", "ls-files", f"*.{suffix}"], cwd=HERE.parents[1], check=True,
                               capture_output=True, text=True).stdout.split()
        text = "\n".join((HERE.parents[1] / f).read_text(errors="replace") for f in sorted(files))
        lines = (l for l in text.split("\n") if len(l.strip()) >= SHORTEST)
        rows = sorted({tuple(encode(l, label)) for l in lines})
        rows = chosen.sample(rows, TRAINED + HELD_OUT)
        parts[0].extend(rows[:TRAINED])
        parts[1].extend(rows[TRAINED:])
    return np.array(parts[0], np.uint8), np.array(parts[1], np.uint8)


def train(net: nn.Module, data: torch.Tensor) -> None:
    optimiser = torch.optim.AdamW(net.parameters(), lr=2e-3, weight_decay=1e-2)
    schedule = torch.optim.lr_scheduler.OneCycleLR(optimiser, 4e-3,
                                                   total_steps=EPOCHS * -(-len(data) // 64))
    net.train()
    for _ in range(EPOCHS):
        for index in torch.randperm(len(data)).split(64):
            optimiser.zero_grad()
            nn.functional.cross_entropy(net(data[index, :-1]), data[index, -1]).backward()
            optimiser.step()
            schedule.step()
    net.eval()


def export(net: nn.Module, path: Path) -> None:
    program = torch.onnx.export(
        Probabilities(net).eval(), (torch.zeros(2, LENGTH, dtype=torch.int64),), dynamo=True,
        opset_version=OPSET, input_names=["text"], output_names=["probabilities"],
        dynamic_shapes={"text": {0: torch.export.Dim("batch")}}, verbose=False,
    )
    write_model(path, program.model_proto)


def main() -> None:
    torch.manual_seed(SEED)
    torch.set_num_threads(1)
    trained, held_out = load()
    net = LineNet()
    train(net, torch.from_numpy(trained).long())

    model_path = HERE / "lines.onnx"
    export(net, model_path)
    session = ort.InferenceSession(str(model_path), providers=["CPUExecutionProvider"])
    (probabilities,) = session.run(None, {"text": held_out[:, :-1].astype(np.int64)})
    correct = probabilities.argmax(1) == held_out[:, -1]
    with torch.no_grad():
        reference = net(torch.from_numpy(held_out).long()[:, :-1]).softmax(1).numpy()

    print(f"parameters          {sum(p.numel() for p in net.parameters())}")
    print(f"train / test lines  {len(trained)} / {len(held_out)}")
    print(f"test accuracy       {correct.mean():.4f} ({correct.sum()}/{len(held_out)}), onnxruntime")
    print(f"torch - onnxruntime {np.abs(probabilities - reference).max():.2e} (max abs)")
    print(f"lines.onnx          {model_path.stat().st_size} bytes")

    (HERE / "labels.txt").write_text("".join(f"{name}\n" for name in LABELS.values()))
    np.save(HERE / "held_out.npy", held_out)
    np.save(HERE / "calibration.npy", trained.reshape(len(LABELS), TRAINED, -1)[:, :CALIBRATION]
            .reshape(-1, LENGTH + 1))

    batch = held_out[::HELD_OUT + 1, :-1].astype(np.int64)
    (expected,) = session.run(None, {"text": batch})
    write_tensor(HERE / "test_data_set_0" / "input_0.pb", "text", batch)
    write_tensor(HERE / "test_data_set_0" / "output_0.pb", "probabilities", expected)


if __name__ == "__main__":
    main()
