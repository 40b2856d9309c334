import itertools
import sys

import pytest

import called_ranks
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


@pytest.fixture(scope="module")
def call_ranks(tmp_path_factory):
    """call_ranks(function, np, *arguments): what the function of a test module returns on each rank, of which the tests of a module
    share one job for each np. The library is shut down after each call."""
    jobs = {}

    def call(function, np, *arguments):
        if np not in jobs:
            jobs[np] = called_ranks.CalledRanks(tmp_path_factory.mktemp("called") / "job", np)
        job = jobs.pop(np)
        try:
            results = job.call(function, *arguments)
        except BaseException:
            job.kill()  # the next test gets other ranks
            raise
        jobs[np] = job
        return results

    yield call
    for job in jobs.values():
        job.close()


@pytest.fixture
def run_python():
    """run_python(code, **environment): a plain Python process with our packages, finished, whatever its status."""
    return lambda code, **environment: ranks.python("-c", code, **environment)
