"""What becomes of a job when an agent, or runjob itself, is stopped, short of something, or alone with half an upload."""

import os
import re
import signal
import time

import jobs
import pytest
from remote_jobs import DAEMON, SLEEP, Running, python, run
from testbed import HOME, Testbed, eventually


@pytest.fixture(scope="module")
def bed():
    with Testbed(hosts=2) as bed:
        yield bed


def state_of(process):
    with open(f"/proc/{process.machine_pid}/stat", encoding="utf-8") as file:
        return file.read().rpartition(")")[2].split()[0]


def test_a_runjob_that_stood_still_blames_itself(bed):
    """SIGSTOP, which it cannot announce to the agents as it does Ctrl-Z."""
    with Running(bed, "-H", "s1,s2", "--grace-period", "1", *python(SLEEP)) as job:
        job.wait_for_lines(2)
        job.process.send_signal(signal.SIGSTOP)
        job.wait_until_gone(*bed.hosts)
        job.process.send_signal(signal.SIGCONT)
        status, _, errors = job.finish()
        assert status == 125
        assert re.fullmatch(r"runjob: error: runjob itself stood still for \d+ s; a host ends its ranks when it has received "
                            r"nothing for 5 s\n", errors)  # fmt: skip
        job.wait_until_gone(bed.head)


def test_a_stopped_agent_on_another_host_is_given_up(bed):
    with Running(bed, "-H", "s1,s2", "--grace-period", "1", *python(SLEEP)) as job:
        job.wait_for_lines(2)
        job.named(bed.hosts[1], "runjob-agent")[0].kill(signal.SIGSTOP)
        status, _, errors = job.finish()
        assert (status, errors) == (125, "runjob: error: lost the agent on s2: it has sent nothing for 5 s\n")
        job.wait_until_gone(*bed.hosts, bed.head)


@pytest.mark.parametrize("name", ["runjob-agent", "runjob-guard", "runjob-guard-2"])
def test_a_stopped_agent_or_guard_on_this_host_is_given_up(name):
    with jobs.Marked("-np", "2", "--grace-period", "1", *jobs.python(DAEMON)) as job:
        job.wait_for_lines(2)
        (pid,) = job.named(name)
        os.kill(pid, signal.SIGSTOP)
        status, _, errors = job.finish()
        assert (status, errors) == (125, f"runjob: error: lost the agent on localhost: the process {name} (pid {pid}) on this host "
                                         "has been stopped for 5 s\n")  # fmt: skip
        job.wait_until_gone()


def test_an_interrupted_job_ends_although_its_agent_is_stopped():
    with jobs.Marked("-np", "2", "--grace-period", "1", *jobs.python(DAEMON)) as job:
        job.wait_for_lines(2)
        os.kill(job.named("runjob-agent")[0], signal.SIGSTOP)
        job.process.send_signal(signal.SIGINT)
        assert job.finish()[0] == 130
        job.wait_until_gone()


def test_an_agent_on_this_host_that_is_only_late_is_waited_for():
    """It is stopped twice, for three seconds."""
    with jobs.Marked("-np", "2", *jobs.python("import time; print('ready', flush=True); time.sleep(8); print('done')")) as job:
        job.wait_for_lines(2)
        (agent,) = job.named("runjob-agent")
        for _ in range(2):
            os.kill(agent, signal.SIGSTOP)
            time.sleep(3)
            os.kill(agent, signal.SIGCONT)
            time.sleep(2)
        status, output, errors = job.finish()
        assert (status, errors, output.count("done")) == (0, "", 2)


def test_an_upload_that_is_cut_off_leaves_nothing():
    with Testbed(hosts=1) as bed:
        host = bed.hosts[0]
        folder = host.path(f"{HOME}/.cache/runjob")
        host.shape_network("4mbit")
        with Running(bed, "-H", "s1", "--connect-timeout", "10", "true") as job:
            eventually(lambda: [file for file in folder.glob("upload.*") if file.stat().st_size > 300_000], "half of an upload")
            host.cut_network()
            status, _, errors = job.finish()
            assert status == 125
            assert re.fullmatch(r"runjob: error: s1: no answer within 10 s; is it up, .*\n", errors)
            job.wait_until_gone(host, bed.head)
        eventually(lambda: not list(folder.iterdir()), "the upload is removed")
        host.restore_network()
        host.unshape_network()
        assert run(bed, "-H", "s1", "hostname").stdout == "[0]<stdout>:s1\n"
