"""The command line of benchmarks/training."""

import argparse
import os
import pathlib
import sys

from benchmarks.collectives.arguments import numbers, python_with_horovod, python_with_torch, words
from benchmarks.training import peers

ROOT = pathlib.Path(__file__).resolve().parents[2]
MODELS = [model for models in peers.MODELS.values() for model in models]


def program(word):
    """A path from any folder: the ranks on other hosts begin in one of their own. A name stays one of the PATH."""
    return os.path.abspath(word) if "/" in word else word


def python_with_tensorflow():
    """One that packaging/tensorflow.sh has made, of the newest TensorFlow."""
    cache = pathlib.Path(os.environ.get("XDG_CACHE_HOME") or pathlib.Path.home() / ".cache")
    found = sorted(cache.glob("runjob/tensorflow/newest-*/bin/python"))
    return str(found[-1]) if found else sys.executable


def parse(argv=None):
    parser = argparse.ArgumentParser(prog="benchmarks/training", description="training with runjob and with others")
    parser.add_argument("--np", type=numbers, default=[2], help="numbers of ranks, such as 1,2,4 (default: 2)")
    parser.add_argument("--hosts", type=int, default=0, help="so many hosts of tests/testbed with --np ranks together; needs root (default: this machine)")
    parser.add_argument("--rate", default="", help="of --hosts: each host's cable, such as 1gbit (default: no limit)")
    parser.add_argument("--congestion-control", default="", metavar="NAME", help="of --hosts: their default for TCP (default: this machine's)")
    parser.add_argument("--models", type=words(MODELS), default=list(peers.NETWORKS), help=f"of {','.join(MODELS)} (default: those of PyTorch without a loop of operations)")
    parser.add_argument("--peers", type=words(peers.NAMES), default=list(peers.NAMES), help=f"of {','.join(peers.NAMES)} (default: all)")
    parser.add_argument("--turns", type=int, default=10, help="turns of each program (default: 10)")
    parser.add_argument("--steps", type=int, default=8, help="steps of a turn that count (default: 8)")
    parser.add_argument("--settle", type=int, default=2, help="steps before those (default: 2)")
    parser.add_argument("--priority", action="store_true", help="give the ranks nearly all processor time: for a busy machine; needs root")
    parser.add_argument("--timeout", type=float, default=300, help="seconds after which a program is given up")
    parser.add_argument("--bin", type=pathlib.Path, default=ROOT / "build/release/bin", help="where runjob is")
    parser.add_argument("--before", type=pathlib.Path, metavar="FOLDER", help="another checkout of runjob with its release build, which trains beside this one")
    parser.add_argument("--python", type=program, default=python_with_torch(), help="a Python that has torch")
    parser.add_argument("--horovod-python", type=program, default=python_with_horovod(), help="a Python that has Horovod, with horovodrun beside it")
    parser.add_argument("--tensorflow-python", type=program, default=python_with_tensorflow(), help="a Python that has TensorFlow")
    parser.add_argument("--horovod-tensorflow-python", type=program, default=sys.executable, help="a Python that has Horovod with TensorFlow")
    parser.add_argument("--json", type=pathlib.Path, default=ROOT / "build/training.json", help="where the numbers go")
    return parser.parse_args(argv)
