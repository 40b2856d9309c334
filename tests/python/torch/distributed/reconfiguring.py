"""Plain processes that train with DDP, lose one of them, and go on without it, in the same processes.

    reconfiguring.py PORT [RANK]      one of three; the store at PORT belongs to the test. Without RANK a rank of runjob
"""

import json
import os
import signal
import sys
from datetime import timedelta

import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel

import runjob.torch.distributed  # noqa: F401  # registers the backend with any PyTorch

LOST = 1
STEPS = 4


def meet(store, uuid, ranks, number):
    """The handles of these processes, in their order."""
    store.set(f"handle/{uuid}/{number}", dist._get_reconfigure_handle())
    return [store.get(f"handle/{uuid}/{each}").decode() for each in ranks]


def train(model, generator, first):
    optimizer = torch.optim.SGD(model.parameters(), 0.05)
    ddp = DistributedDataParallel(model)
    losses = []
    for step in range(first, first + STEPS):
        inputs = torch.randn(16, 4, generator=generator)
        optimizer.zero_grad()
        loss = torch.nn.functional.mse_loss(ddp(inputs), inputs.sum(dim=1, keepdim=True))
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    return losses


def error_of(call):
    try:
        call()
    except Exception as error:
        return f"{type(error).__name__}: {error}"
    return "no error"


def main():
    is_plain = len(sys.argv) > 2  # it then waits for its first members too
    port, number = int(sys.argv[1]), int(sys.argv[2] if is_plain else os.environ["RANK"])
    store = dist.TCPStore("127.0.0.1", port, is_master=False, timeout=timedelta(seconds=60))
    dist.init_process_group(
        "runjob", store=dist.PrefixStore("job", store), rank=number, world_size=3, timeout=timedelta(seconds=60), enable_reconfigure=is_plain
    )
    report = {"before": error_of(lambda: dist.all_reduce(torch.ones(1)))}
    if is_plain:
        dist._reconfigure(uuid=1, handles=meet(store, 1, [0, 1, 2], number)).wait()
    report["sizes"] = [dist.get_world_size()]
    torch.manual_seed(0)
    model, generator = torch.nn.Linear(4, 1), torch.Generator().manual_seed(number)
    report["losses"] = train(model, generator, 0)
    dist.barrier()
    if number == LOST:
        os.kill(os.getpid(), signal.SIGKILL)
    report["lost"] = error_of(lambda: dist.all_reduce(torch.ones(1)))
    report["stranger"] = error_of(lambda: dist._reconfigure(uuid=2, handles=["somebody"]))
    both = meet(store, 3, [0, 2], number)
    # One of three does not come: the change fails, and another one follows.
    report["absent"] = error_of(lambda: dist._reconfigure(uuid=3, handles=[*both, "lost"], timeout=timedelta(seconds=1)))
    report["between"] = error_of(lambda: dist.all_reduce(torch.ones(1)))
    dist._reconfigure(uuid=4, handles=both).wait()
    report["sizes"].append(dist.get_world_size())
    report["rank"] = dist.get_rank()
    report["losses"] += train(model, generator, STEPS)
    report["weights"] = model.weight.flatten().tolist()
    gathered = [None] * 2
    dist.all_gather_object(gathered, number)
    report["gathered"] = gathered
    dist.destroy_process_group()
    os.write(1, (json.dumps(report) + "\n").encode())


if __name__ == "__main__":
    main()
