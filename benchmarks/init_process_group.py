"""How long torch.distributed's init_process_group() takes over runjob and over Gloo, under runjob and under torchrun, in turns.

    .venv/bin/python benchmarks/init_process_group.py

Prints the median of each in milliseconds: of the call, from the time at which all ranks have imported what they need, and of the
import of runjob's backend after that of PyTorch. The slowest rank counts.
"""

import argparse
import json
import os
import pathlib
import statistics
import subprocess
import sys
import tempfile
import time

ROOT = pathlib.Path(__file__).resolve().parents[1]
RANK = "rank"  # the first argument of a rank


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--np", type=int, default=2, help="ranks (default: 2)")
    parser.add_argument("--turns", type=int, default=9, help="of each (default: 9)")
    parser.add_argument("--build", type=pathlib.Path, default=ROOT / "build/release", help="where runjob is")
    arguments = parser.parse_args()
    python = sys.executable
    launchers = {
        "runjob": [str(arguments.build / "bin/runjob"), "-np", str(arguments.np), python],
        "torchrun": [python, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node", str(arguments.np)],
    }
    ways = [(launcher, backend) for launcher in launchers for backend in ("runjob", "gloo")]
    found: dict[tuple[str, str], list[dict[str, float]]] = {way: [] for way in ways}
    for turn in range(arguments.turns):
        for place in range(len(ways)):
            launcher, backend = way = ways[(turn + place) % len(ways)]
            found[way].append(run(launchers[launcher], backend, arguments.np, arguments.build))
    print(f"{arguments.np} ranks, {arguments.turns} turns, load {os.getloadavg()[0]:.1f}")
    for (launcher, backend), turns in found.items():
        texts = [f"{kind} {statistics.median(turn[kind] for turn in turns):.1f} ms" for kind in ("call", "import")]
        print(f"{backend} under {launcher}: {', '.join(texts)}")


def run(launcher: list[str], backend: str, np: int, build: pathlib.Path) -> dict[str, float]:
    """Milliseconds of the slowest rank."""
    with tempfile.TemporaryDirectory() as folder:
        variables = {"PYTHONPATH": str(ROOT / "python"), "RUNJOB_LIBRARY": str(build / "lib/librunjob.so"), "OMP_NUM_THREADS": "1"}
        command = [*launcher, __file__, RANK, backend, folder]
        subprocess.run(command, env={**os.environ, **variables}, check=True, capture_output=True, timeout=120)
        times = [json.loads(path.read_text()) for path in pathlib.Path(folder).glob("times.*")]
    assert len(times) == np
    return {kind: max(each[kind] for each in times) for kind in times[0]}


def be_rank(backend: str, folder: pathlib.Path) -> None:
    import torch.distributed as dist

    begin = time.perf_counter()
    if backend == "runjob":
        import runjob.torch.distributed  # noqa: F401
    imported = time.perf_counter() - begin
    rank, size = os.environ["RANK"], int(os.environ["WORLD_SIZE"])
    (folder / f"ready.{rank}").touch()
    while len(list(folder.glob("ready.*"))) < size:
        time.sleep(0.001)
    begin = time.perf_counter()
    dist.init_process_group(backend)
    called = time.perf_counter() - begin
    dist.barrier()
    (folder / f"times.{rank}").write_text(json.dumps({"call": 1e3 * called, "import": 1e3 * imported}))
    dist.barrier()
    os._exit(0)  # leaves out Python's end, in which PyTorch's Gloo may abort the process (docs/ddp.md)


if __name__ == "__main__":
    if sys.argv[1:2] == [RANK]:
        be_rank(sys.argv[2], pathlib.Path(sys.argv[3]))
    else:
        main()
