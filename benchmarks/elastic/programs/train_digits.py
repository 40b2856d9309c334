"""A rank that trains a small convolutional network on handwritten digits until a file exists, and prints when it stood still.

    train_digits.py runjob|horovod|torchrun|torchft STOP

With torchrun, which keeps no process, rank 0 writes a checkpoint in memory after each step; the others commit after each step. With torchft
a rank sends its live state to the ranks that come.
"""

import os
import pathlib
import sys
import time

import torch
from sklearn.datasets import load_digits
from torch.nn import functional

BATCH = 16
WITH, STOP = sys.argv[1], pathlib.Path(sys.argv[2])

torch.set_num_threads(1)
torch.manual_seed(0)
digits = load_digits()
images, labels = torch.tensor(digits.images, dtype=torch.float32).unsqueeze(1) / 16, torch.tensor(digits.target)
model = torch.nn.Sequential(
    torch.nn.Conv2d(1, 16, 3, padding=1), torch.nn.ReLU(),
    torch.nn.Conv2d(16, 32, 3, padding=1), torch.nn.ReLU(), torch.nn.MaxPool2d(2),
    torch.nn.Flatten(), torch.nn.Linear(32 * 4 * 4, 64), torch.nn.ReLU(), torch.nn.Linear(64, 10),
)  # fmt: skip
optimizer = torch.optim.SGD(model.parameters(), lr=0.05, momentum=0.9)
last = 0.0  # when the last step ended


def train_step(trained, generator):
    chosen = torch.randint(len(images), (BATCH,), generator=generator)
    optimizer.zero_grad()
    functional.cross_entropy(trained(images[chosen]), labels[chosen]).backward()
    optimizer.step()


def report(generation, rank, size, is_first):
    """Called after each step."""
    global last
    if is_first:
        number = os.environ.get("RUNJOB_PROCESS_NUMBER", os.getpid())
        line = f"generation {generation}: rank {rank} of {size}, process {number}: stood from {last:.6f} to {time.monotonic():.6f}\n"
        os.write(1, line.encode())  # at once: under torchrun, print() writes the end of the line by itself
    last = time.monotonic()


def train_elastic(hvd):
    """With runjob or Horovod."""
    global optimizer
    hvd.init()
    optimizer = hvd.DistributedOptimizer(optimizer, named_parameters=model.named_parameters())
    state = hvd.elastic.TorchState(model=model, optimizer=optimizer, step=0, begun=0, stop=False)

    @hvd.elastic.run
    def train(state):
        state.begun += 1
        generator = torch.Generator().manual_seed(state.step * 100 + hvd.rank())
        is_first = True
        while not state.stop:
            train_step(model, generator)
            report(state.begun, hvd.rank(), hvd.size(), is_first)
            is_first = False
            state.step += 1
            state.stop = bool(hvd.allreduce(torch.tensor(float(STOP.exists())), name="stop") > 0)
            state.commit()

    train(state)


def train_restarted():
    """With torchrun, which starts all processes again."""
    torch.distributed.init_process_group("gloo")
    rank, size = torch.distributed.get_rank(), torch.distributed.get_world_size()
    checkpoint = pathlib.Path("/dev/shm") / STOP.name
    if checkpoint.exists():
        saved = torch.load(checkpoint)
        model.load_state_dict(saved["model"])
        optimizer.load_state_dict(saved["optimizer"])
    trained = torch.nn.parallel.DistributedDataParallel(model)
    generator = torch.Generator().manual_seed(rank)
    is_first, stop = True, torch.zeros(1)
    while not stop:
        train_step(trained, generator)
        report(os.environ["TORCHELASTIC_RESTART_COUNT"], rank, size, is_first)
        is_first = False
        stop = torch.tensor([float(STOP.exists())])
        torch.distributed.all_reduce(stop)
        if rank == 0:
            torch.save({"model": model.state_dict(), "optimizer": optimizer.state_dict()}, f"{checkpoint}.new")
            os.replace(f"{checkpoint}.new", checkpoint)
    if rank == 0:
        checkpoint.unlink()


def train_replicas():
    """With torchft: each rank is a replica group, and a step in which another one is lost is left out."""
    import torchft

    def state():
        return {"model": model.state_dict(), "optimizer": optimizer.state_dict()}

    def load(loaded):
        model.load_state_dict(loaded["model"])
        optimizer.load_state_dict(loaded["optimizer"])

    group = os.environ["REPLICA_GROUP_ID"]
    manager = torchft.Manager(torchft.ProcessGroupGloo(), load, state, min_replica_size=2, replica_id=f"group_{group}", hostname="127.0.0.1")
    trained = torchft.DistributedDataParallel(manager, model)
    managed = torchft.Optimizer(manager, optimizer)
    generator = torch.Generator().manual_seed(int(group))
    quorum = None
    while not STOP.exists():
        committed = manager.current_step()
        chosen = torch.randint(len(images), (BATCH,), generator=generator)
        managed.zero_grad()
        functional.cross_entropy(trained(images[chosen]), labels[chosen]).backward()
        managed.step()
        rank, size = manager.participating_rank(), manager.num_participants()
        if manager.current_step() == committed or rank is None:
            continue
        before, quorum = quorum, (manager._quorum_id, size)
        report(quorum[0] * 1000 + size, rank, size, quorum != before)
    os._exit(0)  # the others may wait for this one, and the measurement is over


if WITH == "runjob":
    import runjob.torch

    train_elastic(runjob.torch)
elif WITH == "horovod":
    import horovod.torch

    train_elastic(horovod.torch)
elif WITH == "torchft":
    train_replicas()
else:
    train_restarted()
