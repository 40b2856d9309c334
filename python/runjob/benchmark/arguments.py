"""The command line of `python -m runjob.benchmark`."""

from __future__ import annotations

import argparse
from typing import Any, Callable, Sequence

from . import figures

OPERATIONS = ("allreduce", "allgather", "broadcast", "reducescatter", "alltoall", "barrier")
NETWORKS = ("resnet18", "vgg11", "transformer", "mlp", "small-layers")  # of networks.py, which needs PyTorch
_SIZES = "4,4K,64K,1M,16M"
_NETWORKS = "mlp,transformer"

_EXAMPLES = """\
In no job, it starts one of -np ranks on this host. On your own hosts, start it as each job:

  runjob --tag-output=none -H s1:2,s2:2 python -m runjob.benchmark
"""


def explained(parse: Callable[[str], Any]) -> Callable[[str], Any]:
    """For argparse, which shows the text of an error only if it is of its own kind."""

    def parsed(text: str) -> Any:
        try:
            return parse(text)
        except ValueError as error:
            raise argparse.ArgumentTypeError(str(error)) from None

    return parsed


def _positive(kind: type) -> Callable[[str], Any]:
    def parse(text: str) -> Any:
        try:
            value = kind(text)
        except ValueError:
            value = 0
        if not 0 < value < 1e9:
            raise ValueError(f"'{text}' is no number greater than 0")
        return value

    return explained(parse)


def _networks(text: str) -> list[str]:
    return [] if text == "none" else figures.chosen(text, NETWORKS)


def parse(words: Sequence[str] | None = None) -> argparse.Namespace:
    """The options. Ends the program with status 2 and a message for wrong ones."""
    parser = argparse.ArgumentParser(
        prog="python -m runjob.benchmark", epilog=_EXAMPLES, formatter_class=argparse.RawDescriptionHelpFormatter,
        description="Measures runjob's collectives and, where PyTorch is installed, the same over PyTorch's Gloo and a training step "
        "beside DistributedDataParallel. Prints tables with the facts of the machine.",
    )  # fmt: skip
    operations = explained(lambda text: figures.chosen(text, OPERATIONS))
    parser.add_argument("-np", "--np", type=_positive(int), default=2, metavar="N", help="ranks to start on this host, at least 2 (default: 2)")
    parser.add_argument("--seconds", type=_positive(float), default=100.0, metavar="S", help="about how long to measure (default: 100)")
    parser.add_argument("--ops", type=operations, default=list(OPERATIONS), metavar="LIST", help=f"of {','.join(OPERATIONS)} (default: all)")
    parser.add_argument("--sizes", type=explained(figures.sizes), default=_SIZES, metavar="LIST", help=f"bytes that each rank gives (default: {_SIZES})")
    parser.add_argument("--networks", type=explained(_networks), default=_NETWORKS, metavar="LIST", help=f"to train, of {','.join(NETWORKS)}, or none (default: {_NETWORKS})")
    parser.add_argument("--turns", type=_positive(int), default=5, metavar="N", help="turns of each library (default: 5)")
    return parser.parse_args(words)
