"""python/runjob/communicator.py: init(comm=...), with a real Open MPI and with the launcher."""

import os
import tempfile

import pytest
from launchers import lines_of, open_mpi

from runjob import basics, communicator


def mpirun(np, code, **variables):
    return open_mpi().python(np, code, **variables)


PRINT = """
place = [hvd.rank(), hvd.size(), hvd.local_rank(), hvd.local_size(), hvd.cross_rank(), hvd.cross_size()]
sum = hvd.allreduce([hvd.rank() + 1.0] * 70_000, op=hvd.Sum)[-1]
sys.stdout.write(f"{place} {hvd.allgather([hvd.rank()]).tolist()} {sum:g}\\n")
"""


ALLGATHER = "from mpi4py import MPI; world = MPI.COMM_WORLD; hvd.init(exchange=world.allgather, rank=world.rank, size=world.size)"


@pytest.mark.parametrize(
    "init", ["from mpi4py import MPI; hvd.init(comm=MPI.COMM_WORLD)", "hvd.init([0, 1, 2])", ALLGATHER], ids=["comm", "list", "exchange"]
)
def test_ranks_of_mpirun_are_a_job(init):
    assert lines_of(mpirun(3, init + PRINT)) == [f"[{rank}, 3, {rank}, 3, 0, 1] [0, 1, 2] 6" for rank in range(3)]


def test_parts_of_mpis_world_are_jobs_by_themselves():
    init = "from mpi4py import MPI; world = MPI.COMM_WORLD; hvd.init(world.Split(world.rank % 2, -world.rank))"
    assert lines_of(mpirun(4, init + PRINT)) == ["[0, 2, 0, 2, 0, 1] [0, 1] 3"] * 2 + ["[1, 2, 1, 2, 0, 1] [0, 1] 3"] * 2


def test_a_list_of_some_of_mpis_ranks():
    code = "from mpi4py import MPI\nif MPI.COMM_WORLD.rank != 1:\n    hvd.init(comm=[2, 0])\n    print(MPI.COMM_WORLD.rank, hvd.rank(), hvd.size())"
    assert lines_of(mpirun(3, code)) == ["0 1 2", "2 0 2"]


def test_it_may_be_joined_again_and_has_process_sets():
    code = """
from mpi4py import MPI
for _ in range(3):
    odd = hvd.ProcessSet([1])
    hvd.init(MPI.COMM_WORLD, process_sets=[odd])
    sum = hvd.allreduce(1.0, op=hvd.Sum).item() + (hvd.allreduce(1.0, op=hvd.Sum, process_set=odd).item() if odd.included() else 0)
    hvd.shutdown()
print(sum)
"""
    assert lines_of(mpirun(2, code)) == ["2.0", "3.0"]


def test_nothing_of_the_rendezvous_is_left():
    code = """
import os, tempfile
from mpi4py import MPI
before = dict(os.environ)
hvd.init(MPI.COMM_WORLD)
hvd.barrier()
print(os.environ == before, [name for name in os.listdir(os.environ["TMPDIR"]) if name.startswith("runjob-")])
"""
    with tempfile.TemporaryDirectory() as folder:
        assert lines_of(mpirun(2, code, TMPDIR=folder)) == ["True []"] * 2


def test_ranks_that_do_not_come_are_an_error_and_no_hang():
    code = """
from mpi4py import MPI
if MPI.COMM_WORLD.rank == 0:
    try:
        hvd.init(comm=MPI.COMM_WORLD)
    except hvd.HorovodInternalError as error:
        print(error)
    MPI.COMM_WORLD.Abort(0)
else:
    import time
    time.sleep(1000)
"""
    done = mpirun(2, code, RUNJOB_START_TIMEOUT="2")
    assert "init() over MPI: not all 2 ranks of the communicator have come in 2 s" in done.stdout, done.stderr


def test_a_list_without_mpi4py_is_told_what_to_do():
    done = mpirun(2, "import sys\nsys.modules['mpi4py'] = None\nhvd.init(comm=[0, 1])")
    assert done.returncode != 0
    assert "RuntimeError: init(comm=...): mpirun started 2 processes, and joining some of them needs the package mpi4py" in done.stderr
    assert "or start the program with runjob -np N instead of mpirun" in done.stderr


def test_a_process_that_is_in_no_communicator():
    done = mpirun(2, "from mpi4py import MPI; hvd.init(MPI.COMM_NULL)")
    assert "ValueError: init(comm=MPI.COMM_NULL): this process is not in the communicator" in done.stderr


def _lists():
    import runjob.numpy as hvd

    rank = int(os.environ["RUNJOB_RANK"])
    found = []
    for _ in range(2):
        hvd.init(comm=[2, 0] if rank % 2 == 0 else [1])
        found.append((hvd.rank(), hvd.size(), hvd.local_rank(), hvd.local_size(), hvd.allreduce([rank], op=hvd.Sum).tolist()))
        hvd.shutdown()
    hvd.init(comm=[0, 1, 2])
    return found, hvd.rank(), hvd.allreduce(1.0, op=hvd.Sum).item()


