"""python/runjob/torch/operations.py against NumPy, for every dtype and reduction, and what it refuses."""

from __future__ import annotations

import random

import numpy
import pytest
import torch

import runjob.torch as hvd
from doubling import Doubling
from runjob.torch.tensors import DTYPES

FLOATS = [torch.float16, torch.bfloat16, torch.float32, torch.float64]
INTEGERS = [torch.uint8, torch.int8, torch.uint16, torch.int16, torch.int32, torch.int64]
OPS = {"Average": hvd.Average, "Sum": hvd.Sum, "Min": hvd.Min, "Max": hvd.Max, "Product": hvd.Product}
SHAPES = [(), (0,), (1,), (3, 0, 2), (5, 7), (1025,)]


def make(dtype: torch.dtype, shape: tuple[int, ...], rank: int) -> torch.Tensor:
    """The tensor that `rank` brings: every rank can make all of them."""
    random_numbers = numpy.random.default_rng([rank, list(DTYPES).index(dtype), *shape])
    if dtype == torch.bool:
        return torch.from_numpy(random_numbers.integers(0, 2, shape)).to(dtype)
    if dtype in FLOATS:
        return torch.from_numpy(numpy.asarray(random_numbers.uniform(0.5, 1.5, shape))).to(dtype)
    low = 0 if dtype in (torch.uint8, torch.uint16) else -30
    return torch.from_numpy(random_numbers.integers(low, 30, shape)).to(dtype)


def as_numpy(tensor: torch.Tensor) -> numpy.ndarray:
    """float16 and bfloat16 as float64: NumPy has no bfloat16, and the sum is to be better than what it checks."""
    return tensor.to(torch.float64).numpy() if tensor.dtype in FLOATS else tensor.numpy()


def reduce_by_numpy(op: str, inputs: list[numpy.ndarray]) -> numpy.ndarray:
    stack = numpy.stack(inputs)
    if stack.dtype == bool:
        return stack.any(axis=0) if op in ("Sum", "Max") else stack.all(axis=0)
    if op == "Average":
        mean = stack.astype(numpy.float64).sum(axis=0) / len(inputs)
        return (mean if stack.dtype.kind == "f" else numpy.trunc(mean)).astype(stack.dtype)
    if op in ("Min", "Max"):
        return getattr(stack, op.lower())(axis=0)
    return {"Sum": numpy.add, "Product": numpy.multiply}[op].reduce(stack, axis=0, dtype=stack.dtype)  # wraps


def assert_equal(actual: torch.Tensor, expected: numpy.ndarray, dtype: torch.dtype, what: str, size: int) -> None:
    assert actual.dtype == dtype and tuple(actual.shape) == expected.shape, what
    if dtype in FLOATS:
        tolerance = 2 * size * torch.finfo(dtype).eps  # one rounding of a partial result per rank, twice to be safe
        numpy.testing.assert_allclose(as_numpy(actual), expected, rtol=tolerance, err_msg=what)
    else:
        numpy.testing.assert_array_equal(actual.numpy(), expected, err_msg=what)


def _allreduce_everything():
    hvd.init()
    rank, size = hvd.rank(), hvd.size()
    cases = [(d, o, s) for d in DTYPES for o in OPS for s in SHAPES if not (d == torch.bool and o == "Average")]
    random.Random(rank).shuffle(cases)  # every rank in an order of its own
    started = []
    for dtype, op, shape in cases:
        tensor = make(dtype, shape, rank)
        started.append((tensor, tensor.clone(), hvd.allreduce_async(tensor, name=f"{dtype}.{op}.{shape}", op=OPS[op])))
    for (dtype, op, shape), (tensor, before, handle) in zip(cases, started):
        expected = reduce_by_numpy(op, [as_numpy(make(dtype, shape, other)) for other in range(size)])
        assert_equal(hvd.synchronize(handle), expected, dtype, f"{dtype} {op} {shape}", size)
        assert torch.equal(tensor, before), "the input was changed"
    return len(cases)


