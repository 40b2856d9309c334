"""python/runjob/torch/functions.py: starting all ranks from the same place."""

import cases
import pytest
import torch

import runjob.torch as hvd
from runjob.exceptions import MismatchError
from runjob.torch import functions


def _model(seed: int) -> torch.nn.Module:
    torch.manual_seed(seed)
    return torch.nn.Sequential(torch.nn.Conv2d(1, 4, 3), torch.nn.BatchNorm2d(4), torch.nn.Flatten(), torch.nn.Linear(16, 3))


def _broadcast_a_model(form: str):
    hvd.init()
    model = _model(seed=hvd.rank())
    with torch.no_grad():
        model[1].num_batches_tracked += hvd.rank()
    if form == "channels_last":
        model = model.to(memory_format=torch.channels_last)
    forms = {
        "state_dict": model.state_dict,
        "channels_last": model.state_dict,
        "named_parameters": model.named_parameters,
        "list": lambda: list(model.parameters()),
    }
    hvd.broadcast_parameters(forms[form](), root_rank=1)
    expected = _model(seed=1)
    compared = expected.state_dict() if "state" in form else dict(expected.named_parameters())
    got = model.state_dict()
    return [name for name, tensor in compared.items() if "num_batches" not in name and not torch.equal(tensor, got[name])] + [
        model[1].num_batches_tracked.item()
    ]


@pytest.mark.parametrize("form, batches", [("state_dict", 1), ("channels_last", 1), ("named_parameters", None), ("list", None)])
def test_parameters_become_the_roots(call_ranks, form, batches):
    expected = [[rank if batches is None else batches] for rank in range(2)]
    assert call_ranks(_broadcast_a_model, 2, form) == expected


@pytest.mark.parametrize(
    "params, text", [(3, "not int"), (torch.ones(1), "not Tensor"), ({"step": 4}, "step is int, not a tensor")]
)
def test_what_is_no_parameter_is_named(params, text):
    with pytest.raises(ValueError, match=text):
        hvd.broadcast_parameters(params, 0)


def _optimizer_of(kind: str, model: torch.nn.Module) -> torch.optim.Optimizer:
    optimizers = {
        "adam": lambda: torch.optim.Adam(model.parameters(), lr=0.01, betas=(0.5, 0.75)),
        "amsgrad": lambda: torch.optim.AdamW(model.parameters(), lr=0.02, amsgrad=True),
        "momentum": lambda: torch.optim.SGD(model.parameters(), lr=0.03, momentum=0.5, nesterov=True),
        "plain": lambda: torch.optim.SGD(model.parameters(), lr=0.04),
        "tensor lr": lambda: torch.optim.Adam(model.parameters(), lr=torch.tensor(0.05)),
        "groups": lambda: torch.optim.Adagrad(
            [{"params": [model[0].weight]}, {"params": [model[3].weight, model[3].bias], "lr": 0.06}], lr=0.07
        ),
    }
    return optimizers[kind]()


def _train(model: torch.nn.Module, optimizer: torch.optim.Optimizer, steps: int) -> None:
    torch.manual_seed(5)
    for _ in range(steps):
        optimizer.zero_grad()
        model(torch.randn(8, 1, 4, 4)).square().sum().backward()
        optimizer.step()


def _restore(kind: str, wrap: bool, others_train: bool):
    """The root has trained three steps and lowered its learning rate; the others know nothing of it."""
    hvd.init()
    model = _model(0)
    optimizer = _optimizer_of(kind, model)
    if hvd.rank() == 0:
        _train(model, optimizer, 3)
        for group in optimizer.param_groups:
            group["lr"] = group["lr"] * 0.5
    elif others_train:
        _train(model, optimizer, 1)
    if wrap:
        optimizer = hvd.DistributedOptimizer(optimizer, model.named_parameters())
    groups = list(optimizer.param_groups)
    hvd.broadcast_parameters(model.state_dict(), 0)
    hvd.broadcast_optimizer_state(optimizer, 0)
    assert all(ours is before for ours, before in zip(optimizer.param_groups, groups)), "schedulers hold on to the groups"
    state = optimizer.state_dict()
    _train(model, optimizer, 2)  # the same data everywhere: the ranks stay equal
    return state, model.state_dict()


def _assert_same(a, b):
    assert type(a) is type(b)
    if isinstance(a, torch.Tensor):
        assert torch.equal(a, b)
    elif isinstance(a, dict):
        assert a.keys() == b.keys()
        for key in a:
            _assert_same(a[key], b[key])
    elif isinstance(a, (list, tuple)):
        assert len(a) == len(b)
        for x, y in zip(a, b):
            _assert_same(x, y)
    else:
        assert a == b