def test_some_of_the_launchers_ranks_are_a_job_by_themselves(run_ranks):
    expected = {0: (1, 2, 1, 2, [2]), 1: (0, 1, 0, 1, [1]), 2: (0, 2, 0, 2, [2])}
    assert run_ranks(_lists, 3).results == [([expected[rank]] * 2, rank, 3.0) for rank in range(3)]


def _mistakes():
    texts = []
    for comm in ([0], [0, 1, 2], [0, 0], "01", [1.5], 7):
        try:
            basics.init(comm=comm)
            texts.append(None)
        except ValueError as error:
            texts.append(str(error))
        assert not basics.is_initialized() or comm == [0]
        basics.shutdown()
    return texts if os.environ["RUNJOB_RANK"] == "1" else None


def test_lists_that_cannot_be(run_ranks):
    not_mine, too_many, twice, text, fraction, number = run_ranks(_mistakes, 2).results[1]
    assert not_mine.startswith("init(comm=[0]): this is rank 1, which is not in it")
    assert too_many == "init(comm=[0, 1, 2]): there are 2 ranks, 0 to 1"
    assert twice == "init(comm=[0, 0]): ranks are given once each, from 0 on"
    for each in (text, fraction, number):
        assert each.endswith("give an mpi4py communicator or a list of ranks")


def _communicator_of_one():
    from mpi4py import MPI

    try:
        basics.init(comm=MPI.COMM_WORLD)
    except ValueError as error:
        return str(error)


def test_a_communicator_that_is_not_the_launchers_job(run_ranks):
    for rank, text in enumerate(run_ranks(_communicator_of_one, 2).results):
        assert text.startswith(f"init(comm=...): this is rank 0 of 1 of the communicator, and runjob started it as rank {rank} of 2")


def _list_of_a_process_alone():
    with pytest.raises(ValueError, match=r"init\(comm=\[0, 1\]\): this process was started alone; start ranks with runjob -np N"):
        basics.init(comm=[0, 1])
    basics.init(comm=[0])
    return basics.size()


def test_a_list_without_a_launcher(run_ranks):
    assert run_ranks(_list_of_a_process_alone, 0).results == [1]


def _someone_is_missing():
    if os.environ["RUNJOB_RANK"] == "0":
        basics.init(comm=[0, 1])


def test_a_rank_of_the_list_that_does_not_come_is_named(run_ranks, monkeypatch):
    monkeypatch.setenv("RUNJOB_START_TIMEOUT", "10")
    job = run_ranks(_someone_is_missing, 2, status=125)
    assert "rank 1 on localhost ended without calling init() (exited with status 0)" in job.stderr


@pytest.mark.parametrize("environment, ranks", [({}, 0), ({"OMPI_COMM_WORLD_RANK": "1", "OMPI_COMM_WORLD_SIZE": "4"}, 4), ({"PMI_RANK": "0"}, 0)])
def test_which_mpi_has_started_this_process(environment, ranks):
    assert communicator._started_by_mpi(environment) == ranks


SUPPORT = """
import mpi4py
mpi4py.rc.thread_level = "{level}"
before = hvd.mpi_threads_supported()
hvd.init()
assert "mpi4py.MPI" not in sys.modules
from mpi4py import MPI
say(before, hvd.mpi_threads_supported(), hvd.size() == MPI.COMM_WORLD.Get_size())
"""


@pytest.mark.parametrize("level, is_supported", [("multiple", True), ("single", False)])
def test_threads_may_call_the_mpi_that_has_started_the_ranks(level, is_supported):
    assert lines_of(mpirun(2, SUPPORT.replace("{level}", level))) == [f"True {is_supported} True"] * 2


WARNED = """
import sys, warnings
import runjob.numpy as hvd
if "with" in sys.argv:
    from mpi4py import MPI
with warnings.catch_warnings(record=True) as caught:
    warnings.simplefilter("always")
    hvd.init()
print(hvd.rank(), hvd.mpi_threads_supported(), [str(each.message) for each in caught])
"""


@pytest.mark.parametrize("uses_mpi", [True, False])
def test_an_mpi_with_another_world_than_the_job_is_warned_of_once(run_ranks, tmp_path, uses_mpi):
    (tmp_path / "program.py").write_text(WARNED)
    done = run_ranks(tmp_path / "program.py", 2, "with" if uses_mpi else "without")
    assert "1 False []" in done.stdout
    if not uses_mpi:
        assert "0 False []" in done.stdout
        return
    assert "0 False [\"the job has 2 ranks, but mpi4py's MPI.COMM_WORLD has 1: MPI did not start these ranks" in done.stdout
    assert "Start the program with `mpirun -np 2 python ...` instead" in done.stdout


def test_mpis_own_ranks_are_not_warned_of():
    code = WARNED.replace('"with" in sys.argv', "True")
    assert lines_of(mpirun(2, code)) == ["0 True []", "1 True []"]
