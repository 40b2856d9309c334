"""runjob.torch.join(): ranks that have less data than others."""

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
