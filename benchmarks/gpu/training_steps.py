"""A step of a training on GPUs with DistributedOptimizer, beside one with PyTorch's DistributedDataParallel over NCCL and one without
communication, in alternating turns of the same processes. A rank of a job:

    runjob -np 2 python benchmarks/gpu/training_steps.py [MODEL...]

Rank 0 prints, for each model, lines `FIGURE name value unit`, separated by tabs: the medians of the times of a step, their ratio, and the
largest difference between the parameters of the two models at the end. Those of torchvision are left out where it is not installed.
"""

from __future__ import annotations

import importlib.util
import os
import statistics
import sys
import time

import torch
import torch.distributed
from torch import nn
from torch.nn.functional import cross_entropy

import runjob.torch as hvd
from runjob.benchmark.networks import MODELS, Transformer, images, sentences

TURNS, STEPS = 9, 5


#: 92 million parameters, nearly half of them in two tensors.
LARGE = {"vocabulary": 32000, "length": 256}


def large_transformer():
    return Transformer(**LARGE, width=768, heads=12, layers=6)


def resnet50():
    from torchvision.models import resnet50 as make

    return make()


def photographs(batch):
    return images(batch, edge=224, classes=1000)


ALL = {**MODELS, "transformer92m": (large_transformer, lambda batch: sentences(batch, **LARGE), 4)}
if importlib.util.find_spec("torchvision"):
    ALL["resnet50"] = (resnet50, photographs, 16)
    ALL["resnet50-sync-batch-norm"] = (resnet50, photographs, 16)


def sgd(model):
    return torch.optim.SGD(model.parameters(), lr=0.01)


def with_runjob(model, device, normalizes):
    if normalizes:
        model = hvd.SyncBatchNorm.convert_sync_batchnorm(model)
    hvd.broadcast_parameters(model.state_dict(), root_rank=0)
    return model, hvd.DistributedOptimizer(sgd(model), named_parameters=model.named_parameters())


def with_ddp(model, device, normalizes):
    if normalizes:
        model = nn.SyncBatchNorm.convert_sync_batchnorm(model)
    model = nn.parallel.DistributedDataParallel(model, device_ids=[device.index])
    return model, sgd(model)


def alone(model, device, normalizes):
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
    make, data, batch = ALL[name]
    inputs, labels = (each.to(device) for each in data(batch))
    ways = {}
    for way in (with_runjob, with_ddp, alone):
        torch.manual_seed(0)
        ways[way] = way(make().to(device), device, "sync-batch-norm" in name)
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
        print(f"FIGURE\t{name}, difference of the parameters\t{difference:.1e}\t", flush=True)


def main():
    hvd.init()
    device = torch.device("cuda", hvd.local_rank() % torch.cuda.device_count())
    torch.cuda.set_device(device)
    torch.distributed.init_process_group("nccl", rank=hvd.rank(), world_size=hvd.size(), device_id=device)
    for name in sys.argv[1:] or ALL:
        measure(name, device)
        torch.cuda.empty_cache()
    hvd.shutdown()
    torch.cuda.synchronize()
    os._exit(0)


if __name__ == "__main__":
    main()
