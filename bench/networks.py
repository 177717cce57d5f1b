"""Convolution networks as plain PyTorch modules, for compare.py and models/bench/export.py: those of torchvision with the same
operations in the same order (without dropout), and a U-Net."""
import torch
import torch.nn.functional as F
from torch import nn


def conv_norm(cin, cout, kernel=1, stride=1, groups=1, activation=None):
    parts = [nn.Conv2d(cin, cout, kernel, stride, kernel // 2, groups=groups, bias=False), nn.BatchNorm2d(cout)]
    return nn.Sequential(*parts, *([activation()] if activation else []))


class Bottleneck(nn.Module):
    def __init__(self, cin, width, stride):
        super().__init__()
        self.body = nn.Sequential(conv_norm(cin, width, activation=nn.ReLU),
                                  conv_norm(width, width, 3, stride, activation=nn.ReLU), conv_norm(width, 4 * width))
        same = stride == 1 and cin == 4 * width
        self.skip = nn.Identity() if same else conv_norm(cin, 4 * width, 1, stride)

    def forward(self, x):
        return F.relu(self.body(x) + self.skip(x))


class Resnet50(nn.Module):
    def __init__(self):
        super().__init__()
        self.stem = nn.Sequential(conv_norm(3, 64, 7, 2, activation=nn.ReLU), nn.MaxPool2d(3, 2, 1))
        blocks, cin = [], 64
        for stage, count in enumerate((3, 4, 6, 3)):
            for i in range(count):
                blocks.append(Bottleneck(cin, 64 << stage, 2 if stage and not i else 1))
                cin = 256 << stage
        self.blocks, self.head = nn.Sequential(*blocks), nn.Linear(2048, 1000)

    def forward(self, image):
        return self.head(self.blocks(self.stem(image)).mean((2, 3)))


class SqueezeExcite(nn.Module):
    def __init__(self, width, squeezed):
        super().__init__()
        self.down, self.up = nn.Conv2d(width, squeezed, 1), nn.Conv2d(squeezed, width, 1)

    def forward(self, x):
        return x * torch.sigmoid(self.up(F.silu(self.down(F.adaptive_avg_pool2d(x, 1)))))


class Inverted(nn.Module):
    """Wider, one convolution a channel, narrower: MobileNetV2's block, and with squeeze and excitation EfficientNet's."""

    def __init__(self, cin, cout, expand, kernel, stride, activation, excite):
        super().__init__()
        width = cin * expand
        parts = [conv_norm(cin, width, activation=activation)] if expand > 1 else []
        parts.append(conv_norm(width, width, kernel, stride, width, activation))
        if excite:
            parts.append(SqueezeExcite(width, max(1, cin // 4)))
        self.body = nn.Sequential(*parts, conv_norm(width, cout))
        self.adds = stride == 1 and cin == cout

    def forward(self, x):
        return x + self.body(x) if self.adds else self.body(x)


class InvertedNet(nn.Module):
    """stages: expansion, kernel, stride, channels, repeats."""

    def __init__(self, stages, activation, excite):
        super().__init__()
        blocks, cin = [conv_norm(3, 32, 3, 2, activation=activation)], 32
        for expand, kernel, stride, cout, count in stages:
            for i in range(count):
                blocks.append(Inverted(cin, cout, expand, kernel, 1 if i else stride, activation, excite))
                cin = cout
        self.blocks = nn.Sequential(*blocks, conv_norm(cin, 1280, activation=activation))
        self.head = nn.Linear(1280, 1000)

    def forward(self, image):
        return self.head(F.adaptive_avg_pool2d(self.blocks(image), 1).flatten(1))


def efficientnet_b0():
    stages = [(1, 3, 1, 16, 1), (6, 3, 2, 24, 2), (6, 5, 2, 40, 2), (6, 3, 2, 80, 3), (6, 5, 1, 112, 3),
              (6, 5, 2, 192, 4), (6, 3, 1, 320, 1)]
    return InvertedNet(stages, nn.SiLU, True)


def mobilenet_v2():
    stages = [(1, 3, 1, 16, 1), (6, 3, 2, 24, 2), (6, 3, 2, 32, 3), (6, 3, 2, 64, 4), (6, 3, 1, 96, 3),
              (6, 3, 2, 160, 3), (6, 3, 1, 320, 1)]
    return InvertedNet(stages, nn.ReLU6, False)


class ChannelNorm(nn.LayerNorm):
    def forward(self, x):
        return super().forward(x.permute(0, 2, 3, 1)).permute(0, 3, 1, 2)


class ConvNextBlock(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.mix = nn.Conv2d(width, width, 7, padding=3, groups=width)
        self.norm = nn.LayerNorm(width, eps=1e-6)
        self.up, self.down = nn.Linear(width, 4 * width), nn.Linear(4 * width, width)
        self.scale = nn.Parameter(torch.full((width, 1, 1), 1e-6))

    def forward(self, x):
        y = self.norm(self.mix(x).permute(0, 2, 3, 1))
        return x + self.scale * self.down(F.gelu(self.up(y))).permute(0, 3, 1, 2)


class ConvNextTiny(nn.Module):
    def __init__(self):
        super().__init__()
        widths, counts = (96, 192, 384, 768), (3, 3, 9, 3)
        parts = [nn.Conv2d(3, 96, 4, 4), ChannelNorm(96, eps=1e-6)]
        for i, (width, count) in enumerate(zip(widths, counts)):
            if i:
                parts += [ChannelNorm(widths[i - 1], eps=1e-6), nn.Conv2d(widths[i - 1], width, 2, 2)]
            parts += [ConvNextBlock(width) for _ in range(count)]
        self.body, self.norm, self.head = nn.Sequential(*parts), ChannelNorm(768, eps=1e-6), nn.Linear(768, 1000)

    def forward(self, image):
        return self.head(self.norm(F.adaptive_avg_pool2d(self.body(image), 1)).flatten(1))


class UnetBlock(nn.Module):
    """Group norm, SiLU and a 3 x 3 convolution, twice, and what came in."""

    def __init__(self, cin, cout):
        super().__init__()
        self.norm1, self.conv1 = nn.GroupNorm(32, cin), nn.Conv2d(cin, cout, 3, padding=1)
        self.norm2, self.conv2 = nn.GroupNorm(32, cout), nn.Conv2d(cout, cout, 3, padding=1)
        self.skip = nn.Identity() if cin == cout else nn.Conv2d(cin, cout, 1)

    def forward(self, x):
        y = self.conv1(F.silu(self.norm1(x)))
        return self.skip(x) + self.conv2(F.silu(self.norm2(y)))


class UnetAttention(nn.Module):
    def __init__(self, width, heads):
        super().__init__()
        self.heads, self.norm = heads, nn.GroupNorm(32, width)
        self.qkv, self.out = nn.Linear(width, 3 * width), nn.Linear(width, width)

    def forward(self, x):
        b, c, h, w = x.shape
        y = self.norm(x).flatten(2).transpose(1, 2)
        q, k, v = self.qkv(y).view(b, h * w, 3, self.heads, c // self.heads).permute(2, 0, 3, 1, 4)
        y = F.scaled_dot_product_attention(q, k, v).transpose(1, 2).reshape(b, h * w, c)
        return x + self.out(y).transpose(1, 2).view(b, c, h, w)


class Unet(nn.Module):
    """Four levels of two blocks down, attention at the lowest, and up again by resizing; the pictures of each level are joined."""

    def __init__(self, widths=(64, 128, 256, 512), heads=8):
        super().__init__()
        pairs = list(zip(widths, widths[1:]))
        self.first = nn.Conv2d(3, widths[0], 3, padding=1)
        self.down = nn.ModuleList(nn.Sequential(UnetBlock(w, w), UnetBlock(w, w)) for w in widths[:-1])
        self.shrink = nn.ModuleList(nn.Conv2d(a, b, 3, 2, 1) for a, b in pairs)
        top = widths[-1]
        self.middle = nn.Sequential(UnetBlock(top, top), UnetAttention(top, heads), UnetBlock(top, top))
        self.grow = nn.ModuleList(nn.Conv2d(b, a, 3, padding=1) for a, b in reversed(pairs))
        self.up = nn.ModuleList(nn.Sequential(UnetBlock(2 * w, w), UnetBlock(w, w)) for w in reversed(widths[:-1]))
        self.norm, self.last = nn.GroupNorm(32, widths[0]), nn.Conv2d(widths[0], 3, 3, padding=1)

    def forward(self, image):
        x, levels = self.first(image), []
        for blocks, shrink in zip(self.down, self.shrink):
            x = blocks(x)
            levels.append(x)
            x = shrink(x)
        x = self.middle(x)
        for grow, blocks in zip(self.grow, self.up):
            x = grow(F.interpolate(x, scale_factor=2.0, mode="nearest"))
            x = blocks(torch.cat((x, levels.pop()), 1))
        return self.last(F.silu(self.norm(x)))
