"""Calls that cannot work in an elastic job: an error that names the reason and the remedy, and no hang."""

import pathlib
import re
import sys

from jobs import by_rank, run

MISUSE = pathlib.Path(__file__).with_name("misuse.py")
UNEVEN = pathlib.Path(__file__).with_name("uneven.py")


def test_a_newcomers_collective_and_a_process_set_of_an_older_generation_are_errors():
    job = run("-np", "2", "--min-np", "1", sys.executable, MISUSE)
    assert job.returncode == 0, job.stderr
    lines = [line for of_rank in by_rank(job.stdout).values() for line in of_rank]
    assert [line for line in lines if line.startswith("newcomer: ")] == [
        "newcomer: UnavailableError: this process belongs to no generation of the elastic job yet: it can run collectives only inside of the "
        "function that it gives to elastic.run()"
    ]
    old = [line for line in lines if line.startswith("old set: ")]
    assert old and all("is not registered" in line for line in old), lines


def test_a_rank_that_takes_more_steps_than_another_one_ends_with_an_error():
    job = run("-np", "2", "--min-np", "1", sys.executable, UNEVEN)
    assert job.returncode == 1, job.stderr
    # The launcher learns first that rank 1 has failed, or that rank 0 has ended while rank 1 waited.
    assert re.search("^runjob: error: .*rank 1 on localhost ", job.stderr, re.MULTILINE), job.stderr
    assert "another rank has ended its program with status 0" in job.stderr
    assert "do all ranks take the same number of steps?" in job.stderr
    assert "generation" not in re.sub("no other generation", "", job.stderr)
