"""Runs tests of PyTorch's own suite for torch.distributed on three ranks, and prints the outcome of each as a line of JSON.

    python pytorch_suite.py FOLDER NAME...|--all

FOLDER is for files of the tests. --all stands for all tests but those that the suite skips for any backend that it does
not know.
The ranks of a test are forked processes, which meet at a file. So the job is one without a launcher.
"""

import json
import os
import pathlib
import sys
import unittest


def prepare(folder):
    """The suite reads these variables when it is imported."""
    for name in ("barrier", "test_dir"):
        pathlib.Path(folder, name).mkdir(parents=True, exist_ok=True)
    os.environ.update(BACKEND="runjob", WORLD_SIZE="3", TEMP_DIR=folder)


prepare(sys.argv[1])

import torch.multiprocessing  # noqa: E402
from torch.testing._internal.common_distributed import DistTestCases  # noqa: E402

import runjob.torch.distributed  # noqa: E402, F401  # registers the backend

for feature in ("ddp", "subgroup"):  # otherwise the suite skips these tests for a backend that it does not know
    DistTestCases.backend_feature[feature].add("runjob")

from torch.testing._internal.distributed.distributed_test import Barrier, DistributedTest, TestDistBackend  # noqa: E402

#: The ranks of a test wait for each other at its start and end. On a busy machine the suite's ten seconds are too few.
BARRIER_SECONDS = 240
Barrier.sync.__func__.__defaults__ = (None, BARRIER_SECONDS)


class Suite(TestDistBackend, DistributedTest._DistTestBase):
    def setUp(self):
        super().setUp()
        self._start_processes(torch.multiprocessing.get_context("fork").Process)


class Outcomes(unittest.TestResult):
    """Prints the outcome of each test when it ends: "passed", "skipped" or "failed", with the reason."""

    def startTest(self, test):
        super().startTest(test)
        self._outcome = ("passed", "")

    def addSkip(self, test, reason):
        self._outcome = ("skipped", reason)

    def addFailure(self, test, error):
        self._outcome = ("failed", self._exc_info_to_string(error, test))

    addError = addFailure

    def stopTest(self, test):
        super().stopTest(test)
        outcome, reason = self._outcome
        print(json.dumps({"name": test._testMethodName, "outcome": outcome, "reason": reason}), flush=True)


def all_names():
    names = unittest.TestLoader().getTestCaseNames(Suite)
    return [name for name in names if not getattr(getattr(Suite, name), "__unittest_skip__", False)]


def main(names):
    unittest.TestSuite(Suite(name) for name in (all_names() if names == ["--all"] else names)).run(Outcomes())


if __name__ == "__main__":
    main(sys.argv[2:])
