"""For the tests of the testbed itself."""

import pytest

TURNS = 3


@pytest.fixture
def unchanged():
    """unchanged(state, use): state() is the same before use(check), where that calls check(), and after it.

    Other programs of the machine may change it meanwhile, so that one turn of three is enough: a testbed changes it each time.
    """

    def run(state, use):
        for _ in range(TURNS):
            seen = [state()]
            use(lambda: seen.append(state()))
            seen.append(state())
            if seen[0] == seen[1] == seen[2]:
                return
        assert seen[0] == seen[1] == seen[2], f"the machine is not as before, {TURNS} times in a row"

    return run
