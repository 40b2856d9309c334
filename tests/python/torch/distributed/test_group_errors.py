"""What the other ranks of a group see when one of them fails, disagrees, or does not call an operation."""

import os
import re
import signal
from datetime import timedelta

import pytest
import torch
import torch.distributed as dist

import runjob.torch.distributed  # noqa: F401  # registers the backend with any PyTorch


def caught(run):
    """The text of the error of `run`."""
    try:
        run()
    except Exception as error:
        return f"{type(error).__name__}: {error}"
    return "no error"


def one_raises():
    dist.init_process_group("runjob")
    if dist.get_rank() == 1:
        raise ValueError("rank 1 has a bad batch")
    return caught(lambda: dist.all_reduce(torch.zeros(4)))


def one_is_killed():
    dist.init_process_group("runjob")
    if dist.get_rank() == 1:
        os.kill(os.getpid(), signal.SIGKILL)
    return caught(lambda: dist.all_reduce(torch.zeros(4)))


def test_the_exception_of_another_rank_is_in_the_error(run_ranks):
    job = run_ranks(one_raises, 2, status=1)
    assert "all" in job.results[0] and "ValueError: rank 1 has a bad batch" in job.results[0]


def test_a_killed_rank_is_named(run_ranks, monkeypatch):
    monkeypatch.setenv("RUNJOB_CONTINUE_ON_FAILURE", "1")  # rank 0 may return
    job = run_ranks(one_is_killed, 2, status=None)
    assert job.status == 128 + signal.SIGKILL
    assert "rank 1" in job.results[0]


def one_does_not_call():
    dist.init_process_group("runjob", timeout=timedelta(seconds=1))
    store = dist.distributed_c10d._get_default_store()
    store.set_timeout(timedelta(minutes=3))
    if dist.get_rank() == 1:
        store.wait(["rank 0 has its errors"])
        return None
    texts = [caught(lambda: dist.all_reduce(torch.zeros(4))) for _ in range(2)]
    store.set("rank 0 has its errors", "")
    return texts


def test_the_groups_time_limit_ends_it(run_ranks):
    job = run_ranks(one_does_not_call, 2, status=None)
    text, again = job.results[0]
    assert "allreduce number 1 of group" in text and "is not done after 1 s" in text
    assert "the group has ended" in again


def wrong_arguments():
    dist.init_process_group("runjob")
    texts = [
        caught(lambda: dist.all_reduce(torch.zeros(4).to(torch.float8_e5m2))),
        caught(lambda: dist.all_reduce(torch.zeros(4), dist.ReduceOp.BAND)),
        caught(lambda: dist.all_to_all_single(torch.zeros(3), torch.zeros(3))),
        caught(lambda: dist.all_gather_into_tensor(torch.zeros(3), torch.zeros(2))),
        caught(lambda: dist.new_group([0])) if dist.get_rank() == 0 else caught(lambda: dist.new_group([0]) and None),
    ]
    tensor = torch.ones(2)
    dist.all_reduce(tensor)  # the group goes on
    dist.destroy_process_group()
    return texts, tensor.tolist(), caught(lambda: dist.all_reduce(tensor))


@pytest.mark.parametrize("np", [2])
def test_wrong_arguments_are_refused_before_anything_is_sent(run_ranks, np):
    for texts, total, after in run_ranks(wrong_arguments, np).results:
        assert "SUM of torch.float8_e5m2" in texts[0]
        assert "bitwise" in texts[1]
        assert "cannot be divided among 2 ranks" in texts[2]
        assert "has 3 elements" in texts[3]
        assert total == [2.0, 2.0]
        assert after != "no error"


def hooks_are_on():
    os.environ["TORCH_DISTRIBUTED_DEBUG"] = "DETAIL"
    dist.set_debug_level_from_env()
    dist.init_process_group("runjob")
    total = torch.ones(2)
    dist.all_reduce(total)
    kind = type(dist.group.WORLD).__name__
    dist.destroy_process_group()
    return total.tolist(), kind


def test_debugging_in_detail_wraps_the_backend(run_ranks):
    assert run_ranks(hooks_are_on, 2).results == [([2.0, 2.0], "ProcessGroup")] * 2


def a_future_times_out():
    dist.init_process_group("runjob", timeout=timedelta(seconds=1))
    store = dist.distributed_c10d._get_default_store()
    store.set_timeout(timedelta(minutes=3))
    if dist.get_rank() == 1:
        store.wait(["rank 0 has its errors"])
        return None
    works = [dist.all_reduce(torch.zeros(4), async_op=True) for _ in range(2)]
    texts = [caught(lambda: works[0].get_future().wait()), caught(works[1].wait)]
    store.set("rank 0 has its errors", "")
    return texts


def test_the_time_limit_reaches_futures(run_ranks):
    of_future, of_work = run_ranks(a_future_times_out, 2, status=None).results[0]
    assert "is not done after 1 s" in of_future
    assert "is not done after 1 s" in of_work


