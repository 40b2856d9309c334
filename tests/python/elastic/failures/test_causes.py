"""The cause of a generation, and of the end of an elastic job, is the rank that failed and none that only lost it."""

import json
import os
import pathlib
import re
import subprocess
import sys

import pytest
from jobs import RUNJOB, TIMEOUT, by_rank, run

HERE = pathlib.Path(__file__).parent
FAILING, TRAINING = HERE / "failing.py", HERE.parent / "training.py"


def generations(what, tmp_path, *options):
    """Those of the status file, of a job in which nothing is started again."""
    status_file = tmp_path / "status.json"
    job = run("-np", "3", "--min-np", "1", "--rank-restarts", "0", "--status-file", status_file, *options, sys.executable, FAILING, what)
    assert job.returncode == 0, job.stderr
    return json.loads(status_file.read_text())["generations"], job


@pytest.mark.parametrize(
    "what, cause",
    [
        ("kill", r"rank 1 on localhost was killed by signal 9 \(SIGKILL\); localhost is excluded for ever"),
        ("raise", r"rank 1 on localhost exited with status 1: ValueError: a sample without a label; localhost is excluded for ever"),
        ("retry", r"rank 1 on localhost: HorovodInternalError: of the program"),
        ("crash", r"rank 1 on localhost exited with status 1: ValueError: a sample without a label.*"),
    ],
)
def test_the_rank_that_failed_is_the_cause(tmp_path, what, cause):
    found, job = generations(what, tmp_path)
    assert re.fullmatch(cause, found[1]["cause"])
    size = found[1]["size"]
    # Process 2 ends too in "crash", unless it learns of the loss in the check before step 13.
    assert size in {"retry": (3,), "crash": (1, 2)}.get(what, (2,))
    reason, _, consequence = cause.partition("; localhost is excluded for ever")
    no_more = r"; no new process starts on localhost\." if _ else ""
    assert re.search(rf"warning: {reason}\. The job goes on with {size} ranks? \(generation 1\), which stood still for \d+\.\d\d s{no_more}", job.stderr)
    # The last commit was that of ten steps. A rank that is left may learn of the loss in the check before step 13 of those from 0.
    assert found[0]["steps_redone"] is None and found[1]["steps_redone"] in ((4,) if what == "retry" else (3, 4))


def test_the_time_that_a_late_rank_costs_is_counted(tmp_path):
    found, _ = generations("slow", tmp_path)
    assert found[1]["stood_still_seconds"] > 0.9  # process 2 slept for a second while process 0 waited for it
    assert (found[1]["left"], found[1]["came"]) == (["rank 1 on localhost"], [])


def test_too_few_ranks_name_the_rank_that_failed():
    job = run("-np", "3", "--min-np", "3", "--rank-restarts", "0", sys.executable, FAILING, "raise")
    assert job.returncode == 125
    assert ("runjob: error: the elastic job cannot go on: 2 of at least 3 ranks are left, and no host can take another one: rank 1 on localhost "
            "exited with status 1: ValueError: a sample without a label; localhost is excluded for ever\n") in job.stderr  # fmt: skip


def horovodrun(*arguments):
    words = ["horovodrun", *map(str, arguments)]
    return subprocess.run(words, executable=RUNJOB, capture_output=True, text=True, timeout=TIMEOUT, env={**os.environ}, check=False)


@pytest.mark.parametrize(
    "options, message",
    [
        (("--min-np", "2", "-H", "localhost:2"),
         r"Horovod detected that one or more processes exited with non-zero status: 0 of at least 2 ranks are left, and no host can take another one: "
         r"rank 1 on localhost was killed by signal 9 \(SIGKILL\); localhost is excluded for ever"),
        (("--min-np", "2", "--max-np", "2", "--elastic-timeout", "1", "--host-discovery-script", "echo localhost:1; echo 127.0.0.2:1"),
         r"Timed out waiting for minimum number of slots to become available\. Please check that you have enough resources to run at least 2 Horovod "
         r"processes\. Timeout after 1 seconds\. 1 of at least 2 ranks are ready after the 1 s of --elastic-timeout: rank 1 on 127\.0\.0\.2 was killed"),
        (("--min-np", "1", "--reset-limit", "0", "-H", "localhost:1,127.0.0.2:1"),
         r"Horovod was shutdown because number of resets during elastic job exceeded limit: 0; the last one because rank 1 on 127\.0\.0\.2 was killed"),
    ],
)  # fmt: skip
def test_under_the_name_horovodrun_the_end_has_horovods_words(options, message):
    job = horovodrun("-np", "2", *options, sys.executable, TRAINING, "1")
    assert job.returncode == 125, job.stderr
    assert re.search(rf"runjob: error: the elastic job cannot go on: {message}", job.stderr), job.stderr


def test_under_the_name_horovodrun_too_few_slots_at_the_start_have_horovods_words():
    job = horovodrun("-np", "2", "--elastic-timeout", "1", "--host-discovery-script", "echo localhost", "true")
    assert job.returncode == 125
    assert ("runjob: error: Timed out waiting for minimum number of slots to become available. Please check that you have enough resources to run at "
            "least 2 Horovod processes. Timeout after 1 seconds. --host-discovery-script: 'echo localhost' lists 1 of the 2 slots") in job.stderr  # fmt: skip


def test_a_job_without_progress_ends_with_125():
    """Each generation begins anew and raises at once."""
    code = "import runjob.numpy as rj, runjob.elastic\nfrom runjob.exceptions import HorovodInternalError\nrj.init()\n"
    code += "@runjob.elastic.run\ndef train(state):\n  if rj.rank() == 1: raise HorovodInternalError('of the program')\n  rj.barrier()\n"
    code += "train(runjob.elastic.ObjectState(step=0))"
    job = run("-np", "2", "--min-np", "2", sys.executable, "-c", code)
    assert job.returncode == 125, job.stderr
    assert ("runjob: error: the elastic job cannot go on: 5 generations in a row have ended by a failure before their first commit, the last one "
            "because rank 1 on localhost: HorovodInternalError: of the program\n") in job.stderr  # fmt: skip
