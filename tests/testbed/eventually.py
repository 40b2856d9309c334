import time

STEP_SECONDS = 0.01


class OutOfTime(AssertionError):
    """A condition did not hold within a limit: a fault, or a machine that is too slow for it."""


def eventually(condition, what, limit=60.0):
    """Waits for what sends no event, as the end of another's process. Returns what `condition` does when that is true.

    OutOfTime that begins with `what` after `limit` seconds; a test passes as soon as the condition holds.
    """
    deadline = time.monotonic() + limit
    while not (result := condition()):
        if time.monotonic() > deadline:
            raise OutOfTime(f"{what}: not within {limit:g} s; last: {result!r}")
        time.sleep(STEP_SECONDS)
    return result


def with_enough_time(attempt, what, limits=(1, 5, 30)):
    """For a test of a time limit, within which the programs must get somewhere first: the first result of attempt(limit) that is
    not None, with a longer limit each time. None means that the machine was too slow for this limit.

    OutOfTime that begins with `what` when even the last limit was too short.
    """
    for limit in limits:
        if (result := attempt(limit)) is not None:
            return result
    raise OutOfTime(f"{what}: not within {limits[-1]:g} s")
