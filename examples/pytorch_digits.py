"""Trains a small convolutional network on scikit-learn's handwritten digits (1797 images of 8 x 8 pixels).

    python examples/pytorch_digits.py                    one process
    runjob -np 2 python examples/pytorch_digits.py       two

The ten numbered steps are all that makes the program run on many processes. Rank 0 prints the accuracy on images that
were not trained on.
"""

import argparse
import time

import torch
from sklearn.datasets import load_digits
from sklearn.model_selection import train_test_split
from torch import nn
from torch.nn import functional
from torch.utils.data import DataLoader, TensorDataset
from torch.utils.data.distributed import DistributedSampler

import runjob.torch as hvd


def parse_arguments():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--epochs", type=int, default=12)
    parser.add_argument("--batch-size", type=int, default=32, help="images per rank and step")
    parser.add_argument("--learning-rate", type=float, default=0.05, help="of one rank")
    parser.add_argument("--warmup-epochs", type=int, default=1)
    parser.add_argument("--checkpoint", help="file to save the trained model in")
    return parser.parse_args()


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
        nn.Flatten(), nn.Dropout(0.25), nn.Linear(32 * 4 * 4, 64), nn.ReLU(), nn.Linear(64, 10),
    )  # fmt: skip


def factor(step, warmup, steps, size):
    """What the scaled learning rate is multiplied with: from 1 / size to 1 during the warm-up, then down to 0."""
    if step < warmup:
        return 1 / size + (1 - 1 / size) * step / warmup
    return (steps - step) / max(1, steps - warmup)  # the scheduler also asks after the last step


def train(model, loader, optimizer, scheduler):
    model.train()
    for images, labels in loader:
        optimizer.zero_grad()
        functional.cross_entropy(model(images), labels).backward()
        optimizer.step()
        scheduler.step()


def count_right(model, loader):
    model.eval()
    with torch.no_grad():
        return sum((model(images).argmax(dim=1) == labels).sum() for images, labels in loader)


def main():
    arguments = parse_arguments()

    # 1. Join the job.
    hvd.init()

    # 2. Give each rank its share of the machine: a GPU where there are GPUs, here one core, which so small a model fills.
    torch.set_num_threads(1)
    torch.manual_seed(1 + hvd.rank())

    # 3. Let one rank do the talking.
    say = print if hvd.rank() == 0 else lambda *words: None

    # 4. Give each rank a share of the images: an epoch has fewer steps on more ranks.
    training_set, test_set = load_data()
    sampler = DistributedSampler(training_set, num_replicas=hvd.size(), rank=hvd.rank(), seed=0)
    loader = DataLoader(training_set, batch_size=arguments.batch_size, sampler=sampler)
    share = range(hvd.rank(), len(test_set), hvd.size())
    test_loader = DataLoader(torch.utils.data.Subset(test_set, share), batch_size=256)

    # 5. Scale the learning rate: a step sees size() times as many images.
    model = make_model()
    optimizer = torch.optim.SGD(model.parameters(), lr=arguments.learning_rate * hvd.size(), momentum=0.9)

    # 6. Average the gradients over the ranks.
    optimizer = hvd.DistributedOptimizer(optimizer, named_parameters=model.named_parameters())

    # 7. Begin with the learning rate of one rank and warm up to the scaled one; after that it falls to zero.
    warmup, steps = arguments.warmup_epochs * len(loader), arguments.epochs * len(loader)
    scheduler = torch.optim.lr_scheduler.LambdaLR(optimizer, lambda step: factor(step, warmup, steps, hvd.size()))

    # 8. Start all ranks from the same model and optimizer.
    hvd.broadcast_parameters(model.state_dict(), root_rank=0)
    hvd.broadcast_optimizer_state(optimizer, root_rank=0)

    say(f"training on {len(training_set)} images with {hvd.size()} ranks")
    start = time.perf_counter()
    for epoch in range(arguments.epochs):
        sampler.set_epoch(epoch)
        train(model, loader, optimizer, scheduler)
        # 9. Put the ranks' results together.
        right = hvd.allreduce(count_right(model, test_loader), op=hvd.Sum, name="right")
        accuracy = right.item() / len(test_set)
        say(f"epoch {epoch + 1:2}: test accuracy {accuracy:.4f}")
    say(f"test accuracy {accuracy:.4f} after {time.perf_counter() - start:.1f} s")

    # 10. Save the model on one rank only.
    if arguments.checkpoint and hvd.rank() == 0:
        torch.save(model.state_dict(), arguments.checkpoint)


if __name__ == "__main__":
    main()
