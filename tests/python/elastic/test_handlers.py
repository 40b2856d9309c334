"""python/runjob/torch/elastic/handlers.py and state.py: what PyTorch's objects are committed as."""

import pytest
import torch

import horovod.torch as hvd
from horovod.torch.elastic.state import (
    ModelStateHandler,
    OptimizerStateHandler,
    SamplerStateHandler,
    StateHandler,
    get_handler_registry,
    set_handler_registry,
)
from runjob.exceptions import MismatchError


def _trained(optimizer_class=torch.optim.Adam, **options):
    torch.manual_seed(3)
    model = torch.nn.Sequential(torch.nn.Linear(2, 3), torch.nn.BatchNorm1d(3))
    optimizer = optimizer_class(model.parameters(), lr=0.1, **options)

    def step():
        optimizer.zero_grad()
        loss = model(torch.ones(4, 2) * torch.arange(4.0).unsqueeze(1)).square().sum()
        loss.backward()
        optimizer.step(lambda: loss) if optimizer_class is torch.optim.LBFGS else optimizer.step()

    return model, optimizer, step


def _values(*objects):
    """All tensors and numbers of the objects' state_dict()s, copied."""
    found = []

    def collect(value):
        if isinstance(value, dict):
            [collect(each) for each in value.values()]
        elif isinstance(value, (list, tuple)):
            [collect(each) for each in value]
        else:
            found.append(value.clone() if isinstance(value, torch.Tensor) else value)

    collect([each.state_dict() for each in objects])
    return found


def _alike(one, other):
    return len(one) == len(other) and all(
        torch.equal(a, b) if isinstance(a, torch.Tensor) else a == b for a, b in zip(one, other)
    )


@pytest.mark.parametrize(
    "optimizer_class, options",
    [(torch.optim.Adam, {}), (torch.optim.Adam, {"amsgrad": True}), (torch.optim.SGD, {"momentum": 0.9}), (torch.optim.LBFGS, {})],
)
def test_a_model_and_its_optimizer_go_back_to_the_commit(optimizer_class, options):
    model, optimizer, step = _trained(optimizer_class, **options)
    scheduler = torch.optim.lr_scheduler.StepLR(optimizer, 1)
    state = hvd.elastic.TorchState(model=model, optimizer=optimizer, scheduler=scheduler, epoch=0)
    begun = _values(model, optimizer, scheduler)
    step()
    scheduler.step()
    state.epoch = 1
    group, weight = optimizer.param_groups[0], model[0].weight
    trained = _values(model, optimizer, scheduler)
    state.save()
    step()
    scheduler.step()
    again = _values(model, optimizer, scheduler)
    assert not _alike(again, trained)
    state.restore()
    assert _alike(_values(model, optimizer, scheduler), trained) and state.epoch == 1
    assert optimizer.param_groups[0] is group and model[0].weight is weight
    step()
    scheduler.step()
    assert _alike(_values(model, optimizer, scheduler), again), "the step has the same result again"
    del begun


def test_what_an_optimizer_has_come_to_since_the_commit_is_dropped():
    model, optimizer, step = _trained()
    state = hvd.elastic.TorchState(model=model, optimizer=optimizer)
    step()
    state.restore()
    assert not optimizer.state


def test_another_model_is_committed_from_then_on():
    state = hvd.elastic.TorchState(model=torch.nn.Linear(1, 1), other=torch.nn.Linear(2, 2), rate=torch.ones(2))
    state.model, state.rate = torch.nn.Linear(4, 4), torch.zeros(3)
    state.save()
    weight = state.model.weight.detach().clone()
    torch.nn.init.zeros_(state.model.weight)
    state.rate += 1
    state.restore()
    assert torch.equal(state.model.weight, weight) and torch.equal(state.rate, torch.zeros(3))


def test_a_handler_alone_keeps_its_value():
    model, optimizer, step = _trained()
    handlers = [ModelStateHandler(model), OptimizerStateHandler(optimizer)]
    step()
    for each in handlers:
        each.save()
    saved = _values(model, optimizer)
    step()
    for each in handlers:
        each.restore()
    assert _alike(_values(model, optimizer), saved)
    other = torch.nn.Linear(1, 1)
    handlers[0].set_value(other)
    assert handlers[0].value is other


