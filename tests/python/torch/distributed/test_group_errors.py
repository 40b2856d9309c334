"""What the other ranks of a group see when one of them fails, disagrees, or does not call an operation."""

import os
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
        for text, elements in zip(texts, (5, 5, 3, 3)):
            assert f"the ranks have given {elements} elements in all, and the outputs have room for 4" in text
        assert total == [2.0, 2.0]
