"""python/runjob/torch/grouped.py: values against plain PyTorch, gradients against the single forms, and what is refused."""

import pytest
import torch

import runjob.torch as hvd
from runjob import handles

DTYPES = [torch.float32, torch.int64, torch.float16, torch.uint8, torch.float64, torch.bfloat16, torch.int32]


def make(rank: int, count: int) -> list[torch.Tensor]:
    """The list that `rank` brings: different dtypes, shapes and lengths; small integers, which every dtype holds."""
    shapes = [(7, 3), (5,), (4, 1, 2), (6,), (0, 3), (2,), (1100, 3)]
    return [
        (torch.arange(torch.Size(shapes[i]).numel()).reshape(shapes[i]) % 5 + 3 * rank + i).to(DTYPES[i]) for i in range(count)
    ]


def total(size: int, count: int) -> list[torch.Tensor]:
    return [torch.stack(each).to(torch.float64).sum(dim=0) for each in zip(*(make(rank, count) for rank in range(size)))]


def assert_equal(actual, expected, like):
    assert isinstance(actual, list) and len(actual) == len(expected)
    for each, value, tensor in zip(actual, expected, like):
        assert each.dtype == tensor.dtype
        assert torch.equal(each, value.to(tensor.dtype)), (each, value)


def _allreduce(count):
    hvd.init()
    rank, size = hvd.rank(), hvd.size()
    mine, sums = make(rank, count), total(size, count)
    means = [(each / size).trunc() if not tensor.is_floating_point() else each / size for each, tensor in zip(sums, mine)]
    before = [tensor.clone() for tensor in mine]
    assert_equal(hvd.grouped_allreduce(mine, op=hvd.Sum), sums, mine)
    assert_equal(hvd.grouped_allreduce(tuple(mine)), means, mine)
    assert_equal(hvd.grouped_allreduce(mine, name="g", op=hvd.Max), make(size - 1, count), mine)
    assert_equal(hvd.synchronize(hvd.grouped_allreduce_async(mine, op=hvd.Sum)), sums, mine)
    assert_equal(hvd.synchronize(hvd.grouped_allreduce_async(mine, name="g", op=hvd.Min)), make(0, count), mine)
    assert all(map(torch.equal, mine, before)), "the inputs were changed"
    floats = [torch.full((3,), 2.0 + rank), torch.full((2, 2), 4.0 + rank, dtype=torch.float64)]
    scaled = hvd.grouped_allreduce(floats, op=hvd.Sum, prescale_factor=0.5, postscale_factor=4.0)
    extra = sum(range(size))
    assert_equal(scaled, [torch.full((3,), 2.0 * (2 * size + extra)), torch.full((2, 2), 2.0 * (4 * size + extra))], floats)
    for function in (hvd.grouped_allreduce_, lambda *args, **kw: hvd.synchronize(hvd.grouped_allreduce_async_(*args, **kw))):
        for op, expected in ((hvd.Sum, sums), (None, means)):
            mine = make(rank, count)
            output = function(mine, op=op)
            assert all(each is tensor for each, tensor in zip(output, mine))
            assert_equal(output, expected, mine)


@pytest.mark.parametrize("np, count", [(0, 7), (1, 2), (2, 7), (2, 1), (3, 7)])
def test_grouped_allreduce_is_an_allreduce_of_each(call_ranks, np, count):
    call_ranks(_allreduce, np, count)


def _allgather(count):
    hvd.init()
    rank, size = hvd.rank(), hvd.size()
    parts = [[each[: len(each) - other if i % 2 else None] for i, each in enumerate(make(other, count))] for other in range(size)]
    expected = [torch.cat(each) for each in zip(*parts)]
    assert_equal(hvd.grouped_allgather(parts[rank]), expected, expected)
    assert_equal(hvd.grouped_allgather(parts[rank], name="g"), expected, expected)
    assert_equal(hvd.synchronize(hvd.grouped_allgather_async(parts[rank])), expected, expected)


