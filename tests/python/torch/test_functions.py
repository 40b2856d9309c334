"""python/runjob/torch/functions.py: starting all ranks from the same place."""

import pytest
import torch

import runjob.torch as hvd
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


def _different_groups():
    hvd.init()
    weights = [torch.ones(1, requires_grad=True) for _ in range(2 + hvd.rank())]
    try:
        hvd.broadcast_optimizer_state(torch.optim.SGD(weights, lr=0.1), 0)
    except ValueError as error:
        return str(error)


def test_optimizers_that_differ_are_an_error(call_ranks):
    assert call_ranks(_different_groups, 2) == [
        None,
        "broadcast_optimizer_state: the optimizer has parameter groups of sizes [3] here and [2] on the root",
    ]


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
