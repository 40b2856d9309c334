"""Four replicas of torchft that train the network of train_digits.py until a file exists, and print when they stood still: train_torchft.py STOP.

The first process runs torchft's lighthouse, with the settings of its README, and starts the replicas: this program with two more words.
"""

import datetime
import os
import pathlib
import subprocess
import sys
import time

import torch
import torch.distributed
import torchft
from sklearn.datasets import load_digits
from torch.nn import functional
from torchft.coordination import LighthouseServer

BATCH, REPLICAS = 16, 4
STOP = pathlib.Path(sys.argv[1])


def lead():
    lighthouse = LighthouseServer(bind="[::]:0", min_replicas=1, quorum_tick_ms=100, join_timeout_ms=10000)
    replicas = [
        subprocess.Popen([sys.executable, __file__, STOP, str(index), lighthouse.address()], env={**os.environ, "RANK": str(index)})
        for index in range(REPLICAS)
    ]
    for replica in replicas:
        replica.wait()
    lighthouse.shutdown()


def train(index, lighthouse):
    torch.set_num_threads(1)
    torch.manual_seed(0)
    digits = load_digits()
    images, labels = torch.tensor(digits.images, dtype=torch.float32).unsqueeze(1) / 16, torch.tensor(digits.target)
    model = torch.nn.Sequential(
        torch.nn.Conv2d(1, 16, 3, padding=1), torch.nn.ReLU(),
        torch.nn.Conv2d(16, 32, 3, padding=1), torch.nn.ReLU(), torch.nn.MaxPool2d(2),
        torch.nn.Flatten(), torch.nn.Linear(32 * 4 * 4, 64), torch.nn.ReLU(), torch.nn.Linear(64, 10),
    )  # fmt: skip
    inner = torch.optim.SGD(model.parameters(), lr=0.05, momentum=0.9)

    def load(saved):
        model.load_state_dict(saved["model"])
        inner.load_state_dict(saved["optimizer"])

    store = torch.distributed.TCPStore("localhost", 0, is_master=True, wait_for_workers=False)
    manager = torchft.Manager(
        pg=torchft.ProcessGroupGloo(timeout=datetime.timedelta(seconds=60)), min_replica_size=1, load_state_dict=load,
        state_dict=lambda: {"model": model.state_dict(), "optimizer": inner.state_dict()}, replica_id=f"replica{index}_",
        store_addr="localhost", store_port=store.port, rank=0, world_size=1, lighthouse_addr=lighthouse, hostname="localhost",
    )  # fmt: skip
    trained = torchft.DistributedDataParallel(manager, model)
    optimizer = torchft.Optimizer(manager, inner)
    generator = torch.Generator().manual_seed(index)
    last, size, quorum = 0.0, 0, 0
    while not STOP.exists():
        chosen = torch.randint(len(images), (BATCH,), generator=generator)
        optimizer.zero_grad()  # begins the step's quorum
        functional.cross_entropy(trained(images[chosen]), labels[chosen]).backward()
        before = manager.current_step()
        optimizer.step()
        if manager.current_step() == before:
            continue  # the step has failed
        if manager.num_participants() != size:
            size, quorum = manager.num_participants(), manager.current_step()
            print(f"generation {quorum}: rank {index} of {size}, process {index}: stood from {last:.6f} to {time.monotonic():.6f}", flush=True)
        last = time.monotonic()
    os._exit(0)  # the others' last step fails, which is of no interest


if len(sys.argv) == 2:
    lead()
else:
    train(int(sys.argv[2]), sys.argv[3])
