"""Every operation of torch.distributed on a group of runjob's, beside the same operation of Gloo in the same processes.

With two ranks the results have the same bits. With three, sums of floats may differ in their last bits, because Gloo
adds in another order.
"""

import pytest
import torch
import torch.distributed as dist
from both_backends import begin

ReduceOp = dist.ReduceOp


def groups():
    """A group of Gloo's and one of runjob's, both of all ranks."""
    begin("gloo")
    return dist.group.WORLD, dist.new_group(backend="runjob")


def values(rank, dtype, count=6):
    """Small numbers that differ between the ranks and of which sums are exact."""
    numbers = (torch.arange(count) * (rank + 2)) % 5
    if dtype == torch.bool:
        return numbers % 2 == 0
    if dtype.is_complex:
        return torch.complex(numbers.float(), -numbers.float()).to(dtype)
    return numbers.to(dtype)


def both(run):
    """The results of `run(group, rank, size)`, for Gloo and for runjob."""
    pair = groups()
    rank, size = dist.get_rank(), dist.get_world_size()
    try:
        return [run(group, rank, size) for group in pair]
    finally:
        dist.destroy_process_group()


def reduced(dtype, op_name):
    op = getattr(ReduceOp, op_name)

    def run(group, rank, size):
        tensor = values(rank, dtype)
        dist.all_reduce(tensor, op, group)
        target = values(rank, dtype)
        dist.reduce(target, size - 1, op, group)
        return tensor.tolist(), target.tolist() if rank == size - 1 else None

    return both(run)


SIMPLE = [(torch.float32, "SUM"), (torch.float64, "MAX"), (torch.int32, "PRODUCT"), (torch.int64, "MIN"), (torch.uint8, "SUM")]
ODD = [(torch.float16, "SUM"), (torch.bfloat16, "SUM"), (torch.complex64, "SUM"), (torch.int8, "MIN"), (torch.float32, "AVG")]
BITS = [(torch.int32, "BAND"), (torch.int64, "BOR"), (torch.uint8, "BXOR")]


@pytest.mark.parametrize(("dtype", "op"), SIMPLE + ODD + BITS, ids=str)
def test_reductions_equal_gloos(call_ranks, dtype, op):
    for gloo, ours in call_ranks(reduced, 2, dtype, op):
        assert ours == gloo


def reductions_that_gloo_lacks(rank, size, group):
    results = {}
    for dtype in (torch.uint32, torch.uint64, torch.int16, torch.uint16):
        for op in (ReduceOp.SUM, ReduceOp.MIN, ReduceOp.MAX):
            # The highest bit is set in rank 0's values, so that signed and unsigned order differ.
            limit = torch.iinfo(dtype).max
            tensor = torch.tensor([limit - 5, 3] if rank == 0 else [5, limit - 3], dtype=dtype)
            dist.all_reduce(tensor, op, group)
            results[f"{dtype} {op}"] = tensor.tolist()
    scaled = torch.full((3,), 1.0)
    dist.all_reduce(scaled, dist._make_nccl_premul_sum(2.5), group)
    results["premul"] = scaled.tolist()
    by_tensor = torch.full((3,), 1.0)
    dist.all_reduce(by_tensor, dist._make_nccl_premul_sum(torch.tensor([float(rank + 1)])), group)
    results["premul by a tensor"] = by_tensor.tolist()
    return results


def only_ours(run, *arguments):
    begin("runjob")
    try:
        return run(dist.get_rank(), dist.get_world_size(), dist.group.WORLD, *arguments)
    finally:
        dist.destroy_process_group()


def run_reductions_that_gloo_lacks():
    return only_ours(reductions_that_gloo_lacks)


def test_reductions_that_gloo_lacks(call_ranks):
    for results in call_ranks(run_reductions_that_gloo_lacks, 2):
        for dtype in (torch.uint32, torch.uint64, torch.int16, torch.uint16):
            limit = torch.iinfo(dtype).max
            assert results[f"{dtype} {ReduceOp.SUM}"] == [limit, limit]
            assert results[f"{dtype} {ReduceOp.MIN}"] == [5, 3]
            assert results[f"{dtype} {ReduceOp.MAX}"] == [limit - 5, limit - 3]
        assert results["premul"] == [5.0] * 3
        assert results["premul by a tensor"] == [3.0] * 3