@pytest.mark.parametrize("kind", ["adam", "amsgrad", "momentum", "plain", "tensor lr", "groups"])
def test_a_fresh_optimizer_gets_the_roots_state(call_ranks, kind):
    (root, weights), (other, others_weights) = call_ranks(_restore, 2, kind, False, False)
    reference = _optimizer_of(kind, _model(0)).state_dict()
    assert root["state"] or kind == "plain"
    assert [float(g["lr"]) for g in root["param_groups"]] == pytest.approx([float(g["lr"]) / 2 for g in reference["param_groups"]])
    _assert_same(root, other)
    _assert_same(weights, others_weights)


@pytest.mark.parametrize("others_train", [False, True])
def test_a_distributed_optimizer_does_too(call_ranks, others_train):
    (root, weights), (other, others_weights) = call_ranks(_restore, 2, "adam", True, others_train)
    _assert_same(root, other)
    _assert_same(weights, others_weights)


def test_what_the_root_sends_from_a_gpu_is_received_on_the_parameters_device(monkeypatch):
    """What has extents is on a GPU here, and the other rank's GPU is "meta"."""
    monkeypatch.setattr(functions.gpus, "is_on_gpu", lambda tensor: tensor.dim() > 0)
    weight = torch.ones(3, requires_grad=True)
    weight.sum().backward()
    root = torch.optim.Adam([weight])
    root.step()
    sent = []
    outline = functions._outline(root, sent)
    rooms = functions._rooms(torch.optim.Adam([torch.ones(3, device="meta", requires_grad=True)]), outline)
    assert [(room.device.type, room.shape, room.dtype) for room in rooms] == [
        ("meta" if tensor.dim() else "cpu", tensor.shape, tensor.dtype) for tensor in sent
    ]
    assert {room.device.type for room in rooms} == {"meta", "cpu"}


def _resume_on_another_device(root_device, device):
    """The root has trained; the others' parameters lie elsewhere. Devices of Adam's state, on each rank."""
    hvd.init()
    weight = torch.ones(3, device=root_device if hvd.rank() == 0 else device, requires_grad=True)
    optimizer = torch.optim.Adam([weight], lr=0.5)
    if hvd.rank() == 0:
        weight.sum().backward()
        optimizer.step()
    hvd.broadcast_optimizer_state(optimizer, root_rank=0)
    return {key: (value.device.type, tuple(value.shape)) for key, value in optimizer.state[weight].items()}


def test_the_state_lies_on_the_parameters_device(call_ranks):
    root, other = call_ranks(_resume_on_another_device, 2, "cpu", "meta")
    assert root == {"step": ("cpu", ()), "exp_avg": ("cpu", (3,)), "exp_avg_sq": ("cpu", (3,))}
    assert other == {"step": ("cpu", ()), "exp_avg": ("meta", (3,)), "exp_avg_sq": ("meta", (3,))}


def _fresh():
    hvd.init()
    weight = torch.ones(3, requires_grad=True)
    optimizer = torch.optim.Adam([weight], lr=0.5 + hvd.rank())
    hvd.broadcast_optimizer_state(optimizer, root_rank=0)
    return weight.grad, dict(optimizer.state), optimizer.param_groups[0]["lr"]


def test_a_fresh_optimizer_has_no_gradients_afterwards(call_ranks):
    assert call_ranks(_fresh, 2) == [(None, {}, 0.5)] * 2


def test_lbfgs_is_refused():
    optimizer = torch.optim.LBFGS([torch.ones(1, requires_grad=True)])
    with pytest.raises(ValueError, match="cannot broadcast the state of torch.optim.LBFGS"):
        hvd.broadcast_optimizer_state(optimizer, 0)


def _objects():
    hvd.init()
    root = hvd.size() - 1
    mine = {"rank": hvd.rank(), "data": list(range(1000)), "tensor": torch.ones(2)}
    got = hvd.broadcast_object(mine if hvd.rank() == root else None, root)
    assert (got is mine) == (hvd.rank() == root)
    function = hvd.broadcast_object((lambda x: x + root) if hvd.rank() == root else None, root, name="function")
    return got["rank"], len(got["data"]), got["tensor"].tolist(), function(1), hvd.allgather_object("x" * hvd.rank())


@pytest.mark.parametrize("np", [0, 1, 3])
def test_objects_travel(call_ranks, np):
    last = max(np, 1) - 1
    expected = (last, 1000, [1.0, 1.0], 1 + last, ["", "x", "xx"][: last + 1])
    assert call_ranks(_objects, np) == [expected] * (last + 1)


