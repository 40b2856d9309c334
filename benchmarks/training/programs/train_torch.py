"""One rank of a training with PyTorch, which takes its steps in turns with others.

    train_torch.py LIBRARY MODEL SOCKET        LIBRARY: runjob, horovod, ddp, ddp-runjob, fsdp, fsdp-runjob, alone, paced
"""

from __future__ import annotations

import importlib
import os
import pathlib
import sys

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
    "runjob": lambda: training.with_horovod("runjob.torch"),
    "before": lambda: training.with_horovod("runjob.torch"),
    "horovod": lambda: training.with_horovod("horovod.torch"),
    "ddp": lambda: training.with_ddp("gloo"),
    "ddp-runjob": lambda: training.with_ddp("runjob"),
    "fsdp": lambda: training.with_fsdp("gloo"),
    "fsdp-runjob": lambda: training.with_fsdp("runjob"),
    "alone": alone,
    "paced": paced,
}


def main():
    library, model, path = sys.argv[1:]
    torch.set_num_threads(1)
    rank, wrap = LIBRARIES[library]()
    take_turns(path, rank, training.Training(networks.MODELS[model], wrap), f"PyTorch {torch.__version__}")


main()
