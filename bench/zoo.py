"""Makes the models that compare.py times: a folder each, with model.onnx and test_data_set_0/input_<k>.pb.

usage: python3 bench/zoo.py FOLDER [--wheels DIR] [--light DIR] [NAME...]
Networks of torchvision, timm and transformers are built from their configurations with random weights; nothing is
downloaded. --wheels: a folder of wheels (`pip download --no-deps -d DIR magika rapidocr rapidocr_onnxruntime ddddocr
silero-vad basic-pitch`), whose models are taken out; --light: the folder `light` of the ONNX package's backend tests.
NAME: only these models. Needs torch, torchvision, timm, transformers, onnx and onnxruntime.
"""

import argparse
import pathlib
import tempfile
import traceback
import warnings
import zipfile
from collections.abc import Callable

import numpy as np
import onnx
import onnxruntime
import timm
import torch
import torchvision
import transformers
from onnx import numpy_helper
from onnxruntime import quantization
from torch import nn

OPSET = 17
MAKERS: dict[str, Callable[[pathlib.Path], None]] = {}
NUMPY = {"tensor(float)": np.float32, "tensor(float16)": np.float16, "tensor(double)": np.float64,
         "tensor(int64)": np.int64, "tensor(int32)": np.int32, "tensor(bool)": np.bool_}


def write_inputs(folder: pathlib.Path, arrays: list[np.ndarray]) -> None:
    (folder / "test_data_set_0").mkdir(exist_ok=True)
    for i, array in enumerate(arrays):
        proto = numpy_helper.from_array(array)
        (folder / "test_data_set_0" / f"input_{i}.pb").write_bytes(proto.SerializeToString())


def randomise(module: nn.Module) -> nn.Module:
    """Statistics and scales as after training, so that nothing can be left out and activations stay finite."""
    torch.manual_seed(0)
    for m in module.modules():
        if isinstance(m, nn.modules.batchnorm._BatchNorm):
            nn.init.normal_(m.running_mean, 0, 0.05)
            nn.init.uniform_(m.running_var, 0.5, 1.5)
            nn.init.uniform_(m.weight, 0.5, 1.5)
            nn.init.normal_(m.bias, 0, 0.05)
    return module.eval()


def export(folder: pathlib.Path, module: nn.Module, *inputs: torch.Tensor) -> None:
    with torch.no_grad():
        torch.onnx.export(randomise(module), inputs, str(folder / "model.onnx"), dynamo=False, opset_version=OPSET)
    model = onnx.load(str(folder / "model.onnx"), load_external_data=False)
    if len(model.graph.input) != len(inputs):
        raise ValueError("an input is not used")
    write_inputs(folder, [t.numpy() for t in inputs])


def image(size: int = 224, height: int = 0) -> torch.Tensor:
    return torch.randn(1, 3, height or size, size)


def tokens(length: int, most: int = 1000) -> torch.Tensor:
    return torch.randint(0, most, (1, length))


class Only(nn.Module):
    """One result of a network, as a tensor."""

    def __init__(self, module: nn.Module, name: str | None = None):
        super().__init__()
        self.module, self.name = module, name

    def forward(self, *args: torch.Tensor) -> torch.Tensor:
        result = self.module(*args)
        return result[self.name] if self.name else result[0]


# ---- torchvision and timm ----

CLASSIFIERS = {
    "torchvision": ["resnet18", "resnet50", "resnext50_32x4d", "mobilenet_v2", "mobilenet_v3_large",
                    "mobilenet_v3_small", "efficientnet_b0", "efficientnet_v2_s", "convnext_tiny", "regnet_y_400mf",
                    "regnet_x_800mf", "shufflenet_v2_x1_0", "squeezenet1_1", "densenet121", "googlenet", "mnasnet1_0",
                    "vgg11_bn", "swin_t", "vit_b_16", "inception_v3"],
    "timm": ["ghostnet_100", "deit_tiny_patch16_224", "deit_small_patch16_224", "mobilevit_s", "mobilevitv2_050",
             "efficientformer_l1", "pvt_v2_b0", "poolformer_s12", "edgenext_small", "mixer_s32_224", "levit_128s",
             "hrnet_w18_small", "repvgg_a0", "mobileone_s0", "fastvit_t8", "mobilenetv4_conv_small", "rexnet_100",
             "ese_vovnet19b_dw", "lcnet_050", "cspdarknet53", "res2net50_26w_4s", "efficientnet_lite0", "convnextv2_atto",
             "tf_efficientnetv2_b0", "cait_xxs24_224", "gmlp_ti16_224", "tiny_vit_5m_224", "xcit_nano_12_p16_224"],
}