def moves():
    def run(group, rank, size):
        results = []

        def note(*tensors):
            results.append([tensor.tolist() for tensor in tensors])

        tensor = values(rank, torch.float32).reshape(2, 3)
        dist.broadcast(tensor, size - 1, group)
        note(tensor)
        parts = [torch.zeros(2, 3) for _ in range(size)]
        dist.all_gather(parts, torch.full((2, 3), float(rank)), group)
        note(*parts)
        whole = torch.zeros(2 * size, dtype=torch.int16 if group is not dist.group.WORLD else torch.int32)
        dist.all_gather_into_tensor(whole, torch.full((2,), rank, dtype=whole.dtype), group)
        note(whole)
        out = torch.zeros(2)
        dist.reduce_scatter(out, [torch.full((2,), float(rank + other)) for other in range(size)], group=group)
        note(out)
        out = torch.zeros(2)
        dist.reduce_scatter_tensor(out, torch.arange(2.0 * size) + rank, group=group)
        note(out)
        gathered = [torch.zeros(3) for _ in range(size)] if rank == 1 else None
        dist.gather(torch.full((3,), float(rank)), gathered, 1, group)
        note(*(gathered or []))
        out = torch.zeros(3)
        dist.scatter(out, [torch.full((3,), 10.0 + other) for other in range(size)] if rank == 1 else None, 1, group)
        note(out)
        out = torch.zeros(2 * size)
        dist.all_to_all_single(out, torch.arange(2.0 * size) + 100 * rank, group=group)
        note(out)
        # Rank r sends r + o + 1 rows to rank o.
        sends, receives = [rank + other + 1 for other in range(size)], [other + rank + 1 for other in range(size)]
        out = torch.zeros(sum(receives), 2)
        dist.all_to_all_single(out, torch.arange(2.0 * sum(sends)).reshape(-1, 2), receives, sends, group)
        note(out)
        outs = [torch.zeros(2) for _ in range(size)]
        dist.all_to_all(outs, [torch.full((2,), rank * 10.0 + other) for other in range(size)], group)
        note(*outs)
        objects = [None] * size
        dist.all_gather_object(objects, {"rank": rank}, group)
        results.append(objects)
        dist.barrier(group)
        return results

    return both(run)


@pytest.mark.parametrize("np", [2, 3])
def test_moves_equal_gloos(call_ranks, np):
    for gloo, ours in call_ranks(moves, np):
        assert ours == gloo


def unequal():
    def run(rank, size, group):
        parts = [torch.zeros(other + 1, dtype=torch.float8_e5m2) for other in range(size)]
        dist.all_gather(parts, torch.full((rank + 1,), rank + 1.0).to(torch.float8_e5m2), group)
        outs = [torch.zeros(other + 1) for other in range(size)]
        dist.all_to_all(outs, [torch.full((rank + 1,), 10.0 * rank + other) for other in range(size)], group)
        out = torch.zeros(rank + 1)
        dist.reduce_scatter(out, [torch.full((other + 1,), float(rank + 1)) for other in range(size)], group=group)
        return [part.float().tolist() for part in parts], [each.tolist() for each in outs], out.tolist()

    return only_ours(run)


def test_lists_of_unequal_tensors(call_ranks):
    for rank, (gathered, exchanged, scattered) in enumerate(call_ranks(unequal, 3)):
        assert gathered == [[float(other + 1)] * (other + 1) for other in range(3)]
        assert exchanged == [[10.0 * other + rank] * (other + 1) for other in range(3)]
        assert scattered == [6.0] * (rank + 1)


def views_and_empty_tensors():
    def run(rank, size, group):
        base = torch.full((4, 3), float(rank + 1))
        dist.all_reduce(base[:, 1], group=group)
        transposed = torch.full((2, 3), float(rank)).t()
        dist.broadcast(transposed, 1, group)
        whole = torch.zeros(2 * size, 2).t()
        dist.all_gather_into_tensor(whole, torch.full((2, 2), float(rank)), group)
        empty = torch.zeros(0)
        dist.all_reduce(empty, group=group)
        dist.broadcast(empty, 0, group)
        return base.tolist(), transposed.tolist(), whole.tolist(), empty.shape == (0,)

    return only_ours(run)


