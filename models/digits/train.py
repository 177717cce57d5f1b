"""Train the digits classifier and export it to ONNX.

    python -m venv /tmp/venv && /tmp/venv/bin/pip install -r ../bench/requirements.txt
    /tmp/venv/bin/python train.py

Writes digits.onnx, labels.txt, sample_<digit>.npy, held_out.npy, calibration.npy
and test_data_set_0/ beside this file. The data ship with scikit-learn, so nothing is downloaded. Each
sample is the first held-out image of its digit that the model gets right.
"""
import sys
from pathlib import Path

import numpy as np
import onnxruntime as ort
import torch
from sklearn.datasets import load_digits
from sklearn.model_selection import train_test_split
from torch import nn

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent))
from onnx_files import write_model, write_tensor  # noqa: E402

SEED = 7
EPOCHS = 40
OPSET = 18
SAMPLE_DIGITS = (2, 5, 7)
CALIBRATION = 64  # images that are trained on


class DigitNet(nn.Module):
    """Returns logits; Probabilities below adds the softmax for export."""

    def __init__(self) -> None:
        super().__init__()
        self.features = nn.Sequential(
            nn.Conv2d(1, 16, 3, padding=1, bias=False), nn.BatchNorm2d(16), nn.ReLU(),
            nn.Conv2d(16, 32, 3, padding=1, bias=False), nn.BatchNorm2d(32), nn.ReLU(),
            nn.MaxPool2d(2),
            nn.Conv2d(32, 64, 3, padding=1, bias=False), nn.BatchNorm2d(64), nn.ReLU(),
            nn.AvgPool2d(2),
        )
        self.head = nn.Sequential(nn.Flatten(), nn.Dropout(0.3), nn.Linear(64 * 2 * 2, 10))

    def forward(self, image: torch.Tensor) -> torch.Tensor:
        return self.head(self.features(image))


class Probabilities(nn.Module):
    def __init__(self, net: nn.Module) -> None:
        super().__init__()
        self.net = net

    def forward(self, image: torch.Tensor) -> torch.Tensor:
        return self.net(image).softmax(dim=1)


def load() -> tuple[torch.Tensor, torch.Tensor, torch.Tensor, torch.Tensor]:
    """Pixels 0..16 become 0..1; 20 % of the images are held out, stratified."""
    digits = load_digits()
    images = (digits.images / 16.0).astype(np.float32)[:, None]
    labels = digits.target.astype(np.int64)
    parts = train_test_split(images, labels, test_size=0.2, random_state=SEED, stratify=labels)
    x_train, x_test, y_train, y_test = map(torch.from_numpy, parts)
    return x_train, y_train, x_test, y_test


def train(net: nn.Module, x: torch.Tensor, y: torch.Tensor) -> None:
    optimiser = torch.optim.AdamW(net.parameters(), lr=3e-3, weight_decay=1e-2)
    batches = -(-len(x) // 64)
    schedule = torch.optim.lr_scheduler.OneCycleLR(optimiser, 1e-2, total_steps=EPOCHS * batches)
    net.train()
    for _ in range(EPOCHS):
        for index in torch.randperm(len(x)).split(64):
            optimiser.zero_grad()
            nn.functional.cross_entropy(net(x[index]), y[index]).backward()
            optimiser.step()
            schedule.step()
    net.eval()


def export(net: nn.Module, path: Path) -> None:
    program = torch.onnx.export(
        Probabilities(net).eval(), (torch.zeros(2, 1, 8, 8),), dynamo=True, opset_version=OPSET,
        input_names=["image"], output_names=["probabilities"],
        dynamic_shapes={"image": {0: torch.export.Dim("batch")}}, verbose=False,
    )
    write_model(path, program.model_proto)


def write_images(path: Path, images: torch.Tensor, labels: torch.Tensor) -> None:
    """A row of bytes each: 64 pixels of 0..16, and the digit."""
    pixels = (images.numpy() * 16).reshape(len(images), -1)
    np.save(path, np.column_stack([pixels, labels.numpy()]).astype(np.uint8))


def main() -> None:
    torch.manual_seed(SEED)
    torch.set_num_threads(1)
    x_train, y_train, x_test, y_test = load()
    net = DigitNet()
    train(net, x_train, y_train)

    model_path = HERE / "digits.onnx"
    export(net, model_path)
    session = ort.InferenceSession(str(model_path), providers=["CPUExecutionProvider"])
    images = x_test.numpy()
    (probabilities,) = session.run(None, {"image": images})
    truth = y_test.numpy()
    correct = probabilities.argmax(1) == truth
    with torch.no_grad():
        reference = net(x_test).softmax(1).numpy()

    print(f"parameters          {sum(p.numel() for p in net.parameters())}")
    print(f"train / test images {len(x_train)} / {len(x_test)}")
    print(f"test accuracy       {correct.mean():.4f} ({correct.sum()}/{len(truth)}), onnxruntime")
    print(f"torch - onnxruntime {np.abs(probabilities - reference).max():.2e} (max abs)")
    print(f"digits.onnx         {model_path.stat().st_size} bytes")

    write_images(HERE / "held_out.npy", x_test, y_test)
    write_images(HERE / "calibration.npy", x_train[:CALIBRATION], y_train[:CALIBRATION])
    (HERE / "labels.txt").write_text("".join(f"{d}\n" for d in range(10)))
    for digit in SAMPLE_DIGITS:
        first = int(np.flatnonzero((truth == digit) & correct)[0])
        np.save(HERE / f"sample_{digit}.npy", images[first:first + 1])
        print(f"sample_{digit}.npy        predicted {probabilities[first].argmax()}"
              f" (p = {probabilities[first].max():.4f})")

    batch = images[:4]
    (expected,) = session.run(None, {"image": batch})
    write_tensor(HERE / "test_data_set_0" / "input_0.pb", "image", batch)
    write_tensor(HERE / "test_data_set_0" / "output_0.pb", "probabilities", expected)


if __name__ == "__main__":
    main()