def classifier(source: str, name: str) -> Callable[[pathlib.Path], None]:
    def make(folder: pathlib.Path) -> None:
        if source == "timm":
            module = timm.create_model(name, pretrained=False, exportable=True)
        elif name in ("googlenet", "inception_v3"):
            module = torchvision.models.get_model(name, weights=None, init_weights=False, aux_logits=False)
        else:
            module = torchvision.models.get_model(name, weights=None)
        export(folder, module, image(299 if name == "inception_v3" else 224))
    return make


for source, names in CLASSIFIERS.items():
    for name in names:
        MAKERS[name] = classifier(source, name)


def maker(make: Callable[[pathlib.Path], None]) -> Callable[[pathlib.Path], None]:
    MAKERS[make.__name__] = make
    return make


@maker
def lraspp_mobilenet_v3(folder: pathlib.Path) -> None:
    export(folder, Only(torchvision.models.segmentation.lraspp_mobilenet_v3_large(weights=None, weights_backbone=None),
                        "out"), image(320))


@maker
def deeplabv3_mobilenet_v3(folder: pathlib.Path) -> None:
    export(folder, Only(torchvision.models.segmentation.deeplabv3_mobilenet_v3_large(
        weights=None, weights_backbone=None), "out"), image(224))


# ---- transformers ----

@maker
def bert_small_s128(folder: pathlib.Path) -> None:
    config = transformers.BertConfig(hidden_size=512, num_hidden_layers=4, num_attention_heads=8,
                                     intermediate_size=2048, attn_implementation="eager")
    export(folder, Only(transformers.BertModel(config), "last_hidden_state"), tokens(128))


@maker
def distilbert_s64(folder: pathlib.Path) -> None:
    config = transformers.DistilBertConfig(attn_implementation="eager")
    export(folder, Only(transformers.DistilBertModel(config)), tokens(64), torch.ones(1, 64, dtype=torch.int64))


class Gpt2(transformers.GPT2LMHeadModel):
    def forward(self, ids: torch.Tensor) -> torch.Tensor:
        return super().forward(input_ids=ids, attention_mask=torch.ones_like(ids), use_cache=False).logits


@maker
def gpt2_6_layers_s64(folder: pathlib.Path) -> None:
    export(folder, Gpt2(transformers.GPT2Config(n_layer=6, attn_implementation="eager")), tokens(64))


@maker
def t5_encoder_s64(folder: pathlib.Path) -> None:
    export(folder, Only(transformers.T5EncoderModel(transformers.T5Config()), "last_hidden_state"), tokens(64))


@maker
def whisper_tiny_encoder(folder: pathlib.Path) -> None:
    from transformers.models.whisper.modeling_whisper import WhisperEncoder
    config = transformers.WhisperConfig(d_model=384, encoder_layers=4, encoder_attention_heads=6, encoder_ffn_dim=1536,
                                        max_source_positions=500, attn_implementation="eager")
    export(folder, Only(WhisperEncoder(config), "last_hidden_state"), torch.randn(1, 80, 1000))


@maker
def segformer_b0(folder: pathlib.Path) -> None:
    config = transformers.SegformerConfig(num_labels=19)
    export(folder, Only(transformers.SegformerForSemanticSegmentation(config), "logits"), image(256))


@maker
def wav2vec2_small(folder: pathlib.Path) -> None:
    config = transformers.Wav2Vec2Config(hidden_size=384, num_hidden_layers=4, num_attention_heads=6,
                                         intermediate_size=1536, attn_implementation="eager")
    export(folder, Only(transformers.Wav2Vec2Model(config), "last_hidden_state"), torch.randn(1, 16000))


@maker
def mobilebert_s64(folder: pathlib.Path) -> None:
    config = transformers.MobileBertConfig(num_hidden_layers=12, attn_implementation="eager")
    export(folder, Only(transformers.MobileBertModel(config), "last_hidden_state"), tokens(64))


