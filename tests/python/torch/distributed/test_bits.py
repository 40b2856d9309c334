"""With two ranks each operation gives the bits that Gloo gives, for every dtype and reduction that Gloo has."""

import pytest
import torch
import torch.distributed as dist
from both_backends import begin, digest, same_bits

#: Gloo has no operation for int16, for uint16, uint32 and uint64, and for float8.
DTYPES = ["float32", "float64", "float16", "bfloat16", "int8", "uint8", "int32", "int64", "bool", "complex64", "complex128"]
REDUCTIONS = ("SUM", "AVG", "PRODUCT", "MIN", "MAX", "BAND", "BOR", "BXOR")
COUNT = 1003  # not a multiple of what a vector instruction takes


def values(dtype, count=COUNT):
    """Random bits that differ between the ranks, but no NaN, of which the sign of a sum's is not defined."""
    generator = torch.Generator().manual_seed(11 + dist.get_rank())
    if dtype.is_complex:
        return torch.randn(count, dtype=dtype, generator=generator)
    if dtype.is_floating_point:
        return (torch.randn(count, generator=generator) * 30).to(dtype)
    if dtype == torch.bool:
        return torch.randint(0, 2, (count,), generator=generator).bool()
    return torch.randint(0, 256, (count * dtype.itemsize,), dtype=torch.uint8, generator=generator).view(dtype)


def reductions(dtype):
    """{name: a function of a group that returns tensors} for each reduction."""

    def reduced(op):
        def all_reduce(group):
            tensor = values(dtype)
            dist.all_reduce(tensor, op, group)
            return [tensor]

        def reduce(group):
            tensor = values(dtype)
            dist.reduce(tensor, 1, op, group)
            return [tensor] if dist.get_rank() == 1 else []

        def reduce_scatter_tensor(group):
            whole = values(dtype, 2 * COUNT)
            out = torch.empty(COUNT, dtype=dtype)
            dist.reduce_scatter_tensor(out, whole, op, group)
            return [out]

        def reduce_scatter(group):
            whole = values(dtype, 2 * COUNT)
            out = torch.empty(COUNT, dtype=dtype)
            dist.reduce_scatter(out, list(whole.chunk(2)), op, group)
            return [out]

        return all_reduce, reduce, reduce_scatter_tensor, reduce_scatter

    return {f"{run.__name__} {name}": run for name in REDUCTIONS for run in reduced(getattr(dist.ReduceOp, name))}


def moves(dtype):
    """The same for the operations that only move."""

    def broadcast(group):
        tensor = values(dtype)
        dist.broadcast(tensor, 1, group)
        return [tensor]

    def all_gather(group):
        parts = [torch.empty(COUNT, dtype=dtype) for _ in range(2)]
        dist.all_gather(parts, values(dtype), group)
        return parts

    def all_gather_into_tensor(group):
        whole = torch.empty(2 * COUNT, dtype=dtype)
        dist.all_gather_into_tensor(whole, values(dtype), group)
        return [whole]

    def gather(group):
        parts = [torch.empty(COUNT, dtype=dtype) for _ in range(2)] if dist.get_rank() == 0 else None
        dist.gather(values(dtype), parts, 0, group)
        return parts or []

    def scatter(group):
        out = torch.empty(COUNT, dtype=dtype)
        dist.scatter(out, list(values(dtype, 2 * COUNT).chunk(2)) if dist.get_rank() == 1 else None, 1, group)
        return [out]

    def all_to_all_single(group):
        out = torch.empty(2 * COUNT, dtype=dtype)
        dist.all_to_all_single(out, values(dtype, 2 * COUNT), group=group)
        return [out]

    def all_to_all_with_splits(group):
        rank = dist.get_rank()
        sends, receives = ([300, 703], [300, 500]) if rank == 0 else ([500, 503], [703, 503])
        out = torch.empty(sum(receives), dtype=dtype)
        dist.all_to_all_single(out, values(dtype), receives, sends, group)
        return [out]

    def all_to_all(group):
        outs = [torch.empty(COUNT, dtype=dtype) for _ in range(2)]
        dist.all_to_all(outs, list(values(dtype, 2 * COUNT).chunk(2)), group)
        return outs

    runs = (broadcast, all_gather, all_gather_into_tensor, gather, scatter, all_to_all_single, all_to_all_with_splits, all_to_all)
    return {run.__name__: run for run in runs}


def attempt(run, group):
    """The tensors, or the text of the error. All ranks get it, before anything is sent."""
    try:
        return run(group), ""
    except Exception as error:
        return None, f"{type(error).__name__}: {error}".splitlines()[0]


def compare(name):
    """{operation: "same", "different", or the error of the one that lacks it}."""
    begin("gloo")
    groups = dist.group.WORLD, dist.new_group(backend="runjob")
    dtype, outcomes = getattr(torch, name), {}
    for operation, run in {**reductions(dtype), **moves(dtype)}.items():
        (gloo, objection), (ours, refusal) = (attempt(run, group) for group in groups)
        if gloo is not None and ours is not None:
            if dtype == torch.bool:  # Gloo adds bytes: the sum of two truths is a byte 2
                gloo, ours = ([tensor.view(torch.uint8) != 0 for tensor in tensors] for tensors in (gloo, ours))
            assert [tensor.shape for tensor in gloo] == [tensor.shape for tensor in ours]
            outcomes[operation] = "same" if all(map(same_bits, gloo, ours)) else f"different: {digest(gloo)}, {digest(ours)}"
        elif gloo is not None:
            outcomes[operation] = f"runjob lacks it: {refusal}"
        else:
            outcomes[operation] = "Gloo lacks it" if ours is not None else "both lack it"
    dist.destroy_process_group()
    return outcomes


@pytest.mark.parametrize("name", DTYPES)
def test_results_have_the_bits_of_gloos(call_ranks, name):
    for outcomes in call_ranks(compare, 2, name):
        found = {operation: outcome for operation, outcome in outcomes.items() if outcome.startswith(("different", "runjob"))}
        assert not found
        assert list(outcomes.values()).count("same") >= 15  # complex numbers have the moves and sums only
