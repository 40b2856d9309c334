"""python/runjob/torch/sparse.py: sums and averages of sparse tensors."""

import pytest
import torch

import runjob.torch as hvd


def _tensor(entries):
    """Of 4 x 2, with so many entries: row i is (i + 1) * (1, 10)."""
    indices = torch.arange(entries).unsqueeze(0)
    values = torch.tensor([[1.0, 10.0]]) * (indices.t() + 1)
    return torch.sparse_coo_tensor(indices, values, (4, 2), check_invariants=True)


def _sums():
    hvd.init()
    found = []
    for op in (hvd.Sum, hvd.Average):
        for number, entries in enumerate((hvd.rank() + 1, 0, 3 * hvd.rank())):
            wait = hvd.sparse_allreduce_async(_tensor(entries), f"{op}.{number}", op)
            found.append(wait().to_dense()[:, 0].tolist())
    scalar_entries = torch.sparse_coo_tensor([[0, 1], [1, 0]], [1.0, 2.0], (2, 2), check_invariants=True)
    found.append(hvd.sparse_allreduce_async(scalar_entries, "two", hvd.Sum)().to_dense().tolist())
    return found


def test_entries_of_all_ranks_are_added(call_ranks):
    sums = [[2.0, 2.0, 0.0, 0.0], [0.0] * 4, [1.0, 2.0, 3.0, 0.0]]
    averages = [[value / 2 for value in values] for values in sums]
    for found in call_ranks(_sums, 2):
        assert found == [*sums, *averages, [[0.0, 2.0], [4.0, 0.0]]]


@pytest.mark.parametrize(
    "tensor, op, text",
    [
        (torch.ones(2), hvd.Sum, "takes a sparse COO tensor"),
        ("x", hvd.Sum, "takes a sparse COO tensor"),
        (_tensor(1), hvd.Max, "op=Average or op=Sum, not 4"),
        (_tensor(1), 9, "op=9 is no reduction"),
    ],
)
def test_what_it_does_not_take(tensor, op, text):
    with pytest.raises(ValueError, match=text):
        hvd.sparse_allreduce_async(tensor, "x", op)
