"""runjob.run() inside of a SLURM allocation, and where it cannot work."""

import os
import pathlib

import pytest
from slurm_jobs import PYTHON, ROOT, RUNJOB, wait_until_idle

cloudpickle = pytest.importorskip("cloudpickle")

CODE = """
import runjob
def place(data):
    import os
    return os.environ["RUNJOB_RANK"], os.environ["RUNJOB_HOSTNAME"], len(data)
print(runjob.run(place, (bytes(3 << 20),)))
"""


def start(slurm, *words):
    wait_until_idle(slurm)
    packages = [str(ROOT / "python"), str(pathlib.Path(cloudpickle.__file__).parents[1])]
    variables = {"RUNJOB_BIN": RUNJOB, "PYTHONPATH": os.pathsep.join(packages)}
    return slurm.run([*words, PYTHON, "-c", CODE], variables=variables)


def test_the_allocation_says_where_ranks_run(slurm):
    done = start(slurm, "salloc", "--quiet", "-N2", "-n3")
    size = 3 << 20
    assert (done.returncode, done.stdout) == (0, f"{[('0', 's1', size), ('1', 's1', size), ('2', 's2', size)]}\n"), done.stderr


def test_a_task_of_srun_is_told_to_leave_srun_out(slurm):
    done = start(slurm, "srun", "--quiet", "-N1", "-n2")
    assert done.returncode != 0
    assert "ValueError: runjob.run() starts ranks of its own, and srun has started this process as one of several" in done.stderr
