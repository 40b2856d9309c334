"""The networks that are trained, each with a batch to train it on: random data, the same in every run."""

from __future__ import annotations

import torch
from torch import nn


class ResidualBlock(nn.Module):
    """Two convolutions and a way around them, as in ResNet-18."""

    def __init__(self, channels_in: int, channels: int, stride: int) -> None:
        super().__init__()
        self.body = nn.Sequential(
            nn.Conv2d(channels_in, channels, 3, stride, 1, bias=False), nn.BatchNorm2d(channels), nn.ReLU(),
            nn.Conv2d(channels, channels, 3, 1, 1, bias=False), nn.BatchNorm2d(channels),
        )  # fmt: skip
        is_same = stride == 1 and channels_in == channels
        around = nn.Sequential(nn.Conv2d(channels_in, channels, 1, stride, bias=False), nn.BatchNorm2d(channels))
        self.around = nn.Identity() if is_same else around

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return torch.relu(self.body(x) + self.around(x))


def resnet18() -> nn.Module:
    """ResNet-18 for images of 32 x 32: 11.2 million parameters in 62 tensors."""
    blocks = [nn.Conv2d(3, 64, 3, 1, 1, bias=False), nn.BatchNorm2d(64), nn.ReLU()]
    channels_in = 64
    for channels, stride in ((64, 1), (128, 2), (256, 2), (512, 2)):
        blocks += [ResidualBlock(channels_in, channels, stride), ResidualBlock(channels, channels, 1)]
        channels_in = channels
    return nn.Sequential(*blocks, nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(512, 10))


def vgg11() -> nn.Module:
    """VGG-11 for images of 32 x 32: 28.1 million parameters in 22 tensors, most of them in one."""
    layers: list[nn.Module] = []
    channels_in = 3
    for channels, is_last in ((64, 1), (128, 1), (256, 0), (256, 1), (512, 0), (512, 1), (512, 0), (512, 1)):
        layers += [nn.Conv2d(channels_in, channels, 3, 1, 1), nn.ReLU(), *([nn.MaxPool2d(2)] if is_last else [])]
        channels_in = channels
    head = (nn.Flatten(), nn.Linear(512, 4096), nn.ReLU(), nn.Linear(4096, 4096), nn.ReLU(), nn.Linear(4096, 10))
    return nn.Sequential(*layers, *head)


class Transformer(nn.Module):
    """An encoder over `length` tokens; by default 7.4 million parameters in 52 tensors."""

    def __init__(self, vocabulary: int = 8192, width: int = 256, length: int = 128, heads: int = 4, layers: int = 4) -> None:
        super().__init__()
        self.embedding = nn.Embedding(vocabulary, width)
        self.place = nn.Parameter(torch.zeros(length, width))
        layer = nn.TransformerEncoderLayer(width, heads, 4 * width, dropout=0.0, batch_first=True)
        self.layers = nn.TransformerEncoder(layer, layers)
        self.head = nn.Linear(width, vocabulary)

    def forward(self, tokens: torch.Tensor) -> torch.Tensor:
        scores: torch.Tensor = self.head(self.layers(self.embedding(tokens) + self.place))
        return scores.flatten(0, 1)


def mlp() -> nn.Module:
    """17 million parameters in 10 tensors, with little to compute for each of them."""
    widths = (3072, 2048, 2048, 2048, 1024)
    layers = [layer for a, b in zip(widths, widths[1:]) for layer in (nn.Linear(a, b), nn.ReLU())]
    return nn.Sequential(nn.Flatten(), *layers, nn.Linear(1024, 10))


def small_layers() -> nn.Module:
    """31 layers of 64 numbers: 0.3 million parameters in 64 tensors, so that a step is mostly what each tensor costs."""
    layers = [layer for _ in range(31) for layer in (nn.Linear(64, 64), nn.ReLU())]
    return nn.Sequential(nn.Flatten(), nn.AdaptiveAvgPool1d(64), *layers, nn.Linear(64, 10))


def images(batch: int, edge: int = 32, classes: int = 10) -> tuple[torch.Tensor, torch.Tensor]:
    return torch.randn(batch, 3, edge, edge), torch.randint(0, classes, (batch,))


def sentences(batch: int, vocabulary: int = 8192, length: int = 128) -> tuple[torch.Tensor, torch.Tensor]:
    tokens = torch.randint(0, vocabulary, (batch, length + 1))
    return tokens[:, :-1], tokens[:, 1:].flatten()


#: name -> (network, data, samples of each rank in a step)
MODELS = {
    "resnet18": (resnet18, images, 16),
    "vgg11": (vgg11, images, 16),
    "transformer": (Transformer, sentences, 4),
    "mlp": (mlp, images, 32),
    "small-layers": (small_layers, images, 16),
}
