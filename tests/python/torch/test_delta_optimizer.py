"""python/runjob/torch/delta_optimizer.py: DistributedOptimizer(op=Adasum) reduces what each rank's own step has changed."""

import copy
import pickle

import pytest
import torch
from adasum_tree import error, tree

import runjob.torch as hvd


def _model():
    torch.manual_seed(3)
    return torch.nn.Sequential(torch.nn.Linear(4, 3), torch.nn.Tanh(), torch.nn.Linear(3, 2)).double()


def _optimizer(kind, model):
    if kind == "lbfgs":
        return torch.optim.LBFGS(model.parameters(), max_iter=3)
    return torch.optim.Adam(model.parameters(), 0.1) if kind == "adam" else torch.optim.SGD(model.parameters(), 0.1, momentum=0.9)


def _batch(rank, step):
    torch.manual_seed(100 * step + rank)
    return torch.randn(6, 4).double(), torch.randn(6, 2).double()


def _values(model):
    return [parameter.detach().clone() for parameter in model.parameters()]


def _step(model, optimizer, rank, step, passes=1):
    x, y = _batch(rank, step)

    def closure():
        optimizer.zero_grad()
        for xs, ys in zip(x.chunk(passes), y.chunk(passes)):
            loss = torch.nn.functional.mse_loss(model(xs), ys)
            loss.backward()
        return loss

    if isinstance(optimizer, torch.optim.LBFGS):
        return optimizer.step(closure)
    closure()
    return optimizer.step()


def _simulated(kind, size, steps, passes):
    """The ranks' steps one after the other in this process, with the tree of their changes."""
    models = [_model() for _ in range(size)]
    optimizers = [_optimizer(kind, model) for model in models]
    for step in range(steps):
        before = _values(models[0])
        for rank in range(size):
            _step(models[rank], optimizers[rank], rank, step, passes)
        after = [_values(model) for model in models]
        for place, start in enumerate(before):
            change = torch.from_numpy(tree([(each[place] - start).numpy() for each in after]))
            for model in models:
                with torch.no_grad():
                    list(model.parameters())[place].copy_(start + change)
    return [value.tolist() for value in _values(models[0])]


def _trained(kind, options):
    hvd.init()
    model = _model()
    optimizer = hvd.DistributedOptimizer(_optimizer(kind, model), model.named_parameters(), op=hvd.Adasum, **options)
    assert isinstance(optimizer, type(_optimizer(kind, model)))
    scheduler = torch.optim.lr_scheduler.ConstantLR(optimizer, 1.0, 100)
    for step in range(4):
        _step(model, optimizer, hvd.rank(), step, optimizer.backward_passes_per_step)
        optimizer.synchronize()
        scheduler.step()
    return [value.tolist() for value in _values(model)]


@pytest.mark.parametrize("np", [0, 2, 3])
@pytest.mark.parametrize(
    "kind, options", [("sgd", {}), ("adam", {"backward_passes_per_step": 2}), ("lbfgs", {}), ("sgd", {"groups": 2, "sparse_as_dense": True})]
)
def test_steps_are_the_trees(call_ranks, np, kind, options):
    expected = _simulated(kind, max(np, 1), 4, options.get("backward_passes_per_step", 1))
    results = call_ranks(_trained, np, kind, options)
    for result in results:
        assert result == results[0], "the ranks' parameters differ"
        for found, wanted in zip(result, expected):
            assert error(found, wanted) < 1e-9


def _compressed():
    hvd.init()
    found = []
    for compression in (hvd.Compression.none, hvd.Compression.fp16):
        model = _model()
        optimizer = hvd.DistributedOptimizer(_optimizer("sgd", model), op=hvd.Adasum, compression=compression)
        _step(model, optimizer, hvd.rank(), 0)
        found.append(torch.cat([value.flatten() for value in _values(model)]))
    return float((found[0] - found[1]).abs().max())


def test_compression(call_ranks):
    for difference in call_ranks(_compressed, 2):
        assert 0 < difference < 1e-3


def _edges():
    """What has no gradient, what is frozen or not in one piece, a copy, what is refused, and a rank with other parameters."""
    hvd.init()
    rank = hvd.rank()
    unused, frozen = torch.ones(2, requires_grad=True), torch.ones(2)
    strided = torch.arange(6.0).view(2, 3).t().requires_grad_()
    used = torch.ones(3, requires_grad=True)
    optimizer = hvd.DistributedOptimizer(torch.optim.SGD([unused, frozen, strided, used], lr=1.0), op=hvd.Adasum)
    ((rank + 1.0) * strided.sum() + used[rank]).backward()
    optimizer.step()
    values = [unused.tolist(), frozen.tolist(), strided.tolist(), used.tolist()]
    copies = [type(copy.deepcopy(optimizer)) is torch.optim.SGD, type(pickle.loads(pickle.dumps(optimizer))) is torch.optim.SGD]
    try:
        with optimizer.skip_synchronize():
            pass
        refused = ""
    except AssertionError as error_of_skip:
        refused = str(error_of_skip)
    before = used.tolist()
    optimizer.add_param_group({"params": [torch.ones(1 + rank, requires_grad=True)]})
    used.grad.fill_(1.0)
    try:
        optimizer.step()
        mismatch = ""
    except hvd.HorovodInternalError as disagreement:
        mismatch = str(disagreement)
    attributes = optimizer.op, optimizer.process_set.process_set_id, optimizer._compression is hvd.Compression.none
    return values, copies, refused, used.tolist() == before, mismatch, attributes


def test_edges(call_ranks):
    for values, copies, refused, is_restored, mismatch, attributes in call_ranks(_edges, 2):
        strided = [[0 - 1.5, 3 - 1.5], [1 - 1.5, 4 - 1.5], [2 - 1.5, 5 - 1.5]]  # parallel changes: their mean
        assert values == [[1, 1], [1, 1], strided, [0, 0, 1]]  # orthogonal ones: their sum
        assert copies == [True, True]
        assert "skip_synchronize() has no meaning with op=Adasum" in refused
        assert is_restored and "DistributedOptimizer.changes" in mismatch
        assert attributes == (hvd.Adasum, 0, True)
