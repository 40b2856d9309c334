"""A rank that trains the convolutional network of examples/pytorch_digits.py while the job loses a rank, and gains one, again and again.

    torch_changes.py FOLDER CHANGES

Each time when the job has all of its ranks and has committed since, one of them is killed; another one comes in its place. After so many
generations it trains for six more epochs. Each rank writes the indices of each batch as torch_training.py does, and prints at the end the
accuracy on images that were not trained on and whether its parameters are rank 0's, bit for bit.
"""

import json
import os
import pathlib
import signal
import sys
import time

import torch
from sklearn.datasets import load_digits
from torch.nn import functional

import runjob.torch as hvd
from runjob._library import library

BATCH, RANKS, RATE, LAST_EPOCHS = 16, 3, 0.02, 6
TRAINED = 1440  # of 1797 images
folder, changes = pathlib.Path(sys.argv[1]), int(sys.argv[2])
number = os.environ["RUNJOB_PROCESS_NUMBER"]

hvd.init()
torch.set_num_threads(1)
torch.manual_seed(0)
digits = load_digits()
images, labels = torch.tensor(digits.images, dtype=torch.float32).unsqueeze(1) / 16, torch.tensor(digits.target)
order = torch.randperm(len(images), generator=torch.Generator().manual_seed(0))
images, labels = images[order], labels[order]
data = torch.utils.data.TensorDataset(images[:TRAINED], labels[:TRAINED], torch.arange(TRAINED))
model = torch.nn.Sequential(
    torch.nn.Conv2d(1, 16, 3, padding=1), torch.nn.ReLU(),
    torch.nn.Conv2d(16, 32, 3, padding=1), torch.nn.ReLU(), torch.nn.MaxPool2d(2),
    torch.nn.Flatten(), torch.nn.Linear(32 * 4 * 4, 64), torch.nn.ReLU(), torch.nn.Linear(64, 10),
)  # fmt: skip
optimizer = torch.optim.SGD(model.parameters(), lr=RATE * hvd.size(), momentum=0.9)
optimizer = hvd.DistributedOptimizer(optimizer, named_parameters=model.named_parameters())
sampler = hvd.elastic.ElasticSampler(data, seed=5)
loader = torch.utils.data.DataLoader(data, batch_size=BATCH, sampler=sampler)


def generation():
    return library().runjob_generation()


def on_reset():
    for group in optimizer.param_groups:
        group["lr"] = RATE * hvd.size()


@hvd.elastic.run
def train(state):
    log = open(folder / f"process.{number}", "a", buffering=1)  # noqa: SIM115  # until the process is killed
    commits = 0
    while state.epoch < state.last_epoch:
        for x, y, indices in loader:
            optimizer.zero_grad()
            functional.cross_entropy(model(x), y).backward()
            optimizer.step()
            sampler.record_batch(0, len(x))
            entry = {"epoch": state.epoch, "step": state.step, "generation": generation(), "rank": hvd.rank(), "size": hvd.size()}
            print(json.dumps({**entry, "indices": indices.tolist()}), file=log)
            state.step += 1
            if generation() < changes:
                state.last_epoch = state.epoch + LAST_EPOCHS
                time.sleep(0.01)  # so that epochs are few until the next rank has come
            state.commit()
            commits += 1
            victim = generation() // 2 % RANKS
            if generation() < changes and hvd.size() == RANKS and commits > 3 and hvd.rank() == victim:
                os.kill(os.getpid(), signal.SIGKILL)
        state.epoch += 1
        sampler.set_epoch(state.epoch)
        state.commit()


state = hvd.elastic.TorchState(model=model, optimizer=optimizer, sampler=sampler, epoch=0, last_epoch=LAST_EPOCHS, step=0)
state.register_reset_callbacks([on_reset])
train(state)
with torch.no_grad():
    accuracy = (model(images[TRAINED:]).argmax(dim=1) == labels[TRAINED:]).float().mean().item()
mine = torch.cat([value.flatten() for value in model.state_dict().values()])
is_equal = torch.equal(mine, hvd.broadcast(mine, root_rank=0))
print(f"generation {generation()}, size {hvd.size()}, equal {is_equal}, accuracy {accuracy:.4f}", flush=True)
