"""A rank of an elastic job in which the program itself raises an error, while gradients are on their way.

    torch_raising.py ERROR   a class of runjob.exceptions: rank 1 raises it, once

Each rank prints size, step, how often it has begun, and whether all ranks have the same parameters, bit for bit.
"""

import os
import sys

import torch

import horovod.torch as hvd
import runjob.exceptions

hvd.init()
torch.manual_seed(int(os.environ["RUNJOB_PROCESS_NUMBER"]))
model = torch.nn.Sequential(torch.nn.Linear(3, 4), torch.nn.Linear(4, 2))
optimizer = hvd.DistributedOptimizer(torch.optim.SGD(model.parameters(), lr=0.01), model.named_parameters())
begun = []


@hvd.elastic.run
def train(state):
    begun.append(state.step)
    while state.step < 12:
        optimizer.zero_grad()
        model(torch.full((2, 3), hvd.rank() + 1.0)).square().sum().backward()
        optimizer.step()
        state.step += 1
        if state.step % 2 == 0:
            state.commit()


def raise_once(gradient):
    """Between the gradients of two layers."""
    if state.step == 7 and len(begun) == 1 and hvd.rank() == 1:
        raise getattr(runjob.exceptions, sys.argv[1])("of the program")


state = hvd.elastic.TorchState(model, optimizer, step=0)
model[0].weight.register_hook(raise_once)
train(state)
flat = torch.cat([parameter.detach().flatten() for parameter in model.parameters()])
print(f"size {hvd.size()}, step {state.step}, begun {begun}, equal {torch.equal(flat, hvd.broadcast(flat, root_rank=0))}", flush=True)
