"""One rank of a training with PyTorch, which takes its steps in turns with others.

    train_torch.py LIBRARY MODEL SOCKET        LIBRARY: runjob, horovod, ddp, ddp-runjob, fsdp, fsdp-runjob, alone, paced
"""

from __future__ import annotations

import importlib
import os
import pathlib
import sys

import operation_loop
import torch
from turn_taking import take_turns

# Not the folder around it, in which lies a package `horovod` of ours.
sys.path.append(str(pathlib.Path(__file__).resolve().parents[3] / "python/runjob/benchmark"))
import networks  # noqa: E402
import training  # noqa: E402


def alone():
    """Without any communication: what would be if it cost nothing."""
    return int(os.environ.get("RUNJOB_RANK", "0")), lambda model, optimizer: (model, optimizer)


def paced():
    """Each step waits for all ranks: what would be if only the bytes of the gradients cost nothing."""
    hvd = importlib.import_module("runjob.torch")
    hvd.init()

    def wrap(model, optimizer):
        optimizer.register_step_pre_hook(lambda *_: hvd.barrier())
        return model, optimizer

    return hvd.rank(), wrap


LIBRARIES = {
    "ddp": lambda: training.with_ddp("gloo"),
    "ddp-runjob": lambda: training.with_ddp("runjob"),
    "fsdp": lambda: training.with_fsdp("gloo"),
    "fsdp-runjob": lambda: training.with_fsdp("runjob"),
    "alone": alone,
    "paced": paced,
}
#: Those with operations for gradients, by their modules.
MODULES = {"runjob": "runjob.torch", "before": "runjob.torch", "horovod": "horovod.torch"}
LOOPS = dict.fromkeys((operation_loop.IN_HOOKS, operation_loop.AFTER), (operation_loop.network, networks.images, 32))


def wrapper(library, model):
    """This process's rank, and what wraps the model and its optimizer."""
    if library not in MODULES:
        return LIBRARIES[library]()
    if model in LOOPS:
        return operation_loop.with_operations(MODULES[library], model)
    return training.with_horovod(MODULES[library])


def main():
    library, model, path = sys.argv[1:]
    torch.set_num_threads(1)
    rank, wrap = wrapper(library, model)
    take_turns(path, rank, training.Training({**networks.MODELS, **LOOPS}[model], wrap), f"PyTorch {torch.__version__}")


main()
