import time

STEP_SECONDS = 0.01


def eventually(condition, what, limit=60.0):
    """Waits for what sends no event, as the end of another's process. Returns what `condition` does when that is true.

    AssertionError that begins with `what` after `limit` seconds; a test passes as soon as the condition holds.
    """
    deadline = time.monotonic() + limit
    while not (result := condition()):
        if time.monotonic() > deadline:
            raise AssertionError(f"{what}: not within {limit:g} s; last: {result!r}")
        time.sleep(STEP_SECONDS)
    return result
