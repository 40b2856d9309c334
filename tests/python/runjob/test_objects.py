"""python/runjob/objects.py: Python objects among the ranks, without a framework."""

import pytest

from runjob import basics, objects, operations, process_sets
from runjob.exceptions import MismatchError


def _objects():
    basics.init()
    import sys

    no_framework = not {"torch", "numpy"} & set(sys.modules)
    mine = {"rank": basics.rank(), "text": "x" * 100_000 * basics.rank()}
    told = objects.broadcast_object(mine, root_rank=1, name="config")
    heard = objects.allgather_object(mine)
    with pytest.raises(TypeError, match="cannot pickle"):
        objects.broadcast_object((_ for _ in ()), root_rank=basics.rank())
    return (
        no_framework, told["rank"], len(told["text"]), (told is mine) == (basics.rank() == 1),
        [(each["rank"], len(each["text"])) for each in heard],
    )  # fmt: skip


def test_objects_of_all_sizes_arrive(run_ranks):
    expected = (True, 1, 100_000, True, [(rank, 100_000 * rank) for rank in range(3)])
    assert run_ranks(_objects, 3).results == [expected] * 3


def _objects_after_failures():
    basics.init()
    if basics.rank() == 0:
        with pytest.raises(TypeError, match="cannot pickle"):
            objects.broadcast_object(_ for _ in ())
    told = objects.broadcast_object("told")
    if basics.rank() == 0:
        with pytest.raises(MismatchError, match="rank 1 on localhost has joined"):
            objects.allgather_object("in vain")
    operations.join()
    return told, objects.allgather_object(basics.rank())


def test_objects_arrive_after_a_call_that_failed_on_some_ranks_only(run_ranks):
    assert run_ranks(_objects_after_failures, 2).results == [("told", [0, 1])] * 2


def _objects_in_sets():
    basics.init(process_sets="dynamic")
    gathered = []
    for members in ([0, 1], [1, 2], [0, 2]):
        some = process_sets.add_process_set(members)
        if some.included():
            gathered.append(objects.allgather_object(basics.rank(), process_set=some))
        process_sets.remove_process_set(some)
    return gathered


def test_objects_arrive_in_a_set_that_has_the_number_of_a_removed_one(run_ranks):
    assert run_ranks(_objects_in_sets, 3).results == [[[0, 1], [0, 2]], [[0, 1], [1, 2]], [[1, 2], [0, 2]]]


def _lambda():
    basics.init()
    return objects.broadcast_object((lambda x: x + 1) if basics.rank() == 0 else None)(1)


def test_a_lambda_arrives_where_cloudpickle_is_installed(run_ranks):
    pytest.importorskip("cloudpickle")
    assert run_ranks(_lambda, 2).results == [2, 2]
