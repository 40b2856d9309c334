"""One rank of a job that trains a step, written for Horovod. Ends well only if all ranks have what one process would have."""

import sys

import torch

import horovod.torch as hvd


def model_and_optimizer():
    torch.manual_seed(1)
    model = torch.nn.Sequential(torch.nn.Linear(4, 8), torch.nn.Tanh(), torch.nn.Linear(8, 2)).double()
    return model, torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)


def train(model, optimizer, x, y):
    for _ in range(3):
        optimizer.zero_grad()
        torch.nn.functional.mse_loss(model(x), y).backward()
        optimizer.step()
    return [parameter.detach() for parameter in model.parameters()]


hvd.init()
torch.manual_seed(2)
x, y = torch.randn(6 * hvd.size(), 4).double(), torch.randn(6 * hvd.size(), 2).double()
expected = train(*model_and_optimizer(), x, y)

model, optimizer = model_and_optimizer()
optimizer = hvd.DistributedOptimizer(optimizer, named_parameters=model.named_parameters())
hvd.broadcast_parameters(model.state_dict(), root_rank=0)
hvd.broadcast_optimizer_state(optimizer, root_rank=0)
share = slice(hvd.rank(), None, hvd.size())
got = train(model, optimizer, x[share], y[share])

assert all(torch.allclose(a, b, rtol=1e-12) for a, b in zip(got, expected)), (got, expected)
version = ".".join(map(str, sys.version_info[:2]))
print(f"rank {hvd.rank()} of {hvd.size()}: Python {version}, PyTorch {torch.__version__.partition('+')[0]}, as in one process", flush=True)
hvd.shutdown()
