"""Runs a program over Gloo and over runjob, in the same processes, and compares what it computes."""

import functools
import hashlib
import itertools
import os
from datetime import timedelta

import torch
import torch.distributed as dist

import runjob.torch.distributed  # noqa: F401  # registers the backend with any PyTorch

_numbers = itertools.count()
#: If one of Gloo's threads drops the last reference to its group, it waits for its own end, and the process aborts.
_groups_of_gloo = []


@functools.cache
def _store():
    """One store for all groups that a process makes, one after the other. With a store for each, a rank that is early would
    find the addresses of the group before at the same port.
    """
    place = os.environ["MASTER_ADDR"], int(os.environ["MASTER_PORT"]), int(os.environ["WORLD_SIZE"])
    return dist.TCPStore(*place, os.environ["RANK"] == "0")


def begin(backend, **options):
    """init_process_group() of all ranks."""
    store = dist.PrefixStore(f"{next(_numbers)}/", _store())
    dist.init_process_group(backend, store=store, rank=int(os.environ["RANK"]), world_size=int(os.environ["WORLD_SIZE"]), **options)
    if backend == "gloo":
        _groups_of_gloo.append(dist.group.WORLD._get_backend(torch.device("cpu")))


def over(backend, program, *arguments, **options):
    """What `program` returns in a group of all ranks."""
    torch.manual_seed(7)
    begin(backend, **options)
    try:
        return program(*arguments)
    finally:
        dist.destroy_process_group()


def tensors_of(value):
    """The tensors in lists, tuples and dicts of them. Numbers and None are compared as tensors, too."""
    if isinstance(value, dict):
        return [tensor for key in sorted(value) for tensor in tensors_of(value[key])]
    if isinstance(value, (list, tuple)):
        return [tensor for each in value for tensor in tensors_of(each)]
    if isinstance(value, torch.Tensor):
        value = value.full_tensor() if hasattr(value, "full_tensor") else value
        return [value.detach().to_dense().clone()]
    return [torch.tensor(-1.0 if value is None else float(value))]


def digest(tensors):
    return hashlib.sha256(b"".join(_bits(tensor).numpy().tobytes() for tensor in tensors)).hexdigest()[:12]


def _bits(tensor):
    return tensor.contiguous().reshape(-1).view(torch.uint8)


def same_bits(one, other):
    return one.dtype == other.dtype and one.shape == other.shape and torch.equal(_bits(one), _bits(other))


def compared(program, *arguments):
    """True if the program's tensors have the same bits over both backends, and what identifies them."""

    def taken():
        return tensors_of(program(*arguments))

    gloo, ours = over("gloo", taken), over("runjob", taken, timeout=timedelta(seconds=60))
    assert len(gloo) == len(ours) > 0
    return all(same_bits(one, other) for one, other in zip(gloo, ours)), digest(ours)


def caught(run):
    """The text of the error of `run`."""
    try:
        run()
    except Exception as error:
        return f"{type(error).__name__}: {error}"
    return f"no error in rank {os.environ.get('RUNJOB_RANK')}"