@pytest.mark.parametrize("np", [0, 1, 2, 3])
def test_allreduce_of_every_dtype_and_op_in_any_order(call_ranks, np):
    assert call_ranks(_allreduce_everything, np) == [324] * max(np, 1)


def _allreduce_in_place():
    hvd.init()
    for dtype in FLOATS + INTEGERS:
        for shape in SHAPES:
            tensor = make(dtype, shape, hvd.rank())
            result = hvd.allreduce_(tensor, op=hvd.Sum)
            assert result is tensor
            expected = reduce_by_numpy("Sum", [as_numpy(make(dtype, shape, other)) for other in range(hvd.size())])
            assert_equal(tensor, expected, dtype, f"{dtype} {shape}", hvd.size())


@pytest.mark.parametrize("np", [1, 2, 4])
def test_allreduce_in_place(call_ranks, np):
    call_ranks(_allreduce_in_place, np)


def _allreduce_with_factors():
    hvd.init()
    scaled = {}
    for dtype in FLOATS:
        scaled[str(dtype)] = hvd.allreduce(
            torch.full((3,), 2.0 + hvd.rank(), dtype=dtype), op=hvd.Sum, prescale_factor=0.5, postscale_factor=4.0
        ).tolist()
    scaled["average"] = hvd.allreduce(torch.tensor([6.0 * hvd.rank()]), postscale_factor=3.0).tolist()
    scaled["integers"] = hvd.allreduce(torch.tensor([5, -5]), op=hvd.Sum, prescale_factor=0.5).tolist()
    return scaled


def test_factors_scale_before_and_after(call_ranks):
    expected = {str(dtype): [(1.0 + 1.5) * 4] * 3 for dtype in FLOATS}
    expected |= {"average": [3 * 3.0], "integers": [2 + 2, -2 - 2]}
    assert call_ranks(_allreduce_with_factors, 2) == [expected] * 2


def _strided_inputs():
    hvd.init()
    base = torch.arange(12.0).reshape(3, 4)
    sums = hvd.allreduce(base.t(), op=hvd.Sum), hvd.allreduce(base[:, ::2], op=hvd.Sum)
    gathered = hvd.allgather(base.t())
    sent = hvd.broadcast(base.t() + hvd.rank(), 1)
    return [t.tolist() for t in (*sums, gathered, sent)]


def test_out_of_place_takes_any_strides(call_ranks):
    base = torch.arange(12.0).reshape(3, 4)
    expected = [2 * base.t(), 2 * base[:, ::2], torch.cat([base.t(), base.t()]), base.t() + 1]
    assert call_ranks(_strided_inputs, 2) == [[t.tolist() for t in expected]] * 2


def _allgather_everything():
    hvd.init()
    size = hvd.size()
    rows = [(rank * 2 + 1) % 4 if rank != 1 else 0 for rank in range(size)]  # unequal; rank 1 brings none
    started = []
    for dtype in DTYPES:
        for rest in [(), (3,), (2, 5), (0,)]:
            tensor = make(dtype, (rows[hvd.rank()], *rest), hvd.rank())
            started.append((dtype, rest, hvd.allgather_async(tensor, name=f"{dtype}.{rest}")))
    for dtype, rest, handle in started:
        parts = [make(dtype, (rows[rank], *rest), rank) for rank in range(size)]
        gathered = hvd.synchronize(handle)
        assert gathered.dtype == dtype
        assert gathered.tolist() == [row for part in parts for row in part.tolist()], f"{dtype} {rest}"
        assert tuple(gathered.shape) == (sum(rows), *rest)


@pytest.mark.parametrize("np", [0, 2, 3])
def test_allgather_of_every_dtype_with_unequal_rows(call_ranks, np):
    call_ranks(_allgather_everything, np)


