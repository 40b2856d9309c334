"""Checks of a rank that has a GPU and PyTorch: each one runs whatever happened to those before it."""

import os
import sys
import traceback

import torch

import runjob.torch as hvd

_checks = []


def check(function):
    """Adds a function to the checks of the program."""
    _checks.append(function)
    return function


def device():
    """This rank's GPU."""
    return torch.device("cuda", hvd.local_rank() % torch.cuda.device_count())


def begin():
    hvd.init(process_sets="dynamic")
    torch.cuda.set_device(device())


def run():
    """Runs the checks that the command line names, or all. The last line of a rank is `all N checks have passed`, or has the names of those
    that have failed. Ends the process.
    """
    begin()
    rank = hvd.rank()
    failed = []
    chosen = [each for each in _checks if not sys.argv[1:] or each.__name__ in sys.argv[1:]]
    for each in chosen:
        try:
            each()
            torch.cuda.synchronize()
            hvd.check()
            print(f"rank {rank}: {each.__name__}: passed", flush=True)
        except Exception:
            failed.append(each.__name__)
            print(f"rank {rank}: {each.__name__}: {traceback.format_exc()}", flush=True)
    on = torch.cuda.get_device_name(device())
    print(f"rank {rank} on {on}: " + (f"FAILED: {', '.join(failed)}" if failed else f"all {len(chosen)} checks have passed"), flush=True)
    hvd.shutdown()
    torch.cuda.synchronize()
    os._exit(1 if failed else 0)
