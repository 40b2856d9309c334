"""Trains on scikit-learn's handwritten digits with DistributedDataParallel. Nothing here is of runjob.

    runjob -np 2 --torch-backend runjob python examples/pytorch_digits_ddp.py     over runjob's collectives
    runjob -np 2 python examples/pytorch_digits_ddp.py                            over PyTorch's Gloo
    torchrun --nproc-per-node 2 examples/pytorch_digits_ddp.py

Rank 0 prints the accuracy on images that were not trained on.
"""

import argparse
import time

import torch
import torch.distributed as dist
from sklearn.datasets import load_digits
from sklearn.model_selection import train_test_split
from torch import nn
from torch.nn import functional
from torch.nn.parallel import DistributedDataParallel
from torch.utils.data import DataLoader, Subset, TensorDataset
from torch.utils.data.distributed import DistributedSampler


def load_data():
    digits = load_digits()
    images = torch.tensor(digits.images, dtype=torch.float32).unsqueeze(1) / 16
    labels = torch.tensor(digits.target)
    train, test = train_test_split(range(len(labels)), test_size=0.2, random_state=0, stratify=digits.target)
    return TensorDataset(images[train], labels[train]), TensorDataset(images[test], labels[test])


def make_model():
    return nn.Sequential(
        nn.Conv2d(1, 16, 3, padding=1), nn.ReLU(),
        nn.Conv2d(16, 32, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2),
        nn.Flatten(), nn.Linear(32 * 4 * 4, 64), nn.ReLU(), nn.Linear(64, 10),
    )  # fmt: skip


def accuracy(model, test_set):
    """That of all ranks, each of which looks at its share of the images."""
    share = Subset(test_set, range(dist.get_rank(), len(test_set), dist.get_world_size()))
    model.eval()
    with torch.no_grad():
        right = sum((model(images).argmax(dim=1) == labels).sum() for images, labels in DataLoader(share, batch_size=256))
    model.train()
    dist.all_reduce(right)
    return right.item() / len(test_set)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--epochs", type=int, default=10)
    parser.add_argument("--batch-size", type=int, default=32, help="images per rank and step")
    parser.add_argument("--learning-rate", type=float, default=0.05)
    arguments = parser.parse_args()

    dist.init_process_group()  # gloo on CPUs, which --torch-backend runjob answers for
    torch.set_num_threads(1)
    torch.manual_seed(1)
    rank, size = dist.get_rank(), dist.get_world_size()
    training_set, test_set = load_data()
    sampler = DistributedSampler(training_set, num_replicas=size, rank=rank, seed=0)
    loader = DataLoader(training_set, batch_size=arguments.batch_size, sampler=sampler)
    model = DistributedDataParallel(make_model())
    optimizer = torch.optim.SGD(model.parameters(), lr=arguments.learning_rate, momentum=0.9)
    start = time.perf_counter()
    for epoch in range(arguments.epochs):
        sampler.set_epoch(epoch)
        for images, labels in loader:
            optimizer.zero_grad()
            functional.cross_entropy(model(images), labels).backward()
            optimizer.step()
    result = accuracy(model, test_set)
    if rank == 0:
        print(f"test accuracy {result:.4f} after {time.perf_counter() - start:.1f} s")
    dist.destroy_process_group()
    time.sleep(0.5)  # for PyTorch's Gloo: docs/ddp.md


if __name__ == "__main__":
    main()
