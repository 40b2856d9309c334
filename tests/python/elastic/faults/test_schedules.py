"""Random schedules with real processes on four hosts. tests/launcher/elastic/elastic_schedule_test.cc has those over the state machine alone.

Each seed is a test; TESTS_SCHEDULES is their number, 20 without it. In every fourth, networks are interrupted and processes stopped too, which
takes longer.
"""

import os

import pytest
from schedules import HOSTS, Schedule
from testbed import Testbed


@pytest.fixture(scope="module")
def bed():
    with Testbed(hosts=HOSTS) as bed:
        yield bed


@pytest.mark.parametrize("seed", range(int(os.environ.get("TESTS_SCHEDULES", "20"))))
def test_whatever_happens_the_state_is_right_and_nothing_is_left(bed, seed):
    Schedule(bed, seed, is_disturbed=seed % 4 == 3).run()
