"""runjob.torch.join(): ranks that have less data than others."""

import pytest
import torch


def uneven(rank):
    import runjob.torch as hvd

    hvd.init()
    sums, averages = [], []
    for _ in range(1 + rank):
        sums.append(hvd.allreduce(torch.ones(2), op=hvd.Sum, name="sum").tolist())
        averages.append(hvd.allreduce(torch.ones(2), name="average").tolist())
    last = hvd.join()
    after = hvd.allreduce(torch.ones(1), op=hvd.Sum, name="after").item()
    hvd.shutdown()
    return sums, averages, last, after


def test_zeros_of_a_rank_that_has_joined_take_part_until_all_have(call_ranks):
    for rank, (sums, averages, last, after) in enumerate(call_ranks(uneven_of_rank, 3)):
        assert sums == [[3.0 - step] * 2 for step in range(1 + rank)]
        assert [average[0] for average in averages] == [torch.tensor((3.0 - step) / 3).item() for step in range(1 + rank)]
        assert (last, after) == (2, 3.0)


def uneven_of_rank():
    import os

    return uneven(int(os.environ["RUNJOB_RANK"]))


def average_bytes_with_one_joined():
    import runjob.torch as hvd

    hvd.init()
    if hvd.rank() == 2:
        return hvd.join()
    few = hvd.allreduce(torch.tensor([200, 255], dtype=torch.uint8), name="few").tolist()
    many = hvd.allreduce(torch.full((70000,), 30000, dtype=torch.int16), name="many").unique().tolist()
    scattered = hvd.grouped_allreduce([torch.tensor([-120], dtype=torch.int8)] * 2, name="group")
    hvd.join()
    return few, many, [each.item() for each in scattered]


def test_the_zeros_of_a_rank_that_has_joined_count_in_averages_of_short_integers(call_ranks):
    results = call_ranks(average_bytes_with_one_joined, 3)
    assert results[:2] == [([133, 170], [20000], [-80, -80])] * 2


def gather_with_one_joined():
    import runjob.torch as hvd

    hvd.init()
    if hvd.rank() == 1:
        return hvd.join()
    try:
        hvd.allgather(torch.ones(1), name="x")
    except hvd.HorovodInternalError as error:
        hvd.join()
        return str(error)


def test_other_operations_raise_while_a_rank_has_joined(call_ranks):
    text, last = call_ranks(gather_with_one_joined, 2)
    assert "rank 1 on localhost has joined, and only allreduce goes on without it" in text
    assert last == 0


def _weight_after(steps_of_rank, unfreeze_before=None):
    """Two epochs of steps with gradients of 1 on all ranks; a rank joins when its steps are over, which may be at once."""
    import runjob.torch as hvd

    hvd.init()
    weights = [torch.zeros(2, requires_grad=True), torch.zeros(3, requires_grad=unfreeze_before is None)]
    optimizer = hvd.DistributedOptimizer(torch.optim.SGD(weights, lr=1.0))
    seen = []
    for epoch in range(2):
        for step in range(steps_of_rank[hvd.rank()]):
            if step == unfreeze_before:
                weights[1].requires_grad_()
            optimizer.zero_grad()
            sum(weight.sum() for weight in weights).backward()
            optimizer.step()
        hvd.join()
        weights[1].requires_grad_()  # on the ranks, too, that had no such step
        hvd.broadcast_parameters(weights, root_rank=max(range(hvd.size()), key=steps_of_rank.__getitem__))
        seen.append([round(weight[0].item(), 4) for weight in weights])
        optimizer.zero_grad()
        sum(weight.sum() for weight in weights).backward()
        optimizer.step()  # all ranks together
    return seen


def test_a_rank_may_join_before_its_first_step(call_ranks):
    one = [-0.6667 * 2] * 2  # two ranks of three have a gradient, in two steps
    for steps in ([2, 0, 2], [0, 2, 2]):
        for seen in call_ranks(_weight_after, 3, steps):
            assert seen == [pytest.approx(one, abs=1e-3), pytest.approx([2 * one[0] - 1] * 2, abs=1e-3)]


def test_parameters_may_be_unfrozen_after_a_rank_has_joined(call_ranks):
    for seen in call_ranks(_weight_after, 2, [3, 1], 2):
        # The first: a step of both, two of one rank. The second is unfrozen for the last step of an epoch, and stays so.
        assert seen == [pytest.approx([-2.0, -0.5]), pytest.approx([-5.0, -3.5])]


def _unnamed_after_join():
    """Ranks that have called different numbers of unnamed operations count them anew."""
    import runjob.torch as hvd

    hvd.init()
    found = []
    for _ in range(2):
        for _ in range(1 + 2 * hvd.rank()):
            hvd.allreduce(torch.ones(1), op=hvd.Sum)
            hvd.synchronize(hvd.allreduce_async(torch.ones(1), op=hvd.Sum))
        hvd.join()
        found.append(hvd.allreduce(torch.ones(1), op=hvd.Sum).item())
        found.append(hvd.synchronize(hvd.allreduce_async(torch.ones(1), op=hvd.Sum)).item())
    return found


def test_unnamed_operations_agree_again_after_a_join(call_ranks):
    assert call_ranks(_unnamed_after_join, 2) == [[2.0] * 4] * 2