@pytest.mark.parametrize("np, count", [(0, 7), (2, 7), (2, 1), (3, 7)])
def test_grouped_allgather_is_an_allgather_of_each(call_ranks, np, count):
    call_ranks(_allgather, np, count)


def _reducescatter(count):
    hvd.init()
    rank, size = hvd.rank(), hvd.size()
    mine, sums = make(rank, count), total(size, count)

    def part(tensor):
        rows = tensor.shape[0]
        first = sum(rows // size + (other < rows % size) for other in range(rank))
        return tensor[first : first + rows // size + (rank < rows % size)]

    expected = [part(each) for each in sums]
    assert_equal(hvd.grouped_reducescatter(mine, op=hvd.Sum), expected, mine)
    assert_equal(hvd.grouped_reducescatter(mine, name="g", op=hvd.Sum), expected, mine)
    assert_equal(hvd.synchronize(hvd.grouped_reducescatter_async(mine, op=hvd.Sum)), expected, mine)
    ones = [torch.ones(size), torch.ones(2 * size, 2)]
    assert_equal(hvd.grouped_reducescatter(ones), [torch.ones(1), torch.ones(2, 2)], ones)
    scaled = hvd.grouped_reducescatter(ones, op=hvd.Sum, prescale_factor=3.0, postscale_factor=0.5)
    assert_equal(scaled, [torch.full((1,), 1.5 * size), torch.full((2, 2), 1.5 * size)], ones)


@pytest.mark.parametrize("np, count", [(0, 7), (2, 7), (2, 1), (3, 7)])
def test_grouped_reducescatter_is_a_reducescatter_of_each(call_ranks, np, count):
    call_ranks(_reducescatter, np, count)


def _gradients():
    """Of each form: the gradients of the grouped one, and of the single one for each tensor."""
    hvd.init()
    factors = {"op": hvd.Sum, "prescale_factor": 3.0, "postscale_factor": 0.5}
    cases = [
        (hvd.grouped_allreduce, hvd.allreduce, {}),
        (hvd.grouped_allreduce, hvd.allreduce, factors),
        (hvd.grouped_allreduce, hvd.allreduce, {"compression": hvd.Compression.fp16}),
        (hvd.grouped_allgather, hvd.allgather, {}),
        (hvd.grouped_reducescatter, hvd.reducescatter, {}),
        (hvd.grouped_reducescatter, hvd.reducescatter, {**factors, "compression": hvd.Compression.fp16}),
    ]
    pairs = []
    for grouped, single, arguments in cases:
        lists = []
        for each_of in (lambda xs: grouped(xs, **arguments), lambda xs: [single(x, **arguments) for x in xs]):
            xs = [torch.ones(rows, 2, dtype=torch.float64, requires_grad=True) for rows in (3, 4)]
            loss = 0
            for i, y in enumerate(each_of(xs)):
                assert y.requires_grad and y.dtype == torch.float64
                loss = loss + (y * (1 + hvd.rank() + torch.arange(float(y.shape[0])).unsqueeze(1) + 10 * i)).sum()
            loss.backward()
            lists.append([x.grad.tolist() for x in xs])
        pairs.append(lists)
    return pairs


@pytest.mark.parametrize("np", [1, 2, 3])
def test_gradients_are_those_of_the_single_forms(call_ranks, np):
    for pairs in call_ranks(_gradients, np):
        for grouped, single in pairs:
            assert grouped == single and any(each for row in single[0] for each in row)


def _gradients_among_integers():
    """Floats with and without gradients, integers and bools; and an output that nothing comes of."""
    hvd.init()
    rank, size = hvd.rank(), hvd.size()
    gradients = []
    for form in (
        lambda xs: hvd.grouped_allreduce(xs, op=hvd.Sum),
        hvd.grouped_allgather,
        lambda xs: hvd.grouped_reducescatter(xs, op=hvd.Sum),
    ):
        x, unused = (torch.ones(size, dtype=torch.float64, requires_grad=True) for _ in range(2))
        plain = torch.ones(size)
        xs = [torch.arange(size), x, torch.ones(size, dtype=torch.bool), plain, unused]
        outputs = form(xs)
        assert [y.dtype for y in outputs] == [each.dtype for each in xs]
        assert not outputs[0].requires_grad and not outputs[2].requires_grad
        (outputs[1] * (rank + 1)).sum().backward()
        assert plain.grad is None
        gradients.append((x.grad.unique().tolist(), unused.grad.unique().tolist()))
    return gradients


def test_lists_may_mix_what_has_gradients_and_what_has_not(call_ranks):
    # Rank r weighs with r + 1: for both ranks' reducescatter their weights, times two for Sum.
    expected = [([3.0], [0.0]), ([1.5], [0.0]), ([2.0, 4.0], [0.0])]
    assert call_ranks(_gradients_among_integers, 2) == [expected] * 2


def _second_derivative():
    hvd.init()
    x = torch.tensor([1.0 + hvd.rank()], dtype=torch.float64, requires_grad=True)
    reduced = hvd.grouped_allreduce([x**3, x], op=hvd.Sum)
    (first,) = torch.autograd.grad(reduced[0].sum(), x, create_graph=True)
    (second,) = torch.autograd.grad(first.sum(), x)
    return first.item(), second.item()


def test_gradients_are_differentiable_again(call_ranks):
    # As for the single form: each gradient counts twice, once per rank.
    assert call_ranks(_second_derivative, 2) == [(2 * 3 * x**2, 2 * 6 * x) for x in (1.0, 2.0)]


def _compressed():
    hvd.init()
    fp16 = hvd.Compression.fp16
    fine, whole = torch.tensor([1.0 + 2**-15]), torch.tensor([2**20 + 1])
    sent = [hvd.grouped_allreduce([fine, whole], compression=fp16), hvd.grouped_allreduce([fine, whole])]
    sent.append(hvd.grouped_reducescatter([fine.repeat(2), whole.repeat(2)], compression=fp16))
    assert all(one.dtype == torch.float32 and other.dtype == torch.int64 for one, other in sent)
    return [[one.item(), other.item()] for one, other in sent]


def test_compression_sends_floats_in_half_precision(call_ranks):
    whole = 2**20 + 1
    assert call_ranks(_compressed, 2) == [[[1.0, whole], [1.0 + 2**-15, whole], [1.0, whole]]] * 2


def _refusals(kind):
    ones, scalar, boolean = torch.ones(2), torch.tensor(1.0), torch.tensor([True])
    attempts = {
        "empty": lambda: hvd.grouped_allreduce([]),
        "empty async": lambda: hvd.grouped_allreduce_async_([]),
        "empty allgather": lambda: hvd.grouped_allgather([]),
        "empty reducescatter": lambda: hvd.grouped_reducescatter_async([]),
        "one tensor": lambda: hvd.grouped_allreduce(ones),
        "complex": lambda: hvd.grouped_allreduce([ones, ones.to(torch.complex64)]),
        "no tensor": lambda: hvd.grouped_allgather_async([ones, 1.0]),
        "device": lambda: hvd.grouped_reducescatter([ones, torch.ones(2, device="meta")]),
        "strided": lambda: hvd.grouped_allreduce_([ones, torch.ones(4)[::2]]),
        "twice": lambda: hvd.grouped_allreduce_async_([ones, scalar, ones]),
        "bool average": lambda: hvd.grouped_allreduce([ones, boolean]),
        "bool scale": lambda: hvd.grouped_reducescatter([ones, boolean], op=hvd.Sum, prescale_factor=2.0),
        "scalar allgather": lambda: hvd.grouped_allgather([ones, scalar]),
        "scalar reducescatter": lambda: hvd.grouped_reducescatter([ones, scalar]),
        "scalar with gradient": lambda: hvd.grouped_allgather([ones.clone().requires_grad_(), scalar]),
        "both": lambda: hvd.grouped_allreduce([ones], average=True, op=hvd.Sum),
        "op": lambda: hvd.grouped_reducescatter([ones], op=9),
        "process set": lambda: hvd.grouped_allgather([ones], process_set=[0]),
    }
    try:
        attempts[kind]()
    except Exception as error:
        return f"{type(error).__name__}: {error}"
    return "nothing raised"


@pytest.mark.parametrize(
    "kind, expected",
    [
        ("empty", "ValueError: grouped_allreduce takes at least one tensor; the list is empty"),
        ("empty async", "ValueError: grouped_allreduce_ takes at least one tensor"),
        ("empty allgather", "ValueError: grouped_allgather takes at least one tensor"),
        ("empty reducescatter", "ValueError: grouped_reducescatter takes at least one tensor"),
        ("one tensor", "ValueError: grouped_allreduce takes a list of tensors, not one tensor"),
        ("complex", "ValueError: allreduce does not take torch.complex64"),
        ("no tensor", "ValueError: allgather takes a torch.Tensor, not float"),
        ("device", "NotImplementedError: reducescatter of a tensor on meta"),
        ("strided", "ValueError: allreduce_ works in place and needs a contiguous tensor"),
        ("twice", "ValueError: grouped_allreduce_ works in place, and the list has one tensor twice"),
        ("bool average", "InvalidArgumentError: grouped_allreduce: tensor 1 of the list is bool"),
        ("bool scale", "InvalidArgumentError: grouped_reducescatter: tensor 1 of the list is bool"),
        ("scalar allgather", "InvalidArgumentError: grouped_allgather: tensor 1 of the list is a scalar"),
        ("scalar reducescatter", "InvalidArgumentError: grouped_reducescatter: tensor 1 of the list is a scalar"),
        ("scalar with gradient", "InvalidArgumentError: grouped_allgather: tensor 1 of the list is a scalar"),
        ("both", "ValueError: op= and average= were both given"),
        ("op", "ValueError: op=9 is no reduction"),
        ("process set", "ValueError: process_set=[0] is not a ProcessSet"),
    ],
)
def test_what_can_never_work_is_refused_before_anything_is_submitted(monkeypatch, kind, expected):
    submitted = []
    for form in ("submit", "block"):
        real = getattr(handles.Call, form)
        monkeypatch.setattr(handles.Call, form, lambda call, name, real=real: submitted.append(name) or real(call, name))
    hvd.init()
    assert _refusals(kind).startswith(expected)
    assert submitted == []
    assert hvd.grouped_allgather([torch.ones(1)])[0].tolist() == [1.0]
    hvd.shutdown()
    assert len(submitted) == 1


def test_without_init_it_is_an_internal_error():
    for call in (hvd.grouped_allreduce, hvd.grouped_allgather_async, hvd.grouped_reducescatter):
        with pytest.raises(hvd.HorovodInternalError):
            call([torch.ones(1), torch.ones(2)])


def _average_is_deprecated():
    import warnings

    hvd.init()
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        values = [hvd.grouped_allreduce([torch.tensor([2.0])], average=False)[0].item()]
        values.append(hvd.grouped_allreduce_([torch.tensor([2.0])], True)[0].item())
    return values, [(w.category.__name__, w.filename.endswith("test_grouped.py")) for w in caught]


def test_average_warns_where_it_is_written(call_ranks):
    assert call_ranks(_average_is_deprecated, 2) == [([4.0, 2.0], [("DeprecationWarning", True)] * 2)] * 2


def _through_the_import_name():
    import horovod.torch
    import horovod.torch.mpi_ops

    horovod.torch.init()
    handle = horovod.torch.mpi_ops.grouped_allreduce_async_([torch.ones(2), torch.ones(1)], op=horovod.torch.Sum)
    return [tensor.tolist() for tensor in horovod.torch.synchronize(handle)]


def test_horovods_import_name_has_them(call_ranks):
    assert call_ranks(_through_the_import_name, 2) == [[[2.0, 2.0], [2.0]]] * 2
