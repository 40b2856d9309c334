"""What Horovod's PyTorch scripts do works under each launcher: torch_idioms.py, one job for each of them."""

import pathlib
import subprocess
import sys

import open_mpi
import pytest
from ranks import LAUNCHER, TIMEOUT_SECONDS, environment
from torch_idioms import IDIOMS

PROGRAM = pathlib.Path(__file__).with_name("torch_idioms.py")


def _command(launcher, folder):
    if launcher == "mpirun":
        return [open_mpi.mpirun(), "--allow-run-as-root", "--oversubscribe", "--mca", "btl", "self,vader", "-np", "2"]
    if launcher == "horovodrun":
        (folder / launcher).symlink_to(LAUNCHER)
        return [str(folder / launcher), "-np", "2", "-H", "localhost:2"]
    return [str(LAUNCHER), "-np", "2"]


@pytest.mark.parametrize("launcher", [pytest.param("runjob", marks=pytest.mark.thorough), "horovodrun", pytest.param("mpirun", marks=pytest.mark.thorough)])
def test_every_idiom_works(launcher, tmp_path):
    done = subprocess.run(
        [*_command(launcher, tmp_path), sys.executable, str(PROGRAM), launcher], env=open_mpi.variables(environment()),
        capture_output=True, text=True, timeout=TIMEOUT_SECONDS, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout + done.stderr
    lines = [line.partition("<stdout>:")[2] or line for line in done.stdout.splitlines()]
    expected = sorted(f"{rank} {idiom.__name__} ok" for rank in range(2) for idiom in IDIOMS)
    assert sorted(filter(None, lines)) == expected, done.stdout + done.stderr