def gathers_of_other_sizes():
    dist.init_process_group("runjob")
    room = [torch.zeros(2), torch.zeros(2)]
    texts = []
    for count in (3, 1):
        mine = torch.ones(count if dist.get_rank() else 2)
        texts.append(caught(lambda: dist.all_gather(room, mine)))
        texts.append(caught(dist.all_gather(room, mine, async_op=True).wait))
    total = torch.ones(2)
    dist.all_reduce(total)  # the group goes on
    return texts, total.tolist()


def test_gathers_that_do_not_fill_the_outputs_are_errors(run_ranks):
    for texts, total in run_ranks(gathers_of_other_sizes, 2).results:
        for text, elements in zip(texts, (3, 3, 1, 1)):
            assert f"the ranks have given [2, {elements}] elements, in their order, and the outputs take [2, 2]" in text
        assert total == [2.0, 2.0]


def gathers_of_other_sizes_and_equal_sums():
    dist.init_process_group("runjob")
    rank = dist.get_rank()
    mine, room = torch.ones(3 - 2 * rank), [torch.zeros(1), torch.zeros(3)]
    texts = [
        caught(lambda: dist.all_gather(room, mine)),
        caught(dist.all_gather(room, mine, async_op=True).wait),
        caught(lambda: dist.gather(mine, room if rank == 0 else None)),
        caught(lambda: dist.all_to_all_single(torch.zeros(4), torch.ones(4), [1, 3], [2, 2])),
    ]
    sizes = [torch.zeros(3), torch.zeros(1)]
    dist.all_gather(sizes, mine)
    return texts, [each.tolist() for each in sizes]


def test_sizes_in_another_order_are_errors(run_ranks):
    results = run_ranks(gathers_of_other_sizes_and_equal_sums, 2).results
    for rank, (texts, sizes) in enumerate(results):
        for text in texts[:2]:
            assert "the ranks have given [3, 1] elements, in their order, and the outputs take [1, 3]" in text
        assert ("[3, 1] elements" in texts[2]) == (rank == 0)
        assert "the ranks have given [2, 2] elements, in their order, and the outputs take [1, 3]" in texts[3]
        assert sizes == [[1.0] * 3, [1.0]]


def ranks_disagree():
    dist.init_process_group("runjob")
    rank = dist.get_rank()
    group = dist.new_group([1, 0])
    dist.all_reduce(torch.ones(1), group=group)
    two, three = torch.ones(2), torch.ones(3)
    texts = [
        caught(lambda: dist.all_reduce(three if rank else two)),
        caught(dist.all_reduce(three if rank else two, group=group, async_op=True).wait),
        caught(lambda: dist.broadcast(two, 0) if rank else dist.all_reduce(two)),
        caught(lambda: dist.broadcast(two, 1 if rank else 0)),
    ]
    works = [dist.all_reduce(tensor, async_op=True) for tensor in ((three, two) if rank else (two, three))]
    texts += [caught(work.wait) for work in works]
    dist.all_reduce(total := torch.ones(2))
    return texts, total.tolist()


def test_ranks_that_call_different_operations_get_an_error_at_once(run_ranks):
    for texts, total in run_ranks(ranks_disagree, 2).results:
        assert "MismatchError: allreduce number 1 of group" in texts[0]
        assert "the ranks disagree on the shape: [2] on rank 0" in texts[0] and "[3] on rank 1" in texts[0]
        assert "allreduce number 2 of group" in texts[1] and "allreduce number 2 of process set" in texts[1]
        assert "number 2 of group" in texts[2] and "disagree on the kind of operation" in texts[2]
        assert "broadcast number 3 of group" in texts[3] and "disagree on the root" in texts[3]
        assert "allreduce number 4 of group" in texts[4] and "allreduce number 5 of group" in texts[5]
        assert total == [2.0, 2.0]


def an_error_of_a_verbose_job():
    dist.init_process_group("runjob")
    return caught(lambda: dist.all_reduce(torch.ones(2 + dist.get_rank())))


def test_a_verbose_job_names_the_line_that_called(run_ranks, monkeypatch):
    monkeypatch.setenv("RUNJOB_VERBOSE", "1")
    for text in run_ranks(an_error_of_a_verbose_job, 2).results:
        assert "(test_group_errors.py:" in text


def one_group_in_two_forms():
    """PyTorch asks for the backend of a device inside a group, whose operations count together with the group's."""
    dist.init_process_group("runjob")
    backend = dist.group.WORLD._get_backend(torch.device("cpu"))
    totals = []
    for _ in range(3):
        options = dist.AllreduceOptions()
        backend.allreduce([inner := torch.ones(2)], options).wait()
        dist.all_reduce(outer := torch.ones(3))
        totals.append((inner.tolist(), outer.tolist()))
    text = caught(lambda: dist.all_reduce(torch.ones(2 + dist.get_rank())))
    return totals, text


def test_the_backend_inside_a_group_counts_with_the_group(run_ranks):
    for totals, text in run_ranks(one_group_in_two_forms, 2).results:
        assert totals == [([2.0] * 2, [2.0] * 3)] * 3
        assert "allreduce number 7 of group" in text
        assert re.search(r"allreduce number 7 of process set \d+: the ranks disagree", text)