def test_handlers_of_the_program_are_called():
    class Handler(StateHandler):
        calls = []

        def save(self):
            self.calls.append("save")

        def restore(self):
            self.calls.append("restore")

        def sync(self):
            self.calls.append("sync")

    class Other:
        pass

    registry = get_handler_registry()
    try:
        set_handler_registry([(Other, Handler), *registry])
        state = hvd.elastic.TorchState(model=torch.nn.Linear(1, 1), other=Other())
    finally:
        set_handler_registry(registry)
    state.save()
    state.restore()
    state.other = Other()
    assert Handler.calls == ["save", "restore", "save"]


def test_a_model_of_another_form_is_a_mismatch(monkeypatch):
    monkeypatch.setattr("runjob.job.rank", lambda: 3)
    handler = ModelStateHandler(torch.nn.Linear(1, 2))
    with pytest.raises(MismatchError, match="the Linear of rank 3 has not the form of rank 0's: .*size mismatch.*the same model on all ranks"):
        handler.load(torch.nn.Linear(2, 2).state_dict())
    optimizer = OptimizerStateHandler(torch.optim.SGD(torch.nn.Linear(1, 2).parameters()))
    with pytest.raises(MismatchError, match=r"groups of sizes \[2\] on rank 3, and \[1\] on rank 0; parameter 1 of group 0 is in one of them only"):
        optimizer.load([{"options": {}, "states": {"parameter 0 of group 0": {}}}])
    with pytest.raises(MismatchError, match=r"\[2\] on rank 3, and \[2\] on rank 0; fc.weight is in one of them only; make the same"):
        optimizer.load([{"options": {}, "states": {"parameter 0 of group 0": {}, "fc.weight": {}}}])


def _synchronized():
    hvd.init()
    model, optimizer, step = _trained()
    with torch.no_grad():
        model[0].weight += hvd.rank()
    if hvd.rank() == 0:
        step()
    state = hvd.elastic.TorchState(model=model, optimizer=optimizer, step=hvd.rank(), half=torch.full((2,), hvd.rank()).bfloat16())
    state.sync()
    state.step = 9
    state.restore()
    return [each.tolist() if isinstance(each, torch.Tensor) else each for each in _values(model, optimizer)], state.step, state.half.tolist()


def test_all_ranks_get_the_state_of_rank_0(call_ranks):
    results = call_ranks(_synchronized, 3)
    assert results[0] == results[1] == results[2] and results[0][1:] == (0, [0, 0])


def _in_another_order():
    """Rank 1 has the parameters in another order, and rank 2 in other groups too; rank 0 has the momentum 1, 2 and 3."""
    hvd.init()
    order = [["a", "b", "c"], ["c", "a", "b"], ["b", "c", "a"]][hvd.rank()]
    weights = {name: torch.zeros(2, requires_grad=True) for name in order}
    inner = torch.optim.SGD([{"params": [weights[name]]} for name in order], lr=0.1, momentum=0.9)
    optimizer = hvd.DistributedOptimizer(inner, weights.items())
    if hvd.rank() == 0:
        for place, name in enumerate("abc", 1):
            optimizer.state[weights[name]]["momentum_buffer"] = torch.full((2,), float(place))
            optimizer.param_groups[place - 1]["lr"] = float(place)
    state = hvd.elastic.TorchState(optimizer=optimizer)
    state.sync()
    for each in optimizer.state.values():
        each["momentum_buffer"].zero_()
    state.restore()
    rates = {group["params"][0]: group["lr"] for group in optimizer.param_groups}
    return [(rates[weights[name]], optimizer.state[weights[name]]["momentum_buffer"].tolist()) for name in "abc"]


def test_a_state_goes_to_the_parameter_of_its_name(call_ranks):
    assert call_ranks(_in_another_order, 3) == [[(1.0, [1.0, 1.0]), (2.0, [2.0, 2.0]), (3.0, [3.0, 3.0])]] * 3


def _shared_by_sync(is_state: bool):
    """What each rank has left of 20 samples of which two have been processed, after sync()."""
    hvd.init()
    sampler = hvd.elastic.ElasticSampler(range(20), shuffle=False)
    holder = hvd.elastic.TorchState(sampler=sampler) if is_state else SamplerStateHandler(sampler)
    sampler.record_batch(0, 1)
    before = len(sampler), len(list(sampler))
    holder.sync()
    return before, len(sampler), list(sampler), sampler.processed_num


@pytest.mark.parametrize("is_state", [True, False])
@pytest.mark.parametrize("np", [1, 2])
def test_sync_shares_what_is_left_of_an_epoch_on_all_ranks(call_ranks, np, is_state):
    left = range(np, 20)
    expected = [((20 // np, 20 // np), len(left) // np, list(left[rank::np]), np) for rank in range(np)]
    assert call_ranks(_shared_by_sync, np, is_state) == expected