def test_views_and_empty_tensors(call_ranks):
    """Gloo writes beside a column, and refuses the gather into a view."""
    for rank, (base, transposed, whole, is_empty) in enumerate(call_ranks(views_and_empty_tensors, 2)):
        assert base == [[rank + 1.0, 3.0, rank + 1.0]] * 4
        assert transposed == [[1.0, 1.0]] * 3
        assert whole == [[0.0, 0.0, 0.0, 0.0], [1.0, 1.0, 1.0, 1.0]]
        assert is_empty


def dropped_works():
    def run(rank, size, group):
        for step in range(50):
            dist.all_reduce(torch.full((50_000,), float(step)), group=group, async_op=True)  # dropped at once
        kept = torch.full((4,), float(rank))
        work = dist.all_reduce(kept, group=group, async_op=True)
        future = work.get_future().then(lambda done: done.value()[0] + 1)
        result = future.wait().tolist()
        return kept.tolist(), result, work.is_completed(), work.is_success()

    return only_ours(run)


def test_works_that_are_dropped_keep_their_tensors(call_ranks):
    assert call_ranks(dropped_works, 2) == [([1.0] * 4, [2.0] * 4, True, True)] * 2


def many_tensors_at_once():
    def run(rank, size, group):
        inputs = [torch.full((count,), float(rank + count)) for count in (2, 0, 3, 3, 3, 3, 3, 3, 1)]
        outputs = [[torch.zeros_like(tensor) for tensor in inputs] for _ in range(size)]
        dist.all_gather_coalesced(outputs, inputs, group)
        bits = [torch.full((3,), 1 << (rank + place), dtype=torch.int32) for place in range(7)]
        dist.all_reduce_coalesced(bits, ReduceOp.BOR, group)
        return [[tensor.tolist() for tensor in row] for row in outputs], [tensor.tolist() for tensor in bits]

    return only_ours(run)


def test_one_call_takes_many_tensors(call_ranks):
    for gathered, bits in call_ranks(many_tensors_at_once, 2):
        assert gathered == [[[float(rank + count)] * count for count in (2, 0, 3, 3, 3, 3, 3, 3, 1)] for rank in range(2)]
        assert bits == [[3 << place] * 3 for place in range(7)]


def views_that_change_what_is_in_memory():
    """The negative of real numbers, and the conjugate of complex ones. PyTorch itself refuses the latter in most calls."""

    def run(rank, size, group):
        numbers = torch.tensor([1.0, 3.0]) * (rank + 1)
        sent = torch._neg_view(numbers)
        dist.broadcast(sent, 1, group)
        whole = torch.zeros(4)
        dist.all_gather_into_tensor(whole, torch._neg_view(torch.full((2,), rank + 5.0)), group)
        received = torch._neg_view(torch.zeros(2))
        dist.all_to_all_single(received, torch.full((2,), rank + 1.0), group=group)
        total = torch._neg_view(torch.full((2,), rank + 1.0))
        dist.all_reduce(total, group=group)
        conjugate = torch.tensor([1 + 2j, 3 - 1j]).conj()
        parts = [torch.zeros(2, dtype=torch.complex64) for _ in range(size)] if rank == 0 else None
        dist.gather(conjugate, parts, 0, group)
        return [tensor.tolist() for tensor in (sent, numbers, whole, received, total, *(parts or []))]

    return only_ours(run)


def test_views_that_change_what_is_in_memory(call_ranks):
    for rank, found in enumerate(call_ranks(views_that_change_what_is_in_memory, 2)):
        assert found[:5] == [[-2.0, -6.0], [2.0, 6.0], [-5.0, -5.0, -6.0, -6.0], [1.0, 2.0], [-3.0, -3.0]]
        assert found[5:] == ([[1 - 2j, 3 + 1j]] * 2 if rank == 0 else [])
