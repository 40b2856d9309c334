"""runjob.run() from one host on ranks of others, over real SSH."""

import os
import signal
import sys
import textwrap

import pytest
from remote_jobs import ROOT, RUNJOB
from testbed import Testbed, eventually

pytest.importorskip("cloudpickle")

VARIABLES = {"PYTHONPATH": str(ROOT / "python"), "OMP_NUM_THREADS": "1", "RUNJOB_BIN": RUNJOB}


@pytest.fixture(scope="module")
def bed():
    with Testbed(hosts=2, visible=[sys.prefix]) as bed:
        yield bed


def call(bed, code):
    """`code` in a Python process on the head, finished."""
    return bed.head.run([sys.executable, "-c", textwrap.dedent(code)], variables=VARIABLES)


def test_results_come_from_other_hosts_in_rank_order(bed):
    done = call(
        bed,
        """
        import runjob
        def place(data):
            import os, runjob.basics as basics
            basics.init()
            return basics.rank(), os.environ["RUNJOB_HOSTNAME"], len(data), data
        results = runjob.run(place, (bytes(20 << 20),), hosts="s1:2,s2:2")
        print([result[:3] for result in results], all(result[3] == bytes(20 << 20) for result in results))
        """,
    )
    expected = [(rank, "s1" if rank < 2 else "s2", 20 << 20) for rank in range(4)]
    assert (done.returncode, done.stdout) == (0, f"{expected} True\n"), done.stderr


def test_a_failure_names_its_host(bed):
    done = call(
        bed,
        """
        import os, runjob, signal
        def fail():
            if os.environ["RUNJOB_RANK"] == "1":
                raise LookupError("not on this host")
            signal.pause()
        def die():
            if os.environ["RUNJOB_RANK"] == "1":
                os.kill(os.getpid(), signal.SIGKILL)
            signal.pause()
        for function in (fail, die):
            try:
                runjob.run(function, hosts=["s1", "s2"])
            except runjob.RunError as error:
                print(type(error).__name__, error.rank, error.host, str(error).splitlines()[0])
        """,
    )
    raised, killed = done.stdout.splitlines()
    assert raised == "RankError 1 s2 rank 1 on s2 raised LookupError: not on this host"
    assert killed.startswith("RunError 1 s2 rank 1 on s2 (pid ") and "was killed by signal 9 (SIGKILL)" in killed


def test_a_host_that_cannot_be_reached_is_named(bed):
    done = call(
        bed,
        """
        import runjob
        try:
            runjob.run(print, hosts="s1,nowhere.invalid")
        except runjob.RunError as error:
            print(error.rank, error.exit_status, error)
        """,
    )
    assert done.stdout.startswith("None 125 nowhere.invalid: "), done.stdout + done.stderr


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGKILL])
def test_the_callers_end_leaves_nothing_on_the_hosts(bed, number):
    code = "import runjob, signal; runjob.run(lambda: (print('ready'), signal.pause()), hosts='s1,s2', env={'OF_RUN': '1'})"

    def left():
        return [process for host in bed.hosts for process in host.processes() if process.has_mark("OF_RUN=1") or process.name.startswith("runjob-")]

    with bed.head.popen([sys.executable, "-c", code], variables=VARIABLES, text=True, stdout=-1, stderr=-1) as job:
        assert sorted(job.stdout.readline() for _ in range(2)) == [f"[{rank}]<stdout>:ready\n" for rank in range(2)]
        assert len(left()) >= 2
        (python,) = [process for process in bed.head.processes() if process.name.startswith("python")]
        os.kill(python.machine_pid, number)
    eventually(lambda: not left(), "nothing of the job is left on the hosts")
