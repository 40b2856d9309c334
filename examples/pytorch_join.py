"""Trains on data that differ in number from rank to rank, without leaving any of them out: join().

    runjob -np 2 python examples/pytorch_join.py

A rank that is ready with its images calls join() and takes part in the other ranks' steps with gradients of zero, until they are ready
too. Without join() the other ranks would wait for it for ever.
"""

import torch
from sklearn.datasets import load_digits
from torch import nn
from torch.nn import functional

import runjob.torch as hvd

EPOCHS = 6
BATCH = 32


def my_images():
    """Rank 1 has twice as many images as rank 0, rank 2 three times as many, and so on. 297 images are left for testing."""
    digits = load_digits()
    order = torch.randperm(len(digits.target), generator=torch.Generator().manual_seed(0))
    images = torch.tensor(digits.images, dtype=torch.float32).flatten(1)[order] / 16
    labels = torch.tensor(digits.target)[order]
    shares = torch.arange(1, hvd.size() + 1)
    ends = 1500 * shares.cumsum(0) // shares.sum()
    begin, end = (ends[hvd.rank() - 1] if hvd.rank() else 0), ends[hvd.rank()]
    return images[begin:end], labels[begin:end], images[1500:], labels[1500:]


def main():
    hvd.init()
    torch.set_num_threads(1)
    torch.manual_seed(1)
    images, labels, test_images, test_labels = my_images()

    model = nn.Sequential(nn.Linear(64, 64), nn.ReLU(), nn.Linear(64, 10))
    optimizer = torch.optim.Adam(model.parameters(), lr=0.003)
    optimizer = hvd.DistributedOptimizer(optimizer, named_parameters=model.named_parameters())

    last = 0  # the rank that has the current model
    for epoch in range(1, EPOCHS + 1):
        # A rank that has joined makes no steps of its own: it gets the model from one that did.
        hvd.broadcast_parameters(model.state_dict(), root_rank=last)
        hvd.broadcast_optimizer_state(optimizer, root_rank=last)
        steps = 0
        for batch in torch.randperm(len(images)).split(BATCH):
            optimizer.zero_grad()
            functional.cross_entropy(model(images[batch]), labels[batch]).backward()
            optimizer.step()
            steps += 1
        last = hvd.join()
        if epoch == 1:
            print(f"rank {hvd.rank()}: {steps} steps on {len(images)} images")
        if hvd.rank() == last:
            accuracy = (model(test_images).argmax(dim=1) == test_labels).float().mean()
            print(f"epoch {epoch}: rank {last} was the last to join, test accuracy {accuracy:.4f}")


if __name__ == "__main__":
    main()
