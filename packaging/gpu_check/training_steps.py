"""A step of a training with DistributedOptimizer, beside one with PyTorch's DistributedDataParallel and one without communication, in
alternating turns of the same processes. A rank of a job: `runjob -np 2 python training_steps.py`.

Rank 0 prints, for each model, `FIGURE` lines: the medians of the times of a step, and the largest difference between the two models.
"""

import importlib.util
import os
import statistics
import time

import torch
import torch.distributed
from torch import nn
from torch.nn.functional import cross_entropy

import runjob.torch as hvd

TURNS, STEPS = 9, 5


class Transformer(nn.Module):
    """Six encoder layers of 768 channels over 256 tokens: 92 million parameters, nearly half of them in two tensors."""

    def __init__(self, vocabulary=32000, width=768, length=256):
        super().__init__()
        self.embedding = nn.Embedding(vocabulary, width)
        self.place = nn.Parameter(torch.zeros(length, width))
        layer = nn.TransformerEncoderLayer(width, 12, 4 * width, dropout=0.0, batch_first=True)
        self.layers = nn.TransformerEncoder(layer, 6, enable_nested_tensor=False)
        self.head = nn.Linear(width, vocabulary)

    def forward(self, tokens):
        return self.head(self.layers(self.embedding(tokens) + self.place)).flatten(0, 1)


def perceptron():
    """17 million parameters in 10 tensors, with little to compute for each of them."""
    widths = (3072, 2048, 2048, 2048, 1024)
    layers = [layer for a, b in zip(widths, widths[1:]) for layer in (nn.Linear(a, b), nn.ReLU())]
    return nn.Sequential(nn.Flatten(), *layers, nn.Linear(1024, 10))


def resnet50():
    from torchvision.models import resnet50

    return resnet50()


def images(count, edge):
    return torch.randn(count, 3, edge, edge), torch.randint(0, 10, (count,))


def sentences(count):
    tokens = torch.randint(0, 32000, (count, 257))
    return tokens[:, :-1], tokens[:, 1:].flatten()


MODELS = {"perceptron": (perceptron, lambda: images(32, 32)), "transformer": (Transformer, lambda: sentences(4))}
if importlib.util.find_spec("torchvision"):
    MODELS["ResNet-50"] = (resnet50, lambda: images(16, 224))


def sgd(model):
    return torch.optim.SGD(model.parameters(), lr=0.01)


def with_runjob(model, device):
    hvd.broadcast_parameters(model.state_dict(), root_rank=0)
    return model, hvd.DistributedOptimizer(sgd(model), named_parameters=model.named_parameters())


def with_ddp(model, device):
    model = nn.parallel.DistributedDataParallel(model, device_ids=[device.index])
    return model, sgd(model)


def alone(model, device):
    return model, sgd(model)


def milliseconds(model, optimizer, inputs, labels):
    torch.cuda.synchronize()
    hvd.barrier()
    begin = time.perf_counter()
    for _ in range(STEPS):
        optimizer.zero_grad()
        cross_entropy(model(inputs), labels).backward()
        optimizer.step()
    torch.cuda.synchronize()
    return (time.perf_counter() - begin) / STEPS * 1e3


def measure(name, device):
    make, data = MODELS[name]
    inputs, labels = (each.to(device) for each in data())
    ways = {}
    for way in (with_runjob, with_ddp, alone):
        torch.manual_seed(0)
        ways[way] = way(make().to(device), device)
    times = {way: [] for way in ways}
    for turn in range(-2, TURNS):
        for way, (model, optimizer) in ways.items():
            taken = milliseconds(model, optimizer, inputs, labels)
            if turn >= 0:
                times[way].append(taken)
    ours, theirs = ([each.detach() for each in ways[way][0].parameters()] for way in (with_runjob, with_ddp))
    difference = max((a - b).abs().max().item() for a, b in zip(ours, theirs))
    if hvd.rank() == 0:
        medians = {way: statistics.median(taken) for way, taken in times.items()}
        for words, way in (("runjob", with_runjob), ("DDP", with_ddp), ("without communication", alone)):
            print(f"FIGURE\tstep of {name}, {words}\t{medians[way]:.2f}\tms")
        print(f"FIGURE\tstep of {name}, DDP / runjob\t{medians[with_ddp] / medians[with_runjob]:.2f}\t")
        print(f"FIGURE\t{name}, difference of the models\t{difference:.1e}\t", flush=True)


def main():
    hvd.init()
    device = torch.device("cuda", hvd.local_rank() % torch.cuda.device_count())
    torch.cuda.set_device(device)
    torch.distributed.init_process_group("nccl", rank=hvd.rank(), world_size=hvd.size(), device_id=device)
    for name in MODELS:
        measure(name, device)
        torch.cuda.empty_cache()
    hvd.shutdown()
    torch.cuda.synchronize()
    os._exit(0)


if __name__ == "__main__":
    main()