def _error(function, *arguments):
    """What it raises, if anything; the ranks go on together afterwards."""
    try:
        function(*arguments)
    except (ValueError, MismatchError) as error:
        return f"{type(error).__name__}: {error}"


def _send(params):
    return _error(hvd.broadcast_parameters, params, 0)


def parameters_by_name():
    """In another order on each rank, as a dict here and as pairs there."""
    rank = hvd.rank()
    tensors = {name: torch.full((2,), 10.0 * rank + i) for i, name in enumerate("abc")}
    order = ["c", "a", "b"] if rank == 1 else ["a", "b", "c"]
    given = [(name, tensors[name]) for name in order]
    hvd.broadcast_parameters(dict(given) if rank == 2 else given, 0)
    return [tensor[0].item() for tensor in tensors.values()]


def other_parameters():
    """Nothing is overwritten then, and nobody waits."""
    rank = hvd.rank()
    kept = torch.full((2,), float(rank))
    errors = (
        _send({"a": kept, "b" if rank == 1 else "c": torch.ones(1)}),
        _send({"a": kept, "b": torch.ones(2, 1 + rank // 2)}),
        _send([kept, torch.ones(1, dtype=torch.float64 if rank == 1 else torch.float32)]),
        _send([kept] * (1 + rank // 2)),
        _send([("a", kept)] if rank else [kept]),
        _send([] if rank else [kept]),
        _error(hvd.broadcast_parameters, [kept], int(rank == 1)),
    )
    return kept.tolist() == [rank, rank], *errors


def any_dtype():
    """Those that cannot be reduced are copied too, of any shape, and views that are to be conjugated or negated."""
    rank = hvd.rank()
    numbers = torch.tensor([[1 + 2j, 3 - 4j]]) * (rank + 1)
    sent = {
        "complex": numbers.clone(),
        "conjugated": numbers.clone().conj(),
        "imaginary": numbers.clone().conj().imag,
        "a number": torch.tensor(1j * (rank + 1), dtype=torch.complex128),
        "transposed": torch.stack([numbers[0], numbers[0]]).T,
        "float8": torch.full((3,), 1.0 + rank).to(torch.float8_e4m3fn),
        "uint32": torch.tensor([2**32 - 1 - rank], dtype=torch.uint32),
        "empty": torch.empty(0, 2, dtype=torch.complex64),
    }
    hvd.broadcast_parameters(sent, 1)
    return [value.to(torch.float32 if name == "float8" else value.dtype).tolist() for name, value in sent.items()]


def expanded():
    """Elements that are one in memory are written once, where all ranks have them so."""
    rank = hvd.rank()
    row = torch.full((3,), 1.0 + rank)
    hvd.broadcast_parameters({"rows": row.expand(4, 3)}, 1)
    return row.tolist(), _send([row.expand(4, 3) if rank else torch.ones(4, 3)])


def what_cannot_travel():
    """On one rank, in one entry of several."""
    rank = hvd.rank()
    return tuple(
        _send({"a": torch.ones(2), "b": value if rank == 1 else torch.ones(2)})
        for value in (torch.ones(2, device="meta"), torch.ones(2).to_sparse(), 3)
    )


def nothing():
    return _send({}), _error(hvd.broadcast_optimizer_state, torch.optim.SGD([{"params": []}], lr=hvd.rank() + 1.0), 0)


def tied():
    """One weight under two names."""
    weight = torch.full((2,), float(hvd.rank()))
    hvd.broadcast_parameters({"encoder": weight, "decoder": weight}, 1)
    return weight.tolist()


NAMES = "abc"


def _learned(optimizer_of, order="abc", groups=None):
    """By name, the state and the learning rate that the parameters get from rank 0, where they have the momentum 1, 2 and 3."""
    weights = {name: torch.zeros(2, requires_grad=True) for name in order}
    lists = [[(name, weights[name]) for name in group] for group in groups or [order]]
    optimizer = optimizer_of(weights, lists)
    if hvd.rank() == 0:
        for place, name in enumerate(NAMES, 1):
            optimizer.state[weights[name]]["momentum_buffer"] = torch.full((2,), float(place))
        for group in optimizer.param_groups:
            group["lr"] = 5.0 if any(each is weights["a"] for each in group["params"]) else 6.0
    hvd.broadcast_optimizer_state(optimizer, 0)
    rates = {id(each): group["lr"] for group in optimizer.param_groups for each in group["params"]}
    return [(optimizer.state[weights[name]]["momentum_buffer"].tolist(), rates[id(weights[name])]) for name in NAMES]


def _sgd(lists):
    return torch.optim.SGD([{"params": [weight for _, weight in group]} for group in lists], lr=1.0, momentum=0.9)


def _wrapped(weights, lists):
    return hvd.DistributedOptimizer(_sgd(lists), weights.items())


def _with_names_of_pytorch(weights, lists):
    optimizer = _sgd(lists)
    for group, named in zip(optimizer.param_groups, lists):
        group["param_names"] = [name for name, _ in named]  # as PyTorch does from 2.6 on
    return optimizer


def _wrapped_with_names_of_pytorch(weights, lists):
    return hvd.DistributedOptimizer(_with_names_of_pytorch(weights, lists))


def states_by_name():
    order = "bca" if hvd.rank() else "abc"
    return [_learned(each, order) for each in (_wrapped, _with_names_of_pytorch, _wrapped_with_names_of_pytorch)]


def groups_by_name():
    """The groups are in another order too; one has no parameters."""
    groups = ["", "ca", "b"] if hvd.rank() else ["b", "ac", ""]
    return _learned(_wrapped, "cab", groups), _learned(_wrapped, "abc", ["abc"] if hvd.rank() else ["cab"])


def other_groups():
    rank = hvd.rank()
    return (
        _error(_learned, _wrapped, "abc", ["a", "bc"] if rank == 1 else ["ab", "c"]),
        _error(_learned, _wrapped, "abc", ["a", "bc"] if rank == 1 else ["abc"]),
        _error(_learned, _with_names_of_pytorch, "abcd" if rank == 1 else "abce"),
    )


def names_that_are_not_unique():
    """Two models with the same names: their places count, and the names are compared."""
    first, second = ({name: torch.zeros(2, requires_grad=True) for name in "ab"} for _ in range(2))
    lists = [list(first.items()), list(second.items())]
    good = _with_names_of_pytorch({}, lists)
    if hvd.rank() == 0:
        good.state[second["a"]]["momentum_buffer"] = torch.ones(2)
    hvd.broadcast_optimizer_state(good, 0)
    shuffled = [lists[0], lists[1][::-1] if hvd.rank() == 1 else lists[1]]
    error = _error(hvd.broadcast_optimizer_state, _with_names_of_pytorch({}, shuffled), 0)
    return [len(good.state.get(each, {})) for each in (first["a"], first["b"], second["a"], second["b"])], error


def _state_of(shapes, dtype=torch.float32):
    weights = [torch.ones(shape, dtype=dtype, requires_grad=True) for shape in shapes]
    return _error(hvd.broadcast_optimizer_state, torch.optim.SGD(weights, lr=0.1), 0)


def optimizers_without_names():
    """Their places count; numbers, shapes and dtypes are compared."""
    rank = hvd.rank()
    return (
        _state_of([1, 1, 1] if rank == 1 else [1, 1]),
        _state_of([2, 1] if rank == 1 else [1, 2]),
        _state_of([2], torch.float64 if rank == 1 else torch.float32),
        _state_of([2, 2]),
    )


def states_that_cannot_travel():
    """The root alone has it, and all ranks are told."""
    weight = torch.zeros(2, requires_grad=True)
    optimizer = hvd.DistributedOptimizer(torch.optim.SGD([weight], lr=0.1), [("fc.weight", weight)])
    if hvd.rank() == 0:
        optimizer.state[weight]["moment"] = torch.ones(2).to_sparse()
    error = _error(hvd.broadcast_optimizer_state, optimizer, 0)
    if hvd.rank() == 0:
        optimizer.state[weight]["moment"] = torch.ones(2, dtype=torch.uint32)
    hvd.broadcast_optimizer_state(optimizer, 0)
    return error, optimizer.state[weight]["moment"].tolist(), _error(hvd.broadcast_optimizer_state, optimizer, 7)


BY_NAME = [([1.0, 1.0], 5.0), ([2.0, 2.0], 5.0), ([3.0, 3.0], 5.0)]
IN_GROUPS = [([1.0, 1.0], 5.0), ([2.0, 2.0], 6.0), ([3.0, 3.0], 5.0)]
MODEL = ". Make the same model on all ranks before it"
OPTIMIZER = ". Make the same optimizer on all ranks before it"


def _differ(operation, text, remedy=MODEL):
    return f"MismatchError: {operation}: the ranks differ: {text}{remedy}"


def _parameters(text):
    return _differ("broadcast_parameters", text)


def _states(text):
    return _differ("broadcast_optimizer_state", text, OPTIMIZER)


CASES = {
    parameters_by_name: [0.0, 1.0, 2.0],
    other_parameters: (
        True,
        _parameters("c is float32 [1] on ranks 0 and 2, missing on rank 1; b is float32 [1] on rank 1, missing on ranks 0 and 2"),
        _parameters("b is float32 [2, 1] on ranks 0 and 1, float32 [2, 2] on rank 2"),
        _parameters("tensor 1 is float32 [1] on ranks 0 and 2, float64 [1] on rank 1"),
        _parameters("tensor 1 is float32 [2] on rank 2, missing on ranks 0 and 1"),
        _parameters("tensor 0 is float32 [2] on rank 0, missing on ranks 1 and 2; a is float32 [2] on ranks 1 and 2, missing on rank 0"),
        _parameters("tensor 0 is float32 [2] on rank 0, missing on ranks 1 and 2"),
        _parameters("root_rank is 0 on ranks 0 and 2, 1 on rank 1"),
    ),
    any_dtype: [
        [[2 + 4j, 6 - 8j]], [[2 - 4j, 6 + 8j]], [[-4.0, 8.0]], 2j, [[2 + 4j, 2 + 4j], [6 - 8j, 6 - 8j]], [2.0] * 3, [2**32 - 2], [],
    ],
    expanded: (
        [2.0] * 3,
        _parameters("tensor 0 is float32 [4, 3] on rank 0, float32 [4, 3] expanded in the dimensions [0] on ranks 1 and 2"),
    ),
    what_cannot_travel: (
        "ValueError: broadcast_parameters: on rank 1 b is on the device meta and has no values; give the model memory first, with "
        "model.to_empty(device=...)",
        "ValueError: broadcast_parameters: on rank 1 b is not dense (sparse_coo); use to_dense(), or broadcast_object() to send it",
        "ValueError: broadcast_parameters: on rank 1 b is int, not a tensor; broadcast_object() sends other values",
    ),
    nothing: (None, None),
    tied: [1.0, 1.0],
    states_by_name: [BY_NAME] * 3,
    groups_by_name: (IN_GROUPS, BY_NAME),
    other_groups: (
        _states(
            "b is float32 [2] in the group of a on ranks 0 and 2, float32 [2] in the group of b on rank 1; c is float32 [2] in the group of "
            "c on ranks 0 and 2, float32 [2] in the group of b on rank 1"
        ),
        _states(
            "the number of parameter groups is 1 on ranks 0 and 2, 2 on rank 1; a is float32 [2] on ranks 0 and 2, float32 [2] in the group "
            "of a on rank 1; b is float32 [2] on ranks 0 and 2, float32 [2] in the group of b on rank 1; 1 more of 5 differ"
        ),
        _states("e is float32 [2] on ranks 0 and 2, missing on rank 1; d is float32 [2] on rank 1, missing on ranks 0 and 2"),
    ),
    names_that_are_not_unique: (
        [0, 0, 1, 0],
        _states(
            "parameter 0 of group 1 (a) is float32 [2] in the group of parameter 0 of group 1 (a) on ranks 0 and 2, missing on rank 1; "
            "parameter 1 of group 1 (b) is float32 [2] in the group of parameter 0 of group 1 (a) on ranks 0 and 2, missing on rank 1; "
            "parameter 0 of group 1 (b) is float32 [2] in the group of parameter 0 of group 1 (b) on rank 1, missing on ranks 0 and 2; "
            "1 more of 8 differ"
        ),
    ),
    optimizers_without_names: (
        _states("parameter 2 of group 0 is float32 [1] on rank 1, missing on ranks 0 and 2"),
        _states(
            "parameter 0 of group 0 is float32 [1] on ranks 0 and 2, float32 [2] on rank 1; parameter 1 of group 0 is float32 [2] on ranks "
            "0 and 2, float32 [1] on rank 1"
        ),
        _states("parameter 0 of group 0 is float32 [2] on ranks 0 and 2, float64 [2] on rank 1"),
        None,
    ),
    states_that_cannot_travel: (
        "ValueError: broadcast_optimizer_state: on rank 0 a tensor in the state of fc.weight is not dense (sparse_coo); use to_dense(), or "
        "broadcast_object() to send it",
        [1, 1],
        "ValueError: broadcast_optimizer_state: root_rank=7 is not among the ranks [0, 1, 2]",
    ),
}  # fmt: skip


def _run():
    hvd.init()
    return cases.run(CASES)


outcomes = cases.fixture(_run, 3)


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.__name__)
def test_ranks_that_differ(outcomes, case):
    assert [each[case.__name__] for each in outcomes] == [CASES[case]] * 3
