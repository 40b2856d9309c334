"""Trains on scikit-learn's handwritten digits with FSDP, and continues from a checkpoint of torch.distributed.checkpoint.
Nothing here is of runjob.

    runjob -np 2 --torch-backend runjob python examples/pytorch_digits_fsdp.py --checkpoint FOLDER --epochs 5
    runjob -np 4 --torch-backend runjob python examples/pytorch_digits_fsdp.py --checkpoint FOLDER --epochs 10

Each rank has a part of the parameters and of the optimizer, and writes that part after each epoch. The second command
continues after the fifth epoch, with another number of ranks. Rank 0 prints the accuracy on images that were not trained
on.
"""

import argparse
import pathlib
import time

import torch
import torch.distributed as dist
import torch.distributed.checkpoint as checkpoint
from pytorch_digits_ddp import accuracy, load_data
from torch import nn
from torch.distributed.checkpoint.state_dict import get_state_dict, set_state_dict
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.fsdp import fully_shard
from torch.nn import functional
from torch.utils.data import DataLoader
from torch.utils.data.distributed import DistributedSampler


class Progress:
    """What a checkpoint holds: the model, its optimizer and the number of epochs."""

    def __init__(self, model, optimizer):
        self.model, self.optimizer, self.epochs = model, optimizer, 0

    def state_dict(self):
        model, optimizer = get_state_dict(self.model, self.optimizer)
        return {"model": model, "optimizer": optimizer, "epochs": torch.tensor(self.epochs)}

    def load_state_dict(self, state):
        set_state_dict(self.model, self.optimizer, model_state_dict=state["model"], optim_state_dict=state["optimizer"])
        self.epochs = int(state["epochs"])


def make_model(size):
    """A model whose layers are divided among the ranks one by one."""
    model = nn.Sequential(nn.Flatten(), nn.Linear(64, 128), nn.ReLU(), nn.Linear(128, 64), nn.ReLU(), nn.Linear(64, 10))
    mesh = init_device_mesh("cpu", (size,))
    for layer in model:
        if isinstance(layer, nn.Linear):
            fully_shard(layer, mesh=mesh)
    return fully_shard(model, mesh=mesh)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--epochs", type=int, default=10, help="of all runs together")
    parser.add_argument("--batch-size", type=int, default=32, help="images of all ranks in a step")
    parser.add_argument("--learning-rate", type=float, default=0.002)
    parser.add_argument("--checkpoint", type=pathlib.Path, help="folder that all hosts share")
    arguments = parser.parse_args()

    dist.init_process_group("gloo")  # which --torch-backend runjob answers for
    torch.set_num_threads(1)
    torch.manual_seed(1)
    rank, size = dist.get_rank(), dist.get_world_size()
    say = print if rank == 0 else lambda *words: None
    training_set, test_set = load_data()
    sampler = DistributedSampler(training_set, num_replicas=size, rank=rank, seed=0)
    loader = DataLoader(training_set, batch_size=max(1, arguments.batch_size // size), sampler=sampler)
    model = make_model(size)
    optimizer = torch.optim.Adam(model.parameters(), lr=arguments.learning_rate)
    progress = Progress(model, optimizer)
    if arguments.checkpoint and (arguments.checkpoint / ".metadata").exists():
        checkpoint.load({"progress": progress}, checkpoint_id=arguments.checkpoint)
    say(f"{size} ranks, beginning after epoch {progress.epochs}, test accuracy {accuracy(model, test_set):.4f}")
    while progress.epochs < arguments.epochs:
        sampler.set_epoch(progress.epochs)
        for images, labels in loader:
            optimizer.zero_grad()
            functional.cross_entropy(model(images), labels).backward()
            optimizer.step()
        progress.epochs += 1
        if arguments.checkpoint:
            checkpoint.save({"progress": progress}, checkpoint_id=arguments.checkpoint)
    say(f"test accuracy {accuracy(model, test_set):.4f} after epoch {progress.epochs}")
    dist.destroy_process_group()
    time.sleep(0.5)  # for PyTorch's Gloo: docs/ddp.md


if __name__ == "__main__":
    main()
