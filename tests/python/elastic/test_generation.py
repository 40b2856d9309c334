"""python/runjob/elastic/generation.py in a job that is not elastic; test_elastic_jobs.py has elastic ones."""

import pytest

import runjob.numpy as hvd
from runjob.elastic import commits, generation, is_elastic, pending


def _asked():
    before = is_elastic()
    hvd.init()
    largest = [generation.largest(value, "votes") for value in (hvd.rank(), 7 * (hvd.rank() == 0), 0)]
    return before, is_elastic(), pending(), commits(), largest


def test_a_static_job_is_asked_for_nothing(call_ranks):
    assert call_ranks(_asked, 3) == [(False, False, (0, False), [-1, -1, -1], [2, 7, 0])] * 3


def test_they_need_the_job():
    with pytest.raises(ValueError, match="call init"):
        commits()
