"""A rank of an elastic job whose state is a class of the program's own, and that commits by check_host_updates() alone.

It trains until process 1 was lost and replaced, and 30 steps are done. At the end it prints whether all ranks have the same parameters, bit
for bit, and the same values of the state's own part.
"""

import os
import signal
import time

import torch

import horovod.torch as hvd
from horovod.torch.elastic.state import TorchState

hvd.init()
torch.manual_seed(int(os.environ["RUNJOB_PROCESS_NUMBER"]))
model = torch.nn.Linear(5, 3)
optimizer = hvd.DistributedOptimizer(torch.optim.Adam(model.parameters(), lr=0.01), model.named_parameters())
calls = {"save": 0, "restore": 0, "sync": 0}


class Averaged(TorchState):
    """Keeps a running average of the parameters, which it synchronizes itself."""

    def __init__(self, **kwargs):
        self.average = torch.zeros(18)
        self.saved = self.average.clone()
        super().__init__(**kwargs)

    def save(self):
        super().save()
        calls["save"] += 1
        self.saved = self.average.clone()

    def restore(self):
        super().restore()
        calls["restore"] += 1
        self.average = self.saved.clone()

    def sync(self):
        super().sync()
        calls["sync"] += 1
        self.average = hvd.broadcast(self.average, root_rank=0)


def parameters():
    return torch.cat([parameter.detach().flatten() for parameter in model.parameters()])


@hvd.elastic.run
def train(state):
    while state.step < 30:
        if state.step == 7 and os.environ["RUNJOB_PROCESS_NUMBER"] == "1":
            os.kill(os.getpid(), signal.SIGKILL)
        optimizer.zero_grad()
        model(torch.full((2, 5), hvd.rank() + 1.0)).square().sum().backward()
        optimizer.step()
        state.average = 0.9 * state.average + 0.1 * parameters()
        if state.step < 29 or hvd.size() == 3:
            state.step += 1
        time.sleep(0.01)
        state.check_host_updates()
        if state.step == 6:
            state.commit()


state = Averaged(model=model, optimizer=optimizer, step=0)
train(state)
moments = torch.cat([value.flatten() for one in optimizer.state.values() for value in one.values()])
everything = torch.cat([parameters(), state.average, moments])
is_equal = torch.equal(everything, hvd.broadcast(everything, root_rank=0))
assert torch.equal(state.saved[:0], state.average[:0]) and calls["sync"] >= 1
print(f"size {hvd.size()}, step {state.step}, equal {is_equal}, moments {len(moments)}", flush=True)
