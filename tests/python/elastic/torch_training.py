"""A rank of an elastic job that trains a model in the idiom of Horovod's PyTorch scripts, with ranks that are lost and replaced.

    torch_training.py FOLDER GENERATION NUMBER:STEPS...   the process with this number is killed when it has done so many steps itself

With TRAINING_MARK=STEPS each process prints "mark" when it has done so many steps itself. It trains for three epochs, and for one more after the one in which the job has come to GENERATION.

Each rank writes the indices of each batch, with generation, step and rank, into a file of its own in FOLDER, and at the end whether
its parameters are those of rank 0, bit for bit.
"""

import json
import os
import pathlib
import signal
import sys
import time

import torch
import torch.nn.functional as F

import horovod.torch as hvd
from runjob._library import library

SAMPLES, BATCH = 103, 4
NUMBER = os.environ["RUNJOB_PROCESS_NUMBER"]

folder, last_generation = pathlib.Path(sys.argv[1]), int(sys.argv[2])
losses = {int(steps) for number, steps in (each.split(":") for each in sys.argv[3:]) if number == NUMBER}
mark = int(os.environ.get("TRAINING_MARK", "-1"))
own_steps = 0

hvd.init()
torch.manual_seed(hvd.rank() + 10 * int(NUMBER))
images = torch.randn(SAMPLES, 6, generator=torch.Generator().manual_seed(0))
data = torch.utils.data.TensorDataset(images, (images.sum(dim=1) > 0).long(), torch.arange(SAMPLES))
model = torch.nn.Sequential(torch.nn.Linear(6, 8), torch.nn.BatchNorm1d(8), torch.nn.ReLU(), torch.nn.Linear(8, 2))
model[1].eval()  # the last batch of an epoch may have one sample
optimizer = torch.optim.SGD(model.parameters(), lr=0.01 * hvd.size(), momentum=0.9)
optimizer = hvd.DistributedOptimizer(optimizer, named_parameters=model.named_parameters())
sampler = hvd.elastic.ElasticSampler(data, seed=5)
loader = torch.utils.data.DataLoader(data, batch_size=BATCH, sampler=sampler)


def log(**entry):
    with open(folder / f"process.{NUMBER}", "a") as file:
        print(json.dumps(entry), file=file)


def generation():
    return library().runjob_generation()


def on_reset():
    for group in optimizer.param_groups:
        group["lr"] = 0.01 * hvd.size()


@hvd.elastic.run
def train(state):
    global own_steps
    while state.epoch < max(3, state.last_epoch):
        for images, labels, indices in loader:
            if own_steps in losses:
                os.kill(os.getpid(), signal.SIGKILL)
            optimizer.zero_grad()
            F.cross_entropy(model(images), labels).backward()
            optimizer.step()
            state.sampler.record_batch(0, len(images))
            assert optimizer.param_groups[0]["lr"] == 0.01 * hvd.size()
            log(job=os.environ["RUNJOB_JOB_ID"], epoch=state.epoch, step=state.step, generation=generation(), rank=hvd.rank(), size=hvd.size(), indices=indices.tolist())
            time.sleep(0.01)  # so that replacements come while there is something to do
            state.step += 1
            own_steps += 1
            if own_steps == mark:
                print("mark", flush=True)
            if generation() < last_generation:
                state.last_epoch = state.epoch + 2
            state.commit()
        state.epoch += 1
        state.sampler.set_epoch(state.epoch)
        state.commit()


state = hvd.elastic.TorchState(model=model, optimizer=optimizer, sampler=sampler, epoch=0, last_epoch=0, step=0)
state.register_reset_callbacks([on_reset])
train(state)
mine = torch.cat([value.flatten().double() for value in model.state_dict().values()])
is_equal = torch.equal(mine, hvd.broadcast(mine, root_rank=0))
print(f"size {hvd.size()}, equal {is_equal}", flush=True)