def _broadcast_everything():
    hvd.init()
    for dtype in DTYPES:
        for shape in SHAPES:
            for root in range(hvd.size()):
                mine, theirs = make(dtype, shape, hvd.rank()), make(dtype, shape, root)
                assert torch.equal(hvd.broadcast(mine, root), theirs)
                assert torch.equal(mine, make(dtype, shape, hvd.rank())), "the input was changed"
                assert hvd.broadcast_(mine, root) is mine
                assert torch.equal(mine, theirs)


@pytest.mark.parametrize("np", [0, 3])
def test_broadcast_of_every_dtype_from_every_root(call_ranks, np):
    call_ranks(_broadcast_everything, np)


def _refusals(kind: str) -> str:
    hvd.init()
    tensor = torch.ones(2)
    attempts = {
        "complex": lambda: hvd.allreduce(torch.ones(2, dtype=torch.complex64)),
        "list": lambda: hvd.allreduce_async([1.0]),
        "device": lambda: hvd.allgather(torch.ones(2, device="meta")),
        "sparse": lambda: hvd.allreduce_async(torch.ones(2, 2).to_sparse()),
        "strided allreduce_": lambda: hvd.allreduce_(torch.ones(4, 4).t()[1:]),
        "strided broadcast_": lambda: hvd.broadcast_(torch.ones(4)[::2], 0),
        "bool average": lambda: hvd.allreduce(torch.tensor([True])),
        "both": lambda: hvd.allreduce(tensor, average=True, op=hvd.Sum),
        "op": lambda: hvd.allreduce(tensor, op=9),
        "scalar allgather": lambda: hvd.allgather(torch.tensor(1.0)),
        "root": lambda: hvd.broadcast(tensor, hvd.size()),
        "negative root": lambda: hvd.broadcast(tensor, -1),
        "process set": lambda: hvd.barrier(process_set=[0]),
    }
    try:
        attempts[kind]()
    except Exception as error:
        text = f"{type(error).__name__}: {error}"
        assert hvd.allreduce(tensor, op=hvd.Sum).tolist() == [1.0, 1.0], "the job does not go on"
        return text
    return "nothing raised"


@pytest.mark.parametrize(
    "kind, expected",
    [
        ("complex", "ValueError: allreduce does not take torch.complex64"),
        ("list", "ValueError: allreduce takes a torch.Tensor, not list"),
        ("device", "NotImplementedError: allgather of a tensor on meta"),
        ("sparse", "NotImplementedError: allreduce of a sparse tensor"),
        ("strided allreduce_", "ValueError: allreduce_ works in place and needs a contiguous tensor"),
        ("strided broadcast_", "ValueError: broadcast_ works in place and needs a contiguous tensor"),
        ("bool average", "InvalidArgumentError: "),
        ("both", "ValueError: op= and average= were both given"),
        ("op", "ValueError: op=9 is no reduction"),
        ("scalar allgather", "InvalidArgumentError: "),
        ("root", "InvalidArgumentError: "),
        ("negative root", "InvalidArgumentError: "),
        ("process set", "ValueError: process_set=[0] is not a ProcessSet"),
    ],
)
def test_what_can_never_work_is_refused_at_once(kind, expected):
    assert _refusals(kind).startswith(expected)
    hvd.shutdown()


def test_a_tensor_without_values_is_refused():
    with pytest.raises(NotImplementedError, match="allreduce_ of a tensor on meta, which has no values"):
        hvd.allreduce_async_(torch.ones(1, device="meta"))


def test_without_init_it_is_an_internal_error():
    with pytest.raises(hvd.HorovodInternalError):
        hvd.allreduce_async(torch.ones(1))


