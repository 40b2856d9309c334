"""One rank of a library: --library gloo or runjob, the backend of torch.distributed, or a module with Horovod's interface, such as runjob.torch
and horovod.torch. Prints what rank 0 measured, as lines of JSON.
"""

import argparse
import gc
import json
import os
import pathlib
import sys

# Not the folder around it, in which lies a package `horovod` of ours.
sys.path.append(str(pathlib.Path(__file__).resolve().parents[3] / "python/runjob/benchmark"))
import libraries  # noqa: E402
import loop  # noqa: E402
import torch  # noqa: E402


def parse_arguments():
    parser = argparse.ArgumentParser()
    parser.add_argument("--library", required=True)
    parser.add_argument("--op", required=True)
    parser.add_argument("--dtype", required=True)
    parser.add_argument("--mode", choices=("blocking", "asynchronous", "future"), required=True)
    parser.add_argument("--bytes", type=numbers, required=True)
    parser.add_argument("--in-flight", type=numbers)
    parser.add_argument("--budget-ms", type=int, default=100)
    return parser.parse_args()


def numbers(text):
    return [int(word) for word in text.split(",")]


def measure(api, arguments):
    torch.set_num_threads(1)
    gc.disable()
    plan = loop.Plan(arguments.op, arguments.dtype, arguments.mode, arguments.budget_ms)
    lines = [{"library": api.library}]
    for nbytes, in_flight in zip(arguments.bytes, arguments.in_flight or [1] * len(arguments.bytes)):
        try:
            operations, times = loop.measure_size(api, plan, nbytes, in_flight)
            lines.append({"bytes": nbytes, "operations": operations, "times_us": [round(value, 3) for value in times]})
        except NotImplementedError as reason:
            lines.append({"bytes": nbytes, "skipped": str(reason)})
        gc.collect()
    if api.rank == 0:
        print("\n".join(json.dumps(line) for line in lines), flush=True)


def main():
    arguments = parse_arguments()
    is_distributed = arguments.library in ("gloo", "runjob")
    api = (libraries.TorchDistributed if is_distributed else libraries.HorovodInterface)(arguments.library)
    measure(api, arguments)
    api.close()
    if arguments.library == "gloo":
        os._exit(0)  # leaves out Python's end, in which PyTorch may abort (docs/ddp.md); the results are printed


if __name__ == "__main__":
    main()
