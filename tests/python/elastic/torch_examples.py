"""Ranks that train in the idioms of Horovod's elastic examples for PyTorch; process 1 kills itself at its tenth step.

    torch_examples.py batches    the state has epoch and batch; what is left of an epoch is counted in batches
    torch_examples.py samples    the state has the sampler; it is committed, or hosts are checked, before the batch is processed

Each rank prints the size, how many samples the kept steps had on all ranks in each epoch, and whether all ranks have the same parameters.
"""

import os
import signal
import sys

import torch
import torch.nn.functional as F
import torch.optim as optim
import torch.utils.data.distributed

import horovod.torch as hvd

EPOCHS, BATCH = 3, 4
steps = 0

hvd.init()
torch.manual_seed(42)
torch.set_num_threads(1)
train_dataset = torch.utils.data.TensorDataset(torch.randn(90, 5), torch.randint(3, (90,)))
model = torch.nn.Sequential(torch.nn.Linear(5, 8), torch.nn.ReLU(), torch.nn.Dropout(0.1), torch.nn.Linear(8, 3))
optimizer = optim.SGD(model.parameters(), lr=0.01 * hvd.size(), momentum=0.5)


def fail_once():
    global steps
    steps += 1
    if steps == 10 and os.environ["RUNJOB_PROCESS_NUMBER"] == "1":
        os.kill(os.getpid(), signal.SIGKILL)


def step(state, data, target):
    fail_once()
    state.optimizer.zero_grad()
    loss = F.cross_entropy(state.model(data), target)
    loss.backward()
    state.optimizer.step()
    state.counts[state.epoch] += hvd.size() * len(data)


@hvd.elastic.run
def train_batches(state):
    for state.epoch in range(state.epoch, EPOCHS):
        state.model.train()
        train_sampler.set_epoch(state.epoch)
        steps_remaining = len(train_loader) - state.batch
        for state.batch, (data, target) in enumerate(train_loader):
            if state.batch >= steps_remaining:
                break
            step(state, data, target)
            state.commit()
        state.batch = 0


@hvd.elastic.run
def full_train(state):
    while state.epoch < EPOCHS:
        state.model.train()
        batch_offset = state.batch
        for batch_idx, (data, target) in enumerate(train_loader):
            state.batch = batch_offset + batch_idx
            if state.batch % 2 == 0:
                state.commit()
            else:
                state.check_host_updates()
            step(state, data, target)
            state.train_sampler.record_batch(state.batch, BATCH)
        state.epoch += 1
        state.batch = 0
        state.train_sampler.set_epoch(state.epoch)
        state.commit()


def on_state_reset():
    for param_group in optimizer.param_groups:
        param_group["lr"] = 0.01 * hvd.size()


if sys.argv[1] == "batches":
    train_sampler = torch.utils.data.distributed.DistributedSampler(train_dataset, num_replicas=hvd.size(), rank=hvd.rank())
else:
    train_sampler = hvd.elastic.ElasticSampler(train_dataset)
train_loader = torch.utils.data.DataLoader(train_dataset, batch_size=BATCH, sampler=train_sampler)
optimizer = hvd.DistributedOptimizer(optimizer, named_parameters=model.named_parameters(), compression=hvd.Compression.none, op=hvd.Average)

if sys.argv[1] == "batches":
    state = hvd.elastic.TorchState(model, optimizer, epoch=0, batch=0, counts=[0] * EPOCHS)
    state.register_reset_callbacks([on_state_reset])
    train_batches(state)
else:
    state = hvd.elastic.TorchState(
        model=model, optimizer=optimizer, train_sampler=train_sampler, epoch=0, batch=0, counts=[0] * EPOCHS
    )
    state.register_reset_callbacks([on_state_reset])
    full_train(state)

flat = torch.cat([parameter.detach().flatten() for parameter in model.parameters()])
is_equal = torch.equal(flat, hvd.broadcast(flat, root_rank=0))
average = hvd.allreduce(torch.tensor(float(hvd.rank())), name="avg_rank").item()
print(f"size {hvd.size()}, counts {state.counts}, equal {is_equal}, average {average}", flush=True)
