"""Elastic jobs over several hosts, of which one or two lose their power, or one a rank."""

import json
import pathlib
import re
import sys

from jobs import by_rank
from remote_jobs import ROOT, Running, run
from testbed import Testbed

TRAINING = pathlib.Path(__file__).with_name("training.py")
VARIABLES = {"PYTHONPATH": str(ROOT / "python"), "OMP_NUM_THREADS": "1"}

UNTIL_SMALLER = """
import time
import numpy as np
import runjob.elastic, runjob.numpy as rj
rj.init()
state = runjob.elastic.ObjectState(step=0)

@runjob.elastic.run
def train(state):
    while rj.size() == 3 or state.step < 20:
        rj.allreduce(np.ones(1000), name="ones")
        state.step += 1
        state.commit()
        if state.step == 5:
            print("ready", flush=True)

train(state)
print(rj.rank(), rj.size(), flush=True)
"""


def test_the_other_hosts_go_on_when_a_rank_is_killed():
    with Testbed(hosts=3) as bed:
        command = (sys.executable, str(TRAINING), "1")
        job = run(bed, "-H", "s1,s2,s3", "--min-np", "2", "--rank-restarts", "0", *command, env=VARIABLES)
        assert job.returncode == 0, job.stderr
        assert {rank: text[-1] for rank, text in by_rank(job.stdout).items()} == {
            rank: f"{rank} 2 20 {7 * 3 + 13 * 2} [2]" for rank in range(2)
        }
        assert re.search(r"rank 1 on s2 was killed by signal 9 .*\. The job goes on with 2 ranks \(generation 1\)", job.stderr)


def test_two_hosts_that_lose_their_power_together_are_both_named():
    with Testbed(hosts=3) as bed:
        options = ("-H", "s1,s2,s3", "--min-np", "1", "--grace-period", "1", "--status-file", "/tmp/status.json")
        with Running(bed, *options, sys.executable, "-c", UNTIL_SMALLER, env=VARIABLES) as job:
            job.wait_for_lines(3)
            for host in bed.hosts[1:]:
                host.kill()
            status, output, errors = job.finish()
            assert status == 0, errors
            assert by_rank(output)[0][-1] == "0 1"
            generation = json.loads(bed.head.path("/tmp/status.json").read_text())["generations"][1]
        del bed.hosts[1:]
    # One is noticed before the other, and the rank on s1 waits for both.
    match = re.search(
        r"lost the agent on (s2|s3): ([^;]*); lost the agent on (s2|s3): ([^;]*)\. The job goes on with 1 rank \(generation 1\), which stood "
        r"still for .* s; no new process starts on \1, \3\.\n", errors
    )  # fmt: skip
    assert match, errors
    first, how, second, how_too = match.groups()
    excluded = "is excluded for ever"
    assert generation["cause"] == f"lost the agent on {first}: {how}; {first} {excluded}; lost the agent on {second}: {how_too}; {second} {excluded}"
    assert {first, second} == {"s2", "s3"} and sorted(generation["left"]) == ["rank 1 on s2", "rank 2 on s3"]


def test_the_other_hosts_go_on_when_one_loses_its_power():
    with Testbed(hosts=3) as bed:
        arguments = ("-H", "s1,s2,s3", "--min-np", "2", "--grace-period", "1", sys.executable, "-c", UNTIL_SMALLER)
        with Running(bed, *arguments, env=VARIABLES) as job:
            job.wait_for_lines(3)
            bed.hosts[2].kill()
            status, output, errors = job.finish()
            assert status == 0, errors
            assert sorted(lines[-1] for lines in by_rank(output).values()) == ["0 2", "1 2"]
            assert re.search(r"lost the agent on s3: .*\. The job goes on with 2 ranks .*; no new process starts on s3\.\n", errors)
        del bed.hosts[2]
