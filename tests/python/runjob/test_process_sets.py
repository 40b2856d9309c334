"""python/runjob/process_sets.py: the set of all ranks."""

import pytest

from runjob import process_sets


def test_before_init_it_knows_nothing():
    everyone = process_sets.global_process_set
    assert (everyone.process_set_id, everyone.ranks, everyone.size(), everyone.rank(), everyone.included()) == (
        0, None, None, None, None,
    )  # fmt: skip


def test_only_the_global_set_is_taken():
    assert process_sets.identifier(process_sets.global_process_set) == 0
    with pytest.raises(NotImplementedError, match="process sets are not in this version"):
        process_sets.identifier([0, 1])


def _describe():
    from runjob import basics

    basics.init()
    everyone = process_sets.global_process_set
    return str(everyone), everyone.size(), everyone.rank(), everyone.included()


def test_after_init_it_is_all_ranks(run_ranks):
    text = "ProcessSet(process_set_id=0, ranks=[0, 1], mpi_comm=None)"
    assert run_ranks(_describe, 2).results == [(text, 2, 0, True), (text, 2, 1, True)]
