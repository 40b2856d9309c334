"""alltoall and reducescatter of runjob.torch: values, gradients, and what is refused."""

import pytest
import torch

import runjob.torch as hvd

DTYPES = [torch.uint8, torch.int64, torch.float16, torch.bfloat16, torch.float32, torch.float64]


def rows_from(sender: int, receiver: int) -> int:
    return (sender + 2 * receiver) % 3


def block(sender: int, receiver: int, dtype: torch.dtype) -> torch.Tensor:
    rows = rows_from(sender, receiver)
    return (torch.arange(2 * rows) + 10 * sender + receiver).reshape(rows, 2).to(dtype)


def _alltoall():
    hvd.init()
    rank, size = hvd.rank(), hvd.size()
    for dtype in DTYPES:
        tensor = torch.cat([block(rank, other, dtype) for other in range(size)])
        expected = torch.cat([block(other, rank, dtype) for other in range(size)])
        received = [rows_from(other, rank) for other in range(size)]
        splits = [rows_from(rank, other) for other in range(size)]
        for given in (splits, torch.tensor(splits), torch.tensor(splits, dtype=torch.int32)):
            output, received_splits = hvd.alltoall(tensor, splits=given)
            assert output.dtype == dtype and torch.equal(output, expected)
            assert received_splits.dtype == torch.int32 and received_splits.tolist() == received
    even = torch.arange(size * 2.0) + 100 * rank
    output = hvd.alltoall(even)
    assert output.tolist() == [100.0 * other + 2 * rank + i for other in range(size) for i in range(2)]
    output, received_splits = hvd.synchronize(hvd.alltoall_async(even.t()))
    assert received_splits.tolist() == [2] * size


@pytest.mark.parametrize("np", [0, 1, 2, 3])
def test_alltoall_sends_each_rank_its_rows(call_ranks, np):
    call_ranks(_alltoall, np)


def _alltoall_gradient():
    hvd.init()
    rank, size = hvd.rank(), hvd.size()
    x = torch.ones(sum(rows_from(rank, other) for other in range(size)), 2, dtype=torch.float64, requires_grad=True)
    output, _ = hvd.alltoall(x, splits=[rows_from(rank, other) for other in range(size)])
    (output * (rank + 1)).sum().backward()
    return x.grad.tolist()


def test_alltoalls_gradients_go_back_where_the_rows_came_from(call_ranks):
    expected = [[[to + 1.0] * 2 for to in range(3) for _ in range(rows_from(rank, to))] for rank in range(3)]
    assert call_ranks(_alltoall_gradient, 3) == expected


def _reducescatter():
    hvd.init()
    rank, size = hvd.rank(), hvd.size()
    for dtype in DTYPES:
        for rows in (0, 1, 7):
            inputs = [(torch.arange(3 * rows).reshape(rows, 3) + other).to(dtype) for other in range(size)]
            first = sum(rows // size + (other < rows % size) for other in range(rank))
            mine = slice(first, first + rows // size + (rank < rows % size))
            total = torch.stack(inputs).to(torch.float64).sum(0)
            results = {hvd.Sum: total, hvd.Average: total / size, hvd.Max: inputs[-1].to(torch.float64)}
            for op, expected in results.items():
                output = hvd.reducescatter(inputs[rank], op=op)
                assert output.dtype == dtype and torch.equal(output, expected[mine].to(dtype)), (dtype, rows, op)
    scaled = hvd.reducescatter(torch.full((size,), 2.0 + rank), op=hvd.Sum, prescale_factor=0.5, postscale_factor=4.0)
    assert scaled.tolist() == [2 * sum(2.0 + other for other in range(size))]
    assert torch.equal(hvd.synchronize(hvd.reducescatter_async(torch.ones(size, 2))), torch.ones(1, 2))  # Average


@pytest.mark.parametrize("np", [0, 1, 2, 3])
def test_reducescatter_leaves_each_rank_its_rows(call_ranks, np):
    call_ranks(_reducescatter, np)


def _reducescatter_gradients():
    hvd.init()
    gradients = []
    for factors in ({"op": hvd.Average}, {"op": hvd.Sum}, {"op": hvd.Sum, "prescale_factor": 3.0, "postscale_factor": 0.5}):
        x = torch.ones(3, dtype=torch.float64, requires_grad=True)
        (hvd.reducescatter(x, **factors) * (hvd.rank() + 1)).sum().backward()
        gradients.append(x.grad.tolist())
    return gradients


def test_reducescatters_gradients_are_gathered_and_scaled(call_ranks):
    # Of three rows rank 0 has two. Horovod multiplies by the number of ranks for Sum.
    gathered = [1.0, 1.0, 2.0]
    expected = [[factor * each for each in gathered] for factor in (1, 2, 3)]
    assert call_ranks(_reducescatter_gradients, 2) == [expected] * 2


def _refused():
    hvd.init()
    size = hvd.size()
    for call in (
        lambda: hvd.alltoall(torch.tensor(1.0)),
        lambda: hvd.alltoall(torch.ones(size + 1)),
        lambda: hvd.alltoall(torch.ones(2), splits=[1] * (size + 1)),
        lambda: hvd.alltoall(torch.ones(2), splits=[]),
        lambda: hvd.alltoall(torch.ones(2), splits=[0.5, 1.5]),
        lambda: hvd.reducescatter(torch.tensor(1.0)),
        lambda: hvd.reducescatter(torch.ones(2).bool()),
    ):
        with pytest.raises(ValueError):
            call()
    with pytest.raises(hvd.HorovodInternalError, match="the ranks disagree on the shape"):
        hvd.alltoall(torch.ones(size, 1 + hvd.rank()))
    return hvd.reducescatter(torch.ones(size)).tolist()  # the job goes on


def test_what_cannot_work_is_refused(call_ranks):
    assert call_ranks(_refused, 2) == [[1.0]] * 2
