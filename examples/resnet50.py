"""ResNet-50 without torchvision, for the examples that train it."""

import torch
from torch import nn


class Bottleneck(nn.Module):
    """Three convolutions with a way around them; the stride is in the second one."""

    def __init__(self, channels_in, width, stride):
        super().__init__()
        channels = 4 * width
        self.body = nn.Sequential(
            nn.Conv2d(channels_in, width, 1, bias=False), nn.BatchNorm2d(width), nn.ReLU(inplace=True),
            nn.Conv2d(width, width, 3, stride, 1, bias=False), nn.BatchNorm2d(width), nn.ReLU(inplace=True),
            nn.Conv2d(width, channels, 1, bias=False), nn.BatchNorm2d(channels),
        )  # fmt: skip
        self.around = nn.Identity()
        if channels_in != channels:
            self.around = nn.Sequential(nn.Conv2d(channels_in, channels, 1, stride, bias=False), nn.BatchNorm2d(channels))

    def forward(self, images):
        return torch.relu(self.body(images) + self.around(images))


def resnet50(classes=1000):
    """He et al., "Deep residual learning for image recognition", CVPR 2016: 25,557,032 parameters in 161 tensors."""
    layers = [nn.Conv2d(3, 64, 7, 2, 3, bias=False), nn.BatchNorm2d(64), nn.ReLU(inplace=True), nn.MaxPool2d(3, 2, 1)]
    channels = 64
    for width, blocks in ((64, 3), (128, 4), (256, 6), (512, 3)):
        for block in range(blocks):
            layers.append(Bottleneck(channels, width, 2 if block == 0 and width > 64 else 1))
            channels = 4 * width
    return nn.Sequential(*layers, nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(channels, classes))
