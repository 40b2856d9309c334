"""A rank for which the others wait for too long is ended and replaced, and the job goes on."""

import pathlib
import re
import sys

from jobs import Marked, by_rank
from testbed import with_enough_time

LATE = pathlib.Path(__file__).with_name("late.py")


def finish_without_process_1(what, option):
    """The job's messages, once it has ended well; None when `limit` was too short for the ranks to get so far."""

    def attempt(limit):
        with Marked("-np", "3", "--min-np", "1", option, str(limit), "--grace-period", "1", sys.executable, LATE, what) as job:
            status, output, errors = job.finish()
            if status != 0 or "rank 1 on localhost" not in errors:
                return None
            ends = {lines[-1] for lines in by_rank(output).values()}
            assert len(ends) == 3 and all(end.endswith(": 3") for end in ends) and "process 1: 3" not in ends, output
            assert job.alive() == []
            return errors

    return with_enough_time(attempt, f"the ranks come to step 5 with {option}", (3, 10, 40))


def test_a_rank_that_is_late_in_a_step_is_replaced():
    errors = finish_without_process_1("in_a_step", "--stall-check-shutdown-time-seconds")
    assert re.search(r"rank 1 on localhost stalled: allreduce '.*' has waited \S+ s for rank 1.* goes on with 2 ranks \(generation 1\)", errors), errors


def test_a_rank_that_does_not_come_back_after_a_loss_is_replaced():
    errors = finish_without_process_1("after_a_loss", "--start-timeout")
    assert re.search(r"rank 1 on localhost has not come back within \S+ s after its generation ended; it is replaced", errors), errors
    assert re.search(r"rank 0 on localhost exited with status 3.* The job goes on with \d ranks? \(generation 1\)", errors), errors
