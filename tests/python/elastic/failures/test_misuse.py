"""Calls that cannot work in an elastic job: an error that names the reason and the remedy, and no hang."""

import pathlib
import sys

from jobs import by_rank, run

MISUSE = pathlib.Path(__file__).with_name("misuse.py")


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
