"""python/runjob/process_sets.py: sets of ranks, as Horovod's users know them."""

import pytest

import runjob.torch as hvd
from runjob import process_sets


def test_before_init_they_know_nothing():
    everyone = process_sets.global_process_set
    assert (everyone.process_set_id, everyone.ranks, everyone.size(), everyone.rank(), everyone.included()) == (
        0, None, None, None, None,
    )  # fmt: skip
    some = hvd.ProcessSet([2, 0])
    assert (some.process_set_id, some.ranks, some.size(), some.rank(), some.included()) == (None, [0, 2], None, None, None)
    assert str(some) == "ProcessSet(process_set_id=None, ranks=[0, 2], mpi_comm=None)"


@pytest.mark.parametrize("ranks", [5, "01", [0.5], [True], [None]])
def test_what_is_no_list_of_ranks_is_refused(ranks):
    with pytest.raises(ValueError, match="ProcessSet takes a list of ranks or an mpi4py communicator"):
        hvd.ProcessSet(ranks)


def test_only_registered_sets_are_taken():
    assert process_sets.identifier(process_sets.global_process_set) == 0
    with pytest.raises(ValueError, match=r"process_set=\[0, 1\] is not a ProcessSet"):
        process_sets.identifier([0, 1])
    with pytest.raises(ValueError, match="is not registered: give it to init"):
        process_sets.identifier(hvd.ProcessSet([0]))


def _sets_that_nobody_registered():
    hvd.init(process_sets="dynamic")
    known, texts = hvd.add_process_set([0]), []
    by_hand, copied = hvd.ProcessSet([0]), hvd.ProcessSet([0])
    by_hand.process_set_id, copied.process_set_id = 42, known.process_set_id
    assert process_sets.identifier(copied) == known.process_set_id
    hvd.remove_process_set(known)
    for each in (by_hand, copied):
        try:
            process_sets.identifier(each)
        except ValueError as error:
            texts.append(str(error))
    process_sets.check_number(0)
    try:
        process_sets.check_number(42)
    except ValueError as error:
        texts.append(str(error))
    return ["is not registered" in text for text in texts[:2]], texts[2:]


def test_a_number_that_is_given_by_hand_must_be_that_of_a_set(run_ranks):
    assert run_ranks(_sets_that_nobody_registered, 2).results == [([True, True], ["there is no process set 42; those of this job are 0"])] * 2


def test_nothing_is_added_before_init():
    with pytest.raises(ValueError, match="not initialized"):
        hvd.add_process_set([0])
    with pytest.raises(ValueError, match="not initialized"):
        hvd.get_process_set_ids_and_ranks()
    assert hvd.remove_process_set(hvd.ProcessSet([0])) is False


def _describe():
    hvd.init()
    everyone = hvd.global_process_set
    return str(everyone), everyone.size(), everyone.rank(), everyone.included()


def test_after_init_the_global_one_is_all_ranks(run_ranks):
    text = "ProcessSet(process_set_id=0, ranks=[0, 1], mpi_comm=None)"
    assert run_ranks(_describe, 2).results == [(text, 2, 0, True), (text, 2, 1, True)]


def _place(some):
    try:
        rank = some.rank()
    except ValueError as error:
        rank = str(error)
    return str(some), some.size(), rank, some.included()


def _static_sets():
    from horovod.torch import mpi_ops

    pairs = [hvd.ProcessSet([1, 0]), hvd.ProcessSet(range(1, 3))]
    hvd.init(process_sets=pairs)
    assert mpi_ops._basics._get_process_set_ids_and_ranks() == {0: [0, 1, 2], 1: [0, 1], 2: [1, 2]}
    with pytest.raises(ValueError, match="HOROVOD_DYNAMIC_PROCESS_SETS=1"):
        hvd.add_process_set([0, 2])
    with pytest.raises(ValueError, match="HOROVOD_DYNAMIC_PROCESS_SETS=1"):
        hvd.remove_process_set(pairs[0])
    places = [_place(each) for each in pairs]
    hvd.shutdown()
    assert pairs[0].process_set_id is None and pairs[0].size() is None
    hvd.init()
    assert hvd.get_process_set_ids_and_ranks() == {0: [0, 1, 2]} and pairs[0].included() is None
    return places


def test_static_sets(run_ranks):
    first, second = (f"ProcessSet(process_set_id={i}, ranks={ranks}, mpi_comm=None)" for i, ranks in ((1, [0, 1]), (2, [1, 2])))
    assert run_ranks(_static_sets, 3).results == [
        [(first, 2, 0, True), (second, 2, f"rank 0 is not in {second}", False)],
        [(first, 2, 1, True), (second, 2, 0, True)],
        [(first, 2, f"rank 2 is not in {first}", False), (second, 2, 1, True)],
    ]


def _dynamic_sets():
    hvd.init(process_sets="dynamic")
    first, second = hvd.add_process_set([0, 1]), hvd.add_process_set(hvd.ProcessSet([2, 1]))
    assert (first.process_set_id, second.process_set_id, second.ranks) == (1, 2, [1, 2])
    for ranks, why in (([0, 1], "already exists"), ([0, 1, 2], "already exists"), ([3], "no rank 3"), ([1, 1], "in it twice"), ([], "at least one")):
        with pytest.raises(ValueError, match=why):
            hvd.add_process_set(ranks)
    assert hvd.remove_process_set(first) is True
    assert first.process_set_id is None and first.included() is None
    assert hvd.remove_process_set(first) is False and hvd.remove_process_set(hvd.global_process_set) is False
    with pytest.raises(ValueError, match="is not registered"):
        hvd.barrier(process_set=first)
    assert hvd.add_process_set(first) is first and first.process_set_id == 1
    return hvd.get_process_set_ids_and_ranks()


def test_dynamic_sets(run_ranks):
    assert run_ranks(_dynamic_sets, 3).results == [{0: [0, 1, 2], 1: [0, 1], 2: [1, 2]}] * 3


def _disagree():
    hvd.init(process_sets="dynamic")
    with pytest.raises(hvd.HorovodInternalError) as caught:
        hvd.add_process_set([0, 1] if hvd.rank() else [0])
    assert not isinstance(caught.value, ValueError)
    with pytest.raises(hvd.HorovodInternalError, match="to add .* to remove|to remove .* to add"):
        some = hvd.add_process_set([0])
        hvd.remove_process_set(some) if hvd.rank() else hvd.add_process_set([1])
    return str(caught.value)


def test_ranks_that_disagree_are_told_so(run_ranks):
    for text in run_ranks(_disagree, 2).results:
        assert text.startswith("the ranks ask for different process sets: to add [0] on rank 0 (")


def _duplicate():
    sets = [hvd.ProcessSet([0]), hvd.ProcessSet([0]), hvd.ProcessSet([1]), hvd.ProcessSet([0, 1])]
    try:
        hvd.init(process_sets=sets)
    except ValueError as error:
        return str(error), [each.process_set_id for each in sets], hvd.is_initialized()


def test_a_duplicate_among_static_sets_is_an_error_and_the_job_is_there(run_ranks):
    for text, ids, is_initialized in run_ranks(_duplicate, 2).results:
        assert "already exists" in text or "is a duplicate" in text
        assert ids == [1, None, 2, None] and is_initialized
