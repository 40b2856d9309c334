"""reconfigure() of a group: three plain processes train, one is killed, and the other two go on in the same processes."""

import json
import pathlib
import signal
import subprocess
import sys

import pytest
import torch
import torch.distributed as dist

import ranks

VERSION = tuple(int(part) for part in torch.__version__.split("+")[0].split(".")[:2])
pytestmark = pytest.mark.skipif(VERSION < (2, 15), reason="PyTorch 2.15 is the first that changes the members of a group")
SCRIPT = pathlib.Path(__file__).with_name("reconfiguring.py")


def check(reports, first):
    """The reports of the two processes that were left. `first`: the error before the group had members."""
    for rank, report in enumerate(reports):
        assert first in report["before"]
        assert report["sizes"] == [3, 2] and report["rank"] == rank
        assert "PeerLostError" in report["lost"] and "rank 1" in report["lost"]
        assert report["stranger"].startswith("ValueError: reconfigure(): the handle of this process, runjob-")
        assert report["absent"].startswith("WaitTimeoutError: reconfigure() of group")
        assert report["absent"].endswith(": of 3 ranks, these have not come in 1 s: 2")
        assert "its members were to change, and the change has failed" in report["between"]
        assert report["gathered"] == [0, 2]
        assert report["losses"][-1] < report["losses"][0]
    assert reports[0]["weights"] == reports[1]["weights"]


def test_two_of_three_processes_train_on_after_the_third_was_killed():
    store = dist.TCPStore("127.0.0.1", 0, is_master=True, wait_for_workers=False)
    command = [sys.executable, str(SCRIPT), str(store.port)]
    processes = [
        subprocess.Popen([*command, str(number)], env=ranks.environment(), stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        for number in range(3)
    ]
    try:
        ends = [process.communicate(timeout=ranks.TIMEOUT_SECONDS) for process in processes]
    finally:
        for process in processes:
            process.kill()
    assert [process.returncode for process in processes] == [0, -9, 0], [errors for _, errors in ends]
    check([json.loads(ends[number][0]) for number in (0, 2)], "it has no members until torch.distributed._reconfigure() gives it some")


def test_two_ranks_of_runjob_train_on_where_a_failure_does_not_end_the_job():
    store = dist.TCPStore("127.0.0.1", 0, is_master=True, wait_for_workers=False)
    command = [str(ranks.LAUNCHER), "-np", "3", "--continue-on-failure", sys.executable, str(SCRIPT), str(store.port)]
    done = subprocess.run(command, env=ranks.environment(), capture_output=True, text=True, timeout=ranks.TIMEOUT_SECONDS)
    assert done.returncode == 128 + signal.SIGKILL, done.stderr
    reports = {line[1]: json.loads(line.partition(">:")[2]) for line in done.stdout.splitlines()}
    assert sorted(reports) == ["0", "2"], done.stdout
    check([reports["0"], reports["2"]], "no error")
