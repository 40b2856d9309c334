"""elastic.run() in real jobs: the launcher starts, loses and replaces processes."""

import pathlib
import re
import sys

import pytest
from jobs import Marked, by_rank, run

TRAINING = pathlib.Path(__file__).with_name("training.py")
GROWING = pathlib.Path(__file__).with_name("growing.py")


@pytest.mark.parametrize("lost", [0, 1, 2])
def test_the_others_go_on_when_a_rank_is_killed(lost):
    # No other process is started in its place, so that the sums are known.
    job = run("-np", "3", "--min-np", "2", "--rank-restarts", "0", sys.executable, str(TRAINING), str(lost))
    assert job.returncode == 0, job.stderr
    lines = by_rank(job.stdout)
    assert {rank: text[-1] for rank, text in lines.items()} == {rank: f"{rank} 2 20 {7 * 3 + 13 * 2} [2]" for rank in range(2)}
    assert re.search(
        rf"runjob: warning: rank {lost} on localhost was killed by signal 9 \(SIGKILL\)\. The job goes on with 2 ranks \(generation 1\), which "
        r"stood still for \d+\.\d\d s; no new process starts on localhost\.\n", job.stderr
    )  # fmt: skip


def test_the_output_of_the_ranks_that_were_asked_for_is_shown():
    job = run("-np", "3", "--min-np", "2", "--rank-restarts", "0", "--output-ranks", "0", sys.executable, str(TRAINING), "0")
    assert job.returncode == 0, job.stderr
    assert job.stdout == f"[0]<stdout>:0 2 20 {7 * 3 + 13 * 2} [2]\n"


@pytest.mark.parametrize("slow", [(), ("0",), ("2",)], ids=["", "rank_0_leaves_late", "rank_1_leaves_late"])
def test_a_new_process_takes_the_place_of_a_lost_one_and_its_state(slow):
    job = run("-np", "3", "--min-np", "2", sys.executable, str(GROWING), "1", *slow)
    assert job.returncode == 0, job.stderr
    lines = by_rank(job.stdout)
    assert sorted(lines) == [0, 1, 2]
    assert {text[-1] for text in lines.values()} == {"3 ranks, state 40"}
    assert "2 ranks (generation 1)" in job.stderr
    assert re.search(r"the hosts have changed.*\. The job goes on with 3 ranks \(generation 2\), which stood still for \d+\.\d+ s\.\n", job.stderr)


@pytest.mark.parametrize("options, of_each", [((), "0 0"), (("--min-np", "1"), "1 1")], ids=["static", "elastic"])
def test_only_an_elastic_job_has_a_thread_and_a_connection_for_notices(options, of_each):
    job = run("-np", "2", *options, sys.executable, str(TRAINING.with_name("connections.py")))
    assert job.returncode == 0, job.stderr
    assert by_rank(job.stdout) == {0: [of_each], 1: [of_each]}


def test_too_few_ranks_end_the_job_with_125():
    job = run("-np", "2", "--min-np", "2", "--rank-restarts", "0", sys.executable, str(TRAINING), "1")
    assert job.returncode == 125
    assert "the elastic job cannot go on: 1 of at least 2 ranks are left" in job.stderr
    assert "rank 1 on localhost was killed by signal 9 (SIGKILL)" in job.stderr


def test_a_script_without_elastic_run_ends_as_in_a_static_job():
    job = run("-np", "2", "--min-np", "1", "sh", "-c", "exit $((3 * RUNJOB_RANK))")
    assert job.returncode == 3
    assert "rank 1 on localhost" in job.stderr
    assert "generation" not in job.stderr


def test_nothing_is_left_of_an_elastic_job_that_is_interrupted():
    code = "import runjob.numpy as rj, runjob.elastic, time; rj.init(); state = runjob.elastic.ObjectState(x=1)\n"
    code += "@runjob.elastic.run\ndef train(state):\n  print('in', flush=True)\n  time.sleep(600)\ntrain(state)"
    with Marked("-np", "2", "--min-np", "1", "--grace-period", "2", sys.executable, "-c", code) as job:
        job.wait_for_lines(2)
        job.process.terminate()
        status, _, _ = job.finish()
        assert status == 143
        assert job.alive() == []