# ---- networks written here ----

def conv_bn(a: int, b: int, k: int = 3, stride: int = 1, act: type[nn.Module] = nn.ReLU) -> nn.Sequential:
    return nn.Sequential(nn.Conv2d(a, b, k, stride, k // 2, bias=False), nn.BatchNorm2d(b), act())


class Tagger(nn.Module):
    def __init__(self, cell: type[nn.RNNBase], layers: int = 2):
        super().__init__()
        self.embed = nn.Embedding(5000, 128)
        self.rnn = cell(128, 256, layers, bidirectional=True, batch_first=True)
        self.out = nn.Linear(512, 32)

    def forward(self, ids: torch.Tensor) -> torch.Tensor:
        return self.out(self.rnn(self.embed(ids))[0])


@maker
def lstm_tagger(folder: pathlib.Path) -> None:
    export(folder, Tagger(nn.LSTM), tokens(64))


@maker
def gru_tagger(folder: pathlib.Path) -> None:
    export(folder, Tagger(nn.GRU), tokens(64))


class Stepper(nn.Module):
    """One step of a recurrent language model: small products."""

    def __init__(self) -> None:
        super().__init__()
        self.embed, self.rnn, self.out = nn.Embedding(5000, 256), nn.LSTM(256, 512), nn.Linear(512, 5000)

    def forward(self, ids: torch.Tensor, h: torch.Tensor, c: torch.Tensor) -> tuple[torch.Tensor, ...]:
        y, (h, c) = self.rnn(self.embed(ids), (h, c))
        return self.out(y), h, c


@maker
def lstm_step(folder: pathlib.Path) -> None:
    export(folder, Stepper(), tokens(1), torch.zeros(1, 1, 512), torch.zeros(1, 1, 512))


class Crnn(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.body = nn.Sequential(conv_bn(1, 64), nn.MaxPool2d(2), conv_bn(64, 128), nn.MaxPool2d(2), conv_bn(128, 256),
                                  conv_bn(256, 256), nn.MaxPool2d((2, 1)), conv_bn(256, 512), nn.MaxPool2d((2, 1)),
                                  nn.Conv2d(512, 512, (2, 1)))
        self.rnn = nn.LSTM(512, 256, 2, bidirectional=True)
        self.out = nn.Linear(512, 97)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.out(self.rnn(self.body(x).squeeze(2).permute(2, 0, 1))[0]).log_softmax(2)


@maker
def crnn_ocr(folder: pathlib.Path) -> None:
    export(folder, Crnn(), torch.randn(1, 1, 32, 128))


class Unet(nn.Module):
    def __init__(self, up: str):
        super().__init__()
        sizes = [16, 32, 64, 128]
        self.up = up
        self.down = nn.ModuleList(nn.Sequential(conv_bn(a, b), conv_bn(b, b)) for a, b in zip([3] + sizes, sizes))
        self.rise = nn.ModuleList(nn.ConvTranspose2d(b, a, 2, 2) if up == "transpose" else nn.Conv2d(b, a, 1)
                                  for a, b in zip(sizes, sizes[1:]))
        self.join = nn.ModuleList(nn.Sequential(conv_bn(2 * a, a), conv_bn(a, a)) for a in sizes[:-1])
        self.out = nn.Conv2d(sizes[0], 2, 1)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        skips = []
        for i, block in enumerate(self.down):
            x = block(x if i == 0 else nn.functional.max_pool2d(x, 2))
            skips.append(x)
        for rise, join, skip in list(zip(self.rise, self.join, skips))[::-1]:
            x = rise(x)
            if self.up != "transpose":
                x = nn.functional.interpolate(x, scale_factor=2, mode=self.up)
            x = join(torch.cat([skip, x], 1))
        return self.out(x)


@maker
def unet_transpose(folder: pathlib.Path) -> None:
    export(folder, Unet("transpose"), image(192))


@maker
def unet_bilinear(folder: pathlib.Path) -> None:
    export(folder, Unet("bilinear"), image(192))


class C2f(nn.Module):
    def __init__(self, a: int, b: int, n: int):
        super().__init__()
        self.half = b // 2
        self.first, self.last = conv_bn(a, b, 1, act=nn.SiLU), conv_bn((2 + n) * self.half, b, 1, act=nn.SiLU)
        self.blocks = nn.ModuleList(nn.Sequential(conv_bn(self.half, self.half, act=nn.SiLU),
                                                  conv_bn(self.half, self.half, act=nn.SiLU)) for _ in range(n))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        parts = list(self.first(x).chunk(2, 1))
        for block in self.blocks:
            parts.append(parts[-1] + block(parts[-1]))
        return self.last(torch.cat(parts, 1))


class Yolo(nn.Module):
    """As YOLOv8n: C2f blocks, SPPF, a feature pyramid and heads with a distribution of distances."""

    def __init__(self) -> None:
        super().__init__()
        def step(a: int, b: int, n: int) -> nn.Sequential:
            return nn.Sequential(conv_bn(a, b, 3, 2, nn.SiLU), C2f(b, b, n))
        self.stem = nn.Sequential(conv_bn(3, 16, 3, 2, nn.SiLU), step(16, 32, 1))
        self.p3, self.p4, self.p5 = step(32, 64, 2), step(64, 128, 2), step(128, 256, 1)
        self.spp1, self.spp2 = conv_bn(256, 128, 1, act=nn.SiLU), conv_bn(512, 256, 1, act=nn.SiLU)
        self.pool = nn.MaxPool2d(5, 1, 2)
        self.up4, self.up3 = C2f(384, 128, 1), C2f(192, 64, 1)
        self.heads = nn.ModuleList(nn.Sequential(conv_bn(c, 64, act=nn.SiLU), conv_bn(64, 64, act=nn.SiLU),
                                                 nn.Conv2d(64, 64 + 80, 1)) for c in (64, 128, 256))
        self.bins = nn.Parameter(torch.arange(16, dtype=torch.float32).view(1, 16, 1, 1), False)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        p3 = self.p3(self.stem(x))
        p4 = self.p4(p3)
        parts = [self.spp1(self.p5(p4))]
        for _ in range(3):
            parts.append(self.pool(parts[-1]))
        p5 = self.spp2(torch.cat(parts, 1))
        p4 = self.up4(torch.cat([nn.functional.interpolate(p5, scale_factor=2.0), p4], 1))
        p3 = self.up3(torch.cat([nn.functional.interpolate(p4, scale_factor=2.0), p3], 1))
        found = torch.cat([head(p).flatten(2) for head, p in zip(self.heads, (p3, p4, p5))], 2)
        box, score = found.split([64, 80], 1)
        box = box.view(1, 4, 16, -1).transpose(1, 2).softmax(1)
        return torch.cat([(box * self.bins).sum(1), score.sigmoid()], 1)


@maker
def yolov8n_like(folder: pathlib.Path) -> None:
    export(folder, Yolo(), image(320))


class Autoencoder(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.encode = nn.Sequential(conv_bn(3, 32, 3, 2), conv_bn(32, 64, 3, 2), conv_bn(64, 128, 3, 2))
        self.decode = nn.Sequential(*[layer for a, b in ((128, 64), (64, 32), (32, 3)) for layer in
                                      (nn.ConvTranspose2d(a, b, 4, 2, 1), nn.LeakyReLU(0.1))])

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return torch.tanh(self.decode(self.encode(x)))


@maker
def autoencoder(folder: pathlib.Path) -> None:
    export(folder, Autoencoder(), image(128))


class Style(nn.Module):
    """Fast style transfer: reflected borders, instance normalisation, nearest neighbours."""

    def __init__(self) -> None:
        super().__init__()
        def layer(a: int, b: int, k: int, stride: int = 1) -> list[nn.Module]:
            return [nn.ReflectionPad2d(k // 2), nn.Conv2d(a, b, k, stride), nn.InstanceNorm2d(b, affine=True), nn.ReLU()]
        self.down = nn.Sequential(*layer(3, 32, 9), *layer(32, 64, 3, 2), *layer(64, 96, 3, 2))
        self.body = nn.ModuleList(nn.Sequential(*layer(96, 96, 3), *layer(96, 96, 3)[:-1]) for _ in range(3))
        self.up = nn.ModuleList(nn.Sequential(*layer(a, b, 3)) for a, b in ((96, 64), (64, 32)))
        self.out = nn.Sequential(nn.ReflectionPad2d(4), nn.Conv2d(32, 3, 9))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x = self.down(x)
        for block in self.body:
            x = x + block(x)
        for up in self.up:
            x = up(nn.functional.interpolate(x, scale_factor=2.0))
        return self.out(x)


@maker
def style_transfer(folder: pathlib.Path) -> None:
    export(folder, Style(), image(128))


@maker
def super_resolution(folder: pathlib.Path) -> None:
    export(folder, nn.Sequential(nn.Conv2d(1, 64, 5, 1, 2), nn.Tanh(), nn.Conv2d(64, 32, 3, 1, 1), nn.Tanh(),
                                 nn.Conv2d(32, 9, 3, 1, 1), nn.PixelShuffle(3)), torch.randn(1, 1, 112, 112))


class Tcn(nn.Module):
    """Dilated and separable one-dimensional convolutions, as in speech models."""

    def __init__(self) -> None:
        super().__init__()
        self.first = nn.Conv1d(64, 128, 1)
        self.blocks = nn.ModuleList(nn.Sequential(
            nn.Conv1d(128, 256, 1), nn.PReLU(), nn.BatchNorm1d(256),
            nn.Conv1d(256, 256, 3, padding=2 ** i, dilation=2 ** i, groups=256), nn.PReLU(), nn.BatchNorm1d(256),
            nn.Conv1d(256, 128, 1)) for i in range(6))
        self.out = nn.Conv1d(128, 40, 1)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x = self.first(x)
        for block in self.blocks:
            x = x + block(x)
        return self.out(x)


@maker
def tcn_1d(folder: pathlib.Path) -> None:
    export(folder, Tcn(), torch.randn(1, 64, 800))


# ---- quantised by onnxruntime's quantiser ----

def dynamic(base: str) -> Callable[[pathlib.Path], None]:
    def make(folder: pathlib.Path) -> None:
        source = folder.parent / base
        quantization.quantize_dynamic(str(source / "model.onnx"), str(folder / "model.onnx"))
        copy_inputs(source, folder)
    return make


def copy_inputs(source: pathlib.Path, folder: pathlib.Path) -> None:
    (folder / "test_data_set_0").mkdir(exist_ok=True)
    for path in (source / "test_data_set_0").glob("*.pb"):
        (folder / "test_data_set_0" / path.name).write_bytes(path.read_bytes())


class Random(quantization.CalibrationDataReader):
    def __init__(self, path: str):
        first = onnxruntime.InferenceSession(path).get_inputs()[0]
        rng = np.random.default_rng(0)
        self.feeds = iter([{first.name: rng.standard_normal(first.shape, np.float32)} for _ in range(2)])

    def get_next(self) -> dict | None:
        return next(self.feeds, None)


def static(base: str, form: quantization.QuantFormat) -> Callable[[pathlib.Path], None]:
    def make(folder: pathlib.Path) -> None:
        source = folder.parent / base
        path = str(source / "model.onnx")
        quantization.quantize_static(path, str(folder / "model.onnx"), Random(path), quant_format=form,
                                     per_channel=form == quantization.QuantFormat.QDQ)
        copy_inputs(source, folder)
    return make


for base in ("distilbert_s64", "lstm_tagger", "vit_b_16", "bert_small_s128", "crnn_ocr", "mobilenet_v3_large"):
    MAKERS[f"{base}.int8_dynamic"] = dynamic(base)
for base in ("resnet18", "mobilenet_v2"):
    MAKERS[f"{base}.int8_qop"] = static(base, quantization.QuantFormat.QOperator)
for base in ("resnet18", "mobilenet_v2", "mobilenet_v3_large", "squeezenet1_1", "googlenet", "shufflenet_v2_x1_0",
             "yolov8n_like", "unet_bilinear", "efficientnet_lite0", "vit_b_16"):
    MAKERS[f"{base}.int8_qdq"] = static(base, quantization.QuantFormat.QDQ)


# ---- models that others ship ----

# name: wheel, file, and the sizes of the dimensions that have none, in the order of the inputs
SHIPPED = {
    "magika": ("magika-", "standard_v3_3/model.onnx", [1]),
    "ppocr_v4_det": ("rapidocr_onnxruntime-", "ch_PP-OCRv4_det_infer.onnx", [1, 320, 320]),
    "ppocr_v4_rec": ("rapidocr_onnxruntime-", "ch_PP-OCRv4_rec_infer.onnx", [1, 3, 48, 320]),
    "ppocr_cls": ("rapidocr_onnxruntime-", "ch_ppocr_mobile_v2.0_cls_infer.onnx", [1, 3, 48, 192]),
    "ppocr_v6_det": ("rapidocr-", "PP-OCRv6_det_small.onnx", [1, 320, 320]),
    "ppocr_v6_rec": ("rapidocr-", "PP-OCRv6_rec_small.onnx", [1, 320]),
    "ddddocr_old": ("ddddocr-", "common_old.onnx", [160]),
    "ddddocr": ("ddddocr-", "common.onnx", [160]),
    "ddddocr_det": ("ddddocr-", "common_det.onnx", []),
    "silero_vad": ("silero_vad-", "silero_vad.onnx", [1, 576, 1]),
    "silero_vad_ifless": ("silero_vad-", "silero_vad_op18_ifless.onnx", [1, 576, 1]),
    "silero_vad_sequence": ("silero_vad-", "silero_vad_16k_sequence.onnx", [1, 576, 1]),
    "basic_pitch": ("basic_pitch-", "nmp.onnx", [1]),
}


def fill(folder: pathlib.Path, sizes: list[int]) -> None:
    session = onnxruntime.InferenceSession(str(folder / "model.onnx"), providers=["CPUExecutionProvider"])
    rng, left, arrays = np.random.default_rng(0), list(sizes), []
    for value in session.get_inputs():
        dtype = NUMPY[value.type]
        shape = [d if isinstance(d, int) else left.pop(0) for d in value.shape]
        numbers = 16000 * np.ones(shape) if value.name == "sr" else rng.random(shape)
        if value.name != "sr" and np.issubdtype(dtype, np.integer):
            numbers = rng.integers(0, 200, shape)
        arrays.append(np.asarray(numbers, dtype))
    write_inputs(folder, arrays)
    session.run(None, {v.name: a for v, a in zip(session.get_inputs(), arrays)})


def shipped(wheels: pathlib.Path, wheel: str, file: str, sizes: list[int]) -> Callable[[pathlib.Path], None]:
    def make(folder: pathlib.Path) -> None:
        with zipfile.ZipFile(next(wheels.glob(wheel + "*.whl"))) as archive:
            name = next(n for n in archive.namelist() if n.endswith("/" + file))
            (folder / "model.onnx").write_bytes(archive.read(name))
        fill(folder, sizes)
    return make


def light(path: pathlib.Path) -> Callable[[pathlib.Path], None]:
    def make(folder: pathlib.Path) -> None:
        (folder / "model.onnx").write_bytes(path.read_bytes())
        fill(folder, [])
    return make


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("folder", type=pathlib.Path)
    parser.add_argument("--wheels", type=pathlib.Path)
    parser.add_argument("--light", type=pathlib.Path)
    parser.add_argument("names", nargs="*")
    args = parser.parse_intermixed_args()
    warnings.filterwarnings("ignore")
    torch.backends.mha.set_fastpath_enabled(False)
    for name, (wheel, file, sizes) in SHIPPED.items() if args.wheels else ():
        MAKERS[name] = shipped(args.wheels, wheel, file, sizes)
    for path in sorted(args.light.glob("*.onnx")) if args.light else ():
        MAKERS[path.stem] = light(path)
    for name in args.names or MAKERS:
        folder = args.folder / name
        if (folder / "test_data_set_0").exists():
            continue
        with tempfile.TemporaryDirectory(dir=args.folder) as room:
            made = pathlib.Path(room) / name
            made.mkdir()
            for base in args.folder.iterdir():  # what a quantised form is made of
                if base.name != pathlib.Path(room).name:
                    (pathlib.Path(room) / base.name).symlink_to(base.resolve())
            try:
                torch.manual_seed(0)
                MAKERS[name](made)
            except Exception:  # the next one may still be made
                print(f"{name}: {traceback.format_exc(limit=-1).strip().splitlines()[-1]}", flush=True)
                continue
            made.rename(folder)
        print(name, flush=True)


if __name__ == "__main__":
    main()
