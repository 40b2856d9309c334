"""The command line of benchmarks/collectives."""

import argparse
import pathlib
import shutil
import sys

from benchmarks.collectives import cases, environments
from runjob.benchmark import figures
from runjob.benchmark.arguments import explained

ROOT = pathlib.Path(__file__).resolve().parents[2]
SIZES = "4,64,1K,4K,16K,64K,256K,1M,4M,16M,64M,256M"


sizes = explained(figures.sizes)


def numbers(text):
    try:
        values = [int(word) for word in text.split(",")]
    except ValueError:
        raise argparse.ArgumentTypeError(f"'{text}' is no list of numbers such as 2,4") from None
    if min(values) < 1:
        raise argparse.ArgumentTypeError(f"'{text}': the least is 1")
    return values


def words(known):
    return explained(lambda text: figures.chosen(text, known))


def python_with_torch():
    own = ROOT / ".venv/bin/python"
    return str(own) if own.exists() else shutil.which("python3") or sys.executable


def python_with_horovod():
    """The one that `horovodrun` of the PATH belongs to."""
    command = shutil.which("horovodrun")
    beside = pathlib.Path(command).resolve().parent / "python" if command else None
    return str(beside) if beside and beside.exists() else sys.executable


def parse(argv=None):
    parser = argparse.ArgumentParser(prog="benchmarks/collectives", description="runjob's collectives beside those of others")
    parser.add_argument("--np", type=numbers, default=[2], help="numbers of ranks, such as 2,4,8 (default: 2)")
    parser.add_argument("--sizes", type=sizes, default=sizes(SIZES), help=f"bytes that each rank gives (default: {SIZES})")
    parser.add_argument("--ops", type=words((*cases.OPERATIONS, cases.MESSAGES)), default=list(cases.OPERATIONS), help=f"of {','.join(cases.OPERATIONS)} (default: all of them), {cases.MESSAGES}")
    parser.add_argument("--dtypes", type=words(cases.DTYPES), default=["float32"], help=f"of {','.join(cases.DTYPES)} (default: float32)")
    parser.add_argument("--modes", type=words(cases.MODES), default=["blocking"], help=f"of {','.join(cases.MODES)} (default: blocking)")
    parser.add_argument("--peers", default="all", help="names of what to measure beside runjob; all (the default) or none")
    parser.add_argument("--rounds", type=int, default=5, help="turns of each program (default: 5)")
    parser.add_argument("--budget-ms", type=int, default=100, help="how long a program measures one size in one turn")
    parser.add_argument("--timeout", type=float, default=600, help="seconds after which one program's turn is given up")
    parser.add_argument("--bin", type=pathlib.Path, default=ROOT / "build/release/bin", help="where runjob and the programs are")
    parser.add_argument("--before", type=pathlib.Path, help="the same folder of another build, measured beside as runjob-before")
    parser.add_argument("--torch-python", default=python_with_torch(), help="a Python that has torch")
    parser.add_argument("--horovod-python", default=python_with_horovod(), help="a Python that has Horovod, with horovodrun beside it")
    parser.add_argument("--cache", type=pathlib.Path, default=environments.default_folder(), help="where --install-peers puts wheels")
    parser.add_argument("--install-peers", action="store_true", help="make the environments that are not there, with pip")
    parser.add_argument("--json", type=pathlib.Path, default=ROOT / "build/collectives.json", help="where the numbers go")
    parser.add_argument("--plot", type=pathlib.Path, help="an SVG or PNG to draw (needs matplotlib; --install-peers gets it)")
    return parser.parse_args(argv)
