import itertools
import sys

import pytest

import ranks

sys.path.insert(0, str(ranks.ROOT / "python"))


@pytest.fixture
def run_ranks(tmp_path):
    """run_ranks(what, np, *arguments, status=0): `what` is a function of a test module, called with `arguments` on every
    rank, or the path of a script. np=0 runs it without the launcher. Fails unless the job ends with `status`; None: any."""
    number = itertools.count()

    def run(what, np, *arguments, status=0):
        return ranks.start(tmp_path / f"job{next(number)}", what, np, *arguments, status=status)

    return run


@pytest.fixture
def run_python():
    """run_python(code, **environment): a plain Python process with our packages, finished, whatever its status."""
    return lambda code, **environment: ranks.python("-c", code, **environment)
