"""What holds for every test: an environment of its own, and words for a test that cannot run here or that ran out of time."""

import os
import shutil
import signal
import subprocess
import tempfile

import pytest

import own_environment
from testbed import NeedsRoot, OutOfTime, requirements

OUT_OF_TIME = (
    "The test has run out of time: the program hangs, or the machine was too slow. "
    'Run this test alone; see "Failures for lack of time" in docs/developers/testing.md.'
)


def pytest_configure(config):
    if not hasattr(config, "workerinput"):  # a worker of pytest-xdist inherits what its parent has set
        home = tempfile.mkdtemp(prefix="runjob-tests-")
        config.add_cleanup(lambda: shutil.rmtree(home, ignore_errors=True))
        isolated = own_environment.isolated(os.environ, home)
        os.environ.clear()
        os.environ.update(isolated)
    os.umask(0o022)  # the user of the testbed's hosts must be able to read what tests write
    # A shell without job control starts what it puts into the background with these ignored, and runjob passes on only what
    # is not: the tests are about runjob, not about how pytest was started.
    for number in (signal.SIGQUIT, signal.SIGINT):
        if signal.getsignal(number) == signal.SIG_IGN:
            signal.signal(number, signal.SIG_DFL if number == signal.SIGQUIT else signal.default_int_handler)


@pytest.fixture
def root():
    """Skips a test of root's."""
    requirements.check_root()


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item, call):
    report = yield
    if call.excinfo is None:
        return report
    if call.excinfo.errisinstance(NeedsRoot):
        report.outcome = "skipped"
        report.longrepr = (str(item.path), None, f"Skipped: {call.excinfo.value}")
    elif call.excinfo.errisinstance((OutOfTime, subprocess.TimeoutExpired, TimeoutError)):
        report.sections.append(("time limit", OUT_OF_TIME))
    return report