def _disagreements():
    """Each operation's text, on this rank; after each the job goes on."""
    hvd.init()
    odd = hvd.rank() == 1
    attempts = {
        "shape": lambda: hvd.allreduce(torch.ones(3 if odd else 2), name="t.shape"),
        "dims": lambda: hvd.allreduce(torch.ones(2, 1) if odd else torch.ones(2), name="t.dims"),
        "dtype": lambda: hvd.allreduce(torch.ones(2, dtype=torch.float64 if odd else torch.float32), name="t.dtype"),
        "op": lambda: hvd.allreduce(torch.ones(2), name="t.op", op=hvd.Min if odd else hvd.Sum),
        "scale": lambda: hvd.allreduce(torch.ones(2), name="t.scale", prescale_factor=2.0 if odd else 1.0),
        "root": lambda: hvd.broadcast(torch.ones(2), 1 if odd else 0, name="t.root"),
        "broadcast shape": lambda: hvd.broadcast_(torch.ones(2 if odd else 4), 0, name="t.broadcast shape"),
        "columns": lambda: hvd.allgather(torch.ones(2, 3 if odd else 4), name="t.columns"),
    }
    texts = {}
    for what, attempt in attempts.items():
        try:
            attempt()
            texts[what] = "nothing raised"
        except hvd.HorovodInternalError as error:
            texts[what] = f"{type(error).__name__}: {error}"
        assert hvd.allreduce(torch.ones(1), op=hvd.Sum).item() == hvd.size()
    return texts


def test_ranks_that_disagree_get_an_error_that_names_tensor_and_ranks(call_ranks):
    results = call_ranks(_disagreements, 3)
    for texts in results:
        for what, text in texts.items():
            assert text.startswith("MismatchError: "), what
            assert f".t.{what}" in text, text
            assert "1" in text, text
    assert len(results[0]) == 8


def _average_is_deprecated():
    import warnings

    hvd.init()
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        values = hvd.allreduce(torch.tensor([2.0]), average=False).item(), hvd.allreduce_(torch.tensor([2.0]), True).item()
    return values, [(w.category.__name__, w.filename.endswith("test_operations.py")) for w in caught]


def test_average_warns_where_it_is_written(call_ranks):
    expected = ((4.0, 2.0), [("DeprecationWarning", True)] * 2)
    assert call_ranks(_average_is_deprecated, 2) == [expected] * 2


def _barriers():
    hvd.init()
    return [hvd.barrier() for _ in range(20)]


def test_barrier_returns_when_all_have_come(call_ranks):
    assert call_ranks(_barriers, 3) == [[None] * 20] * 3


def _negated():
    """Imaginary parts of conjugates, which PyTorch negates when they are read, each with the values 1, 2, 3 and 4."""
    hvd.init()
    view = torch.complex(torch.zeros(4), -torch.arange(1.0, 5.0)).conj().imag
    assert view.is_neg()
    weight = torch.zeros(4, requires_grad=True)
    optimizer = hvd.DistributedOptimizer(torch.optim.SGD([weight], lr=1.0), compression=Doubling)
    weight.grad = torch._neg_view(-torch.arange(1.0, 5.0))
    optimizer.step()
    results = [
        hvd.allreduce(view), hvd.grouped_allreduce([view])[0], hvd.allgather(view)[:4], hvd.broadcast(view, 1), -weight.detach(),
        hvd.reducescatter(torch._neg_view(-torch.arange(1.0, 5.0).repeat(2))),
    ]  # fmt: skip
    texts = []
    for in_place in (lambda: hvd.allreduce_(weight.grad), lambda: hvd.broadcast_(weight.grad, 0)):
        with pytest.raises(ValueError) as caught:
            in_place()
        texts.append(str(caught.value))
    return [result.tolist() for result in results], texts


def test_views_that_negate_their_memory_have_the_sign_that_they_show(call_ranks):
    for results, texts in call_ranks(_negated, 2):
        assert results == [[1.0, 2.0, 3.0, 4.0]] * len(results)
        assert all("works in place and does not take a view that negates its memory" in text for text in texts)
