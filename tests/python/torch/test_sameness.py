"""python/runjob/torch/sameness.py: the ranks have the same model, or an error on all of them names the tensor."""

import cases
import pytest
import torch

import runjob.torch as hvd
from runjob.exceptions import MismatchError
from runjob.torch.sameness import _hash


def _model():
    torch.manual_seed(0)
    return torch.nn.Sequential(torch.nn.Linear(3, 2), torch.nn.BatchNorm1d(2), torch.nn.Linear(2, 1))


def _outcome(what, **options):
    """None, or the error; the ranks are together again afterwards."""
    try:
        hvd.assert_same(what, **options)
    except (ValueError, MismatchError) as error:
        return f"{type(error).__name__}: {str(error).split('. broadcast_parameters')[0]}"


def _changed(name, rank=1):
    """One element is another on a rank."""
    model = _model()
    if hvd.rank() == rank:
        with torch.no_grad():
            model.state_dict()[name].view(-1)[-1] += 1e-6
    return model


def equal_models():
    return _outcome(_model()), _outcome(_model(), buffers=True), _outcome(_model().state_dict()), _outcome(_model().parameters())


def a_parameter():
    return _outcome(_changed("2.weight"))


def another_version():
    return _outcome(_changed("0.bias", rank=2), name="generator")


def statistics():
    """Each rank has its own."""
    model = _changed("1.running_mean")
    return _outcome(model), _outcome(model, buffers=True), _outcome(model.state_dict())


def order():
    tensors = [("a", torch.ones(2)), ("b", torch.zeros(2))]
    return _outcome(dict(tensors if hvd.rank() else reversed(tensors))), _outcome(tensors if hvd.rank() else tensors[::-1])


def places():
    return _outcome([torch.zeros(1), torch.full((2,), hvd.rank() // 2)])


def forms():
    """The same bytes, as another dtype, another shape, under another name."""
    rank = hvd.rank()
    return (
        _outcome([torch.zeros(2, dtype=torch.int32 if rank else torch.float32)]),
        _outcome([torch.zeros((2, 1) if rank else (1, 2))]),
        _outcome({"b" if rank else "a": torch.zeros(1)}),
    )


def bits():
    """NaNs with the same bits are equal, and zeros of another sign are not."""
    nan = torch.tensor([torch.nan, torch.inf])
    return _outcome([nan]), _outcome([torch.tensor([-0.0 if hvd.rank() else 0.0])])


def layouts():
    """Only the elements count, in whatever order they are in memory, for dtypes that cannot be reduced as well."""
    rank = hvd.rank()
    image = torch.arange(48.0).view(1, 3, 4, 4)
    number = torch.tensor([1 + 2j])
    return (
        _outcome([image.to(memory_format=torch.channels_last) if rank else image]),
        _outcome([number.conj().resolve_conj() if rank else number.conj()]),
        _outcome([torch.zeros(3, dtype=torch.float8_e4m3fn), torch.zeros(0), torch.zeros((), dtype=torch.uint32), torch.ones(1).expand(3)]),
        _outcome([torch.tensor(3 + rank, dtype=torch.uint32)]),
    )


def no_tensors():
    return _outcome({}), _outcome(torch.nn.ReLU())


def without_bytes():
    return _outcome({"a": torch.ones(2, device="meta") if hvd.rank() == 1 else torch.ones(2)}), _outcome({"step": hvd.rank()})


def _differ(name, form, *ranks):
    """A pattern: the versions of a tensor, each with a hash of its own."""
    versions = ", ".join(rf"{form} with the hash [0-9a-f]{{16}} on {each}" for each in ranks)
    return f"^MismatchError: assert_same.*: the ranks differ: {name} is {versions}$"


CASES = {
    equal_models: (None, None, None, None),
    a_parameter: _differ("2.weight", r"float32 \[1, 2\]", "ranks 0 and 2", "rank 1"),
    another_version: r"^MismatchError: assert_same\(generator\): the ranks differ: 0.bias is .* on ranks 0 and 1, .* on rank 2$",
    statistics: (None,) + (_differ("1.running_mean", r"float32 \[2\]", "ranks 0 and 2", "rank 1"),) * 2,
    order: (None, None),
    places: _differ("tensor 1", r"int64 \[2\]", "ranks 0 and 1", "rank 2"),
    forms: (
        r"tensor 0 is float32 \[2\] with .* on rank 0, int32 \[2\] with .* on ranks 1 and 2$",
        r"tensor 0 is float32 \[1, 2\] with .* on rank 0, float32 \[2, 1\] with .* on ranks 1 and 2$",
        r"a is float32 \[1\] with the hash \w+ on rank 0, missing on ranks 1 and 2; b is .* missing on rank 0$",
    ),
    bits: (None, _differ("tensor 0", r"float32 \[1\]", "rank 0", "ranks 1 and 2")),
    layouts: (None, None, None, _differ("tensor 0", r"uint32 \[\]", "rank 0", "rank 1", "rank 2")),
    no_tensors: (None, None),
    without_bytes: ("^ValueError: assert_same: on rank 1 a is on the device meta", "^ValueError: assert_same: on rank 0 step is int, not a tensor"),
}


def _run():
    hvd.init()
    return cases.run(CASES)


outcomes = cases.fixture(_run, 3)


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.__name__)
def test_ranks_that_differ_hear_the_same(outcomes, case):
    import re

    found, expected = outcomes[0][case.__name__], CASES[case]
    assert all(each[case.__name__] == found for each in outcomes)
    pairs = zip(found, expected, strict=True) if isinstance(expected, tuple) else [(found, expected)]
    for text, pattern in pairs:
        assert text is None if pattern is None else re.search(pattern, text or ""), text


def _within_a_set():
    hvd.init(process_sets="dynamic")
    some = hvd.add_process_set([1, 2])
    model = _changed("0.weight", rank=0)
    return _outcome(model, process_set=some), _outcome(_changed("0.weight", rank=2), process_set=some)


def test_ranks_outside_of_the_set_do_not_count(call_ranks):
    outside, *inside = call_ranks(_within_a_set, 3)
    assert all("rank 0 on localhost is not in process set" in text for text in outside)
    assert inside[0] == inside[1] and inside[0][0] is None
    assert "0.weight is float32 [2, 3] with the hash" in inside[0][1] and "on rank 1, float32" in inside[0][1]


def _one_has_joined():
    hvd.init()
    if hvd.rank() == 1:
        return hvd.join()
    try:
        hvd.assert_same(_model())
    except hvd.HorovodInternalError as error:
        text = str(error)
        hvd.join()
        return text


def test_not_while_a_rank_has_joined(call_ranks):
    text, _ = call_ranks(_one_has_joined, 2)
    assert "rank 1 on localhost has joined, and only allreduce goes on without it" in text


def test_a_hash_is_that_of_the_bytes():
    assert _hash(torch.tensor([1.0])) == _hash(torch.tensor([1065353216], dtype=torch.int32)) != _hash(torch.tensor([1.0000001]))
