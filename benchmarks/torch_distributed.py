"""torch.distributed over runjob and over Gloo, and runjob.torch, in the same processes, which take turns.

    runjob -np 2 python benchmarks/torch_distributed.py
    runjob -H s1:1,s2:1 python benchmarks/torch_distributed.py

Rank 0 prints tables: microseconds of collectives, as a synchronous call, one waited for (async), and one waited for by its future;
milliseconds of training steps. Figures are medians of the turns, ratios those of turns that belong together.
"""

import argparse
import os

import torch
import torch.distributed as dist

from runjob.benchmark import figures, libraries, machine, measurement, networks, report, training
from runjob.benchmark.loop import Plan, measure_size

OPERATIONS = ("allreduce", "allgather", "reducescatter", "alltoall", "sendrecv")
OVER_RUNJOB, OVER_GLOO, OWN = "torch.distributed over runjob", "over Gloo", "runjob.torch"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--sizes", type=figures.sizes, default=figures.sizes("4,64K,4M,64M"), help="bytes (default: 4,64K,4M,64M)")
    parser.add_argument("--networks", default="mlp,small-layers,resnet18", help="or none (default: mlp,small-layers,resnet18)")
    parser.add_argument("--turns", type=int, default=7, help="of each (default: 7)")
    parser.add_argument("--budget-ms", type=float, default=50, help="of a size in one turn (default: 50)")
    parser.add_argument("--seconds", type=float, default=30, help="of a network (default: 30)")
    arguments = parser.parse_args()
    torch.set_num_threads(1)
    apis = {OVER_RUNJOB: libraries.TorchDistributed("runjob"), OVER_GLOO: libraries.TorchDistributed("gloo"), OWN: libraries.HorovodInterface("runjob.torch")}
    rows = [
        ([operation + how, figures.size_text(nbytes)], measure(apis, Plan(operation, mode=mode, budget_ms=arguments.budget_ms), nbytes, arguments.turns))
        for operation in OPERATIONS
        for mode, how in modes(operation)
        for nbytes in arguments.sizes
    ]
    tables = [report.table(["operation", "bytes"], [row for row in rows if row[1]], "us")]
    for name in () if arguments.networks == "none" else arguments.networks.split(","):
        tables.append(train(name, arguments, apis[OVER_GLOO].of_rank_0))
    if dist.get_rank() == 0:
        facts = machine.facts()
        head = f"{dist.get_world_size()} ranks, {facts['cpu']}, {facts['cores']} cores, load {facts['load']}, {arguments.turns} turns"
        print("\n\n".join([head, *tables]), flush=True)
    apis[OVER_GLOO].barrier()
    os._exit(0)  # leaves out Python's end, in which PyTorch's Gloo may abort the process (docs/ddp.md)


def modes(operation: str) -> list[tuple[str, str]]:
    waited = [("asynchronous", ", async"), ("future", ", future")] if operation == "allreduce" else []
    return [("blocking", ""), *waited]


def measure(apis: dict, plan: Plan, nbytes: int, turns: int) -> dict[str, list[float]]:
    """{library: microseconds in each turn} of those that have the operation."""
    results: dict[str, list[float]] = {name: [] for name in apis}
    for name in measurement.alternating(list(apis), turns):
        if name not in results:
            continue
        try:
            operations, times = measure_size(apis[name], plan, nbytes, checks=not results[name])
            results[name].append(sorted(times)[len(times) // 2] / operations)
        except NotImplementedError:
            del results[name]
    return results if OVER_RUNJOB in results else {}


def train(name: str, arguments: argparse.Namespace, of_rank_0) -> str:
    """The table of one network."""
    wraps = {"DDP over runjob": training.with_ddp("runjob"), "DDP over Gloo": training.with_ddp("gloo"), "DistributedOptimizer": training.with_horovod("runjob.torch")}
    tables = [one_training(name, wraps, arguments, of_rank_0)]
    if name == "mlp":
        fsdp = {"FSDP over runjob": training.with_fsdp("runjob"), "FSDP over Gloo": training.with_fsdp("gloo")}
        tables.append(one_training(name, fsdp, arguments, of_rank_0))
    return "\n\n".join(tables)


def one_training(name: str, wraps: dict, arguments: argparse.Namespace, of_rank_0) -> str:
    trainings = {library: training.Training(networks.MODELS[name], wrap) for library, (_, wrap) in wraps.items()}
    turns = measurement.measure_training(trainings, arguments.turns, arguments.seconds, of_rank_0)
    return report.table(["a step of"], [([name], turns)], "ms")


if __name__ == "__main__":
    main()
