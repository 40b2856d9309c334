"""The jobs of PyTorch that lose a rank: runjob's, and those of other launchers, each found where it is installed or absent with a reason."""

from __future__ import annotations

import pathlib
import sys

from elastic_jobs import ROOT
from losses import Case, runjob

sys.path.append(str(ROOT))
from benchmarks.collectives import installed  # noqa: E402

PROGRAMS = pathlib.Path(__file__).resolve().parent / "programs"
DIGITS = str(PROGRAMS / "train_digits.py")
# torchrun's own store lives through a restart, and PyTorch 2.15 reads the addresses of the processes before from it.
NEW_STORE = {"TORCH_DISABLE_SHARE_RDZV_TCP_STORE": "1"}


def cases(python, horovod_python, torchft_python):
    """The cases, and why others are left out."""
    found, absent = [], []
    if installed.has_module(python, "torch, sklearn"):
        words = [python, DIGITS, "runjob", "STOP"]
        found += [
            Case("4 ranks, digits CNN with PyTorch", "train_digits.py", [*runjob("-np", "4", "--min-np", "2"), *words], 4, 3, goal=0.3),
            Case("4 ranks and a spare, digits CNN with PyTorch", "train_digits.py",
                 [*runjob("-np", "4", "--min-np", "2", "--spares", "1", "-H", "localhost:5"), *words], 4, 4, grows=False, goal=0.3,
                 losses_in_a_job=1),
            Case("torchrun --max-restarts, the same CNN", "train_digits.py",
                 [python, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node", "4", "--max-restarts", "100", DIGITS, "torchrun", "STOP"],
                 4, 4, grows=False, losses_in_a_job=1, variables=NEW_STORE),
        ]  # fmt: skip
    else:
        absent.append(f"all with PyTorch: {python} has no torch with scikit-learn; name one with --python")
    itself, reason = installed.horovod(horovod_python)
    if itself is None:
        absent.append(reason)
    elif installed.has_module(horovod_python, "sklearn"):
        found.append(horovod(horovod_python, itself.command))
    else:
        absent.append(f"horovod: {horovod_python} has no scikit-learn")
    if installed.has_module(torchft_python, "torchft, sklearn"):
        # The lighthouse gives up a group after its default time, and after a shorter one.
        for milliseconds, name in (("5000", "torchft, the same CNN"), ("500", "torchft with heartbeats of 0.5 s, the same CNN")):
            words = [torchft_python, PROGRAMS / "start_torchft.py", "4", milliseconds, DIGITS, "torchft", "STOP"]
            found.append(Case(name, "train_digits.py", words, 4, 3))
    else:
        absent.append(f"torchft: {torchft_python} has no torchft with PyTorch and scikit-learn; name one with --torchft-python")
    return found, absent


def horovod(python, horovodrun):
    """Horovod gives up the whole host of a rank that fails: each rank has a host of its own, which are names of this one."""
    hosts = "printf 'localhost:1\\n127.0.0.1:1\\n127.0.0.2:1\\n127.0.0.3:1\\n'"
    script = ROOT / "build/elastic-hosts.sh"
    script.parent.mkdir(exist_ok=True)
    script.write_text(f"#!/bin/sh\n{hosts}\n")
    script.chmod(0o755)
    command = [horovodrun, "-np", "4", "--min-np", "2", "--host-discovery-script", script, python, DIGITS, "horovod", "STOP"]
    return Case("horovodrun elastic, the same CNN", "train_digits.py", command, 4, 3, grows=False, losses_in_a_job=1)


if __name__ == "__main__":
    sys.exit("run benchmarks/elastic")
