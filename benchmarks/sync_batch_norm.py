"""SyncBatchNorm beside BatchNorm and two allreduces of its statistics, forward and backward, taking turns; float32.

    runjob -np 2 python benchmarks/sync_batch_norm.py

Rank 0 prints the median of each and their ratio. The ranks wait for each other before each turn, and a turn's time is that of the
slowest rank.
"""

import argparse
import statistics
import time
from collections.abc import Callable

import torch

import runjob.torch as hvd


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--shape", type=int, nargs=4, default=[64, 64, 56, 56], help="N C H W of each rank's batch")
    parser.add_argument("--turns", type=int, default=30, help="of each layer, after two that do not count")
    arguments = parser.parse_args()
    hvd.init()
    channels = arguments.shape[1]
    layers = {"SyncBatchNorm": hvd.SyncBatchNorm(channels), "BatchNorm and two allreduces": torch.nn.BatchNorm2d(channels)}
    torch.manual_seed(hvd.rank())
    input, gradient = torch.randn(arguments.shape, requires_grad=True), torch.randn(arguments.shape)
    times: dict[str, list[float]] = {name: [] for name in layers}
    for _ in range(2 + arguments.turns):
        for name, layer in layers.items():
            times[name].append(_slowest(lambda layer=layer: _step(layer, input, gradient)))
    if hvd.rank() == 0:
        medians = {name: statistics.median(values[2:]) for name, values in times.items()}
        print(f"{hvd.size()} ranks, {' x '.join(map(str, arguments.shape))} float32 each, {torch.get_num_threads()} thread a rank")
        for name, median in medians.items():
            print(f"{name:28s} {1e3 * median:8.1f} ms")
        print(f"ratio {medians['SyncBatchNorm'] / medians['BatchNorm and two allreduces']:.2f}")


def _step(layer: torch.nn.Module, input: torch.Tensor, gradient: torch.Tensor) -> None:
    input.grad = None
    output = layer(input)
    if not isinstance(layer, hvd.SyncBatchNorm):
        hvd.allreduce(torch.zeros(1 + 2 * input.shape[1]), name="forward")
    output.backward(gradient)
    if not isinstance(layer, hvd.SyncBatchNorm):
        hvd.allreduce(torch.zeros(2 * input.shape[1]), name="backward")


def _slowest(step: Callable[[], None]) -> float:
    hvd.barrier()
    start = time.perf_counter()
    step()
    return hvd.allreduce(torch.tensor(time.perf_counter() - start, dtype=torch.float64), op=hvd.Max).item()


if __name__ == "__main__":
    main()
