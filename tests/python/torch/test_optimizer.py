"""python/runjob/torch/optimizer.py: training on N ranks is training on the whole batch."""

from __future__ import annotations

import copy
import gc
import pickle
import warnings

import pytest
import torch

import runjob.torch as hvd

STEPS = 6
BATCH = 12  # of all ranks together


def _model() -> torch.nn.Module:
    torch.manual_seed(7)
    return torch.nn.Sequential(torch.nn.Linear(5, 8), torch.nn.Tanh(), torch.nn.Linear(8, 2)).double()


def _batches() -> list[tuple[torch.Tensor, torch.Tensor]]:
    torch.manual_seed(11)
    return [(torch.randn(BATCH, 5).double(), torch.randn(BATCH, 2).double()) for _ in range(STEPS)]


def _optimizer(kind: str, model: torch.nn.Module) -> torch.optim.Optimizer:
    if kind == "adam":
        return torch.optim.Adam(model.parameters(), lr=0.05)
    return torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9, weight_decay=0.01)


def _weights(model: torch.nn.Module) -> list[list[float]]:
    return [parameter.detach().flatten().tolist() for parameter in model.parameters()]


def _train_alone(kind: str) -> list[list[float]]:
    model = _model()
    optimizer = _optimizer(kind, model)
    for x, y in _batches():
        optimizer.zero_grad()
        torch.nn.functional.mse_loss(model(x), y).backward()
        optimizer.step()
    return _weights(model)


def _train(kind: str, options: dict, way: str = "plain"):
    """Trains on this rank's share of each batch. `way` says how the step is taken."""
    hvd.init()
    model = _model()
    if way == "unnamed":
        optimizer = hvd.DistributedOptimizer(_optimizer(kind, model), **options)
    else:
        optimizer = hvd.DistributedOptimizer(_optimizer(kind, model), model.named_parameters(), **options)
    assert isinstance(optimizer, type(_optimizer(kind, model)))
    assert type(optimizer).__name__ == type(_optimizer(kind, model)).__name__
    passes = options.get("backward_passes_per_step", 1)
    for x, y in _batches():
        x, y = (t.chunk(hvd.size())[hvd.rank()] for t in (x, y))

        def closure():
            optimizer.zero_grad()
            for xs, ys in zip(x.chunk(passes), y.chunk(passes)):
                loss = torch.nn.functional.mse_loss(model(xs), ys) / passes
                loss.backward()
            return loss

        if way == "closure":
            optimizer.step(closure)
            continue
        closure()
        if way == "skip":
            optimizer.synchronize()
            torch.nn.utils.clip_grad_norm_(model.parameters(), 1e9)
            with optimizer.skip_synchronize():
                optimizer.step()
        else:
            optimizer.step()
    return _weights(model)


@pytest.mark.parametrize(
    "np, kind, options, way",
    [
        (0, "sgd", {}, "plain"),
        (1, "adam", {}, "plain"),
        (2, "sgd", {}, "plain"),
        (2, "adam", {}, "unnamed"),
        (3, "adam", {}, "plain"),
        (2, "sgd", {}, "skip"),
        (2, "sgd", {}, "closure"),
        (2, "sgd", {"backward_passes_per_step": 2}, "plain"),
        (3, "sgd", {"gradient_predivide_factor": 3.0}, "plain"),
    ],
)
def test_training_equals_training_alone_on_the_whole_batch(call_ranks, np, kind, options, way):
    results = call_ranks(_train, np, kind, options, way)
    assert all(weights == results[0] for weights in results), "the ranks have drifted apart"
    for ours, alone in zip(results[0], _train_alone(kind)):
        assert ours == pytest.approx(alone, rel=1e-10, abs=1e-12)


def test_compressed_gradients_keep_ranks_equal_and_stay_close(call_ranks):
    results = call_ranks(_train, 2, "sgd", {"compression": hvd.Compression.fp16}, "plain")
    assert results[0] == results[1]
    for ours, alone in zip(results[0], _train_alone("sgd")):
        assert ours == pytest.approx(alone, abs=5e-3)


def _sum_of_gradients():
    hvd.init()
    weight = torch.zeros(2, requires_grad=True)
    optimizer = hvd.DistributedOptimizer(torch.optim.SGD([weight], lr=1.0), op=hvd.Sum)
    (weight * (hvd.rank() + 1)).sum().backward()
    optimizer.step()
    return weight.tolist()


def test_gradients_may_be_summed(call_ranks):
    assert call_ranks(_sum_of_gradients, 3) == [[-6.0, -6.0]] * 3


def _each_rank_uses_one_branch():
    hvd.init()
    branches = [torch.nn.Linear(1, 1, bias=False) for _ in range(3)]  # the third is used by nobody
    for branch in branches:
        torch.nn.init.zeros_(branch.weight)
    named = [(f"branch.{i}", branch.weight) for i, branch in enumerate(branches)]
    optimizer = hvd.DistributedOptimizer(torch.optim.SGD([w for _, w in named], lr=1.0), named)
    for _ in range(2):
        optimizer.zero_grad()
        branches[hvd.rank()](torch.tensor([4.0])).backward()
        optimizer.step()
    return [weight.item() for _, weight in named]


def test_parameters_that_a_rank_did_not_use_count_as_zero(call_ranks):
    assert call_ranks(_each_rank_uses_one_branch, 2) == [[-4.0, -4.0, 0.0]] * 2


def _channels_last():
    hvd.init()
    torch.manual_seed(0)
    model = torch.nn.Conv2d(2, 3, 2).to(memory_format=torch.channels_last)
    optimizer = hvd.DistributedOptimizer(torch.optim.SGD(model.parameters(), lr=1.0), model.named_parameters())
    model(torch.full((1, 2, 2, 2), 1.0 + hvd.rank()).to(memory_format=torch.channels_last)).sum().backward()
    optimizer.synchronize()
    return model.weight.grad.is_contiguous(), model.weight.grad.unique().tolist()


def test_gradients_of_another_memory_format_are_reduced(call_ranks):
    assert call_ranks(_channels_last, 2) == [(False, [1.5])] * 2


def _misuse():
    """Everything that training code does wrong, as the texts it gets; the ranks make the same mistakes."""
    hvd.init()
    weight = torch.zeros(2, requires_grad=True)
    optimizer = hvd.DistributedOptimizer(torch.optim.SGD([weight], lr=1.0), [("w", weight)])
    texts = []

    def attempt(what):
        try:
            what()
        except Exception as error:
            texts.append(f"{type(error).__name__}: {error}")

    weight.sum().backward()
    attempt(weight.sum().backward)
    optimizer.step()
    optimizer.zero_grad()
    handle = weight.register_post_accumulate_grad_hook(lambda parameter: attempt(optimizer.zero_grad))
    weight.sum().backward()
    handle.remove()
    optimizer.step()
    attempt(lambda: optimizer.set_backward_passes_per_step(0))
    return texts


def test_misuse_is_explained(call_ranks):
    expected = [
        "AssertionError: the gradient of w was computed more than backward_passes_per_step (1) times before step()",
        "AssertionError: zero_grad() during backward(): gradients are still being reduced",
        "ValueError: backward_passes_per_step must be positive, not 0",
    ]
    for texts in call_ranks(_misuse, 2):
        assert len(texts) == len(expected)
        for text, start in zip(texts, expected):
            assert text.startswith(start)


def _step_after_synchronize():
    hvd.init()
    weight = torch.zeros(1, requires_grad=True)
    optimizer = hvd.DistributedOptimizer(torch.optim.SGD([weight], lr=1.0), [("w", weight)])
    weight.sum().backward()
    optimizer.synchronize()
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        optimizer.step()
    return [str(w.message) for w in caught]


def test_a_second_reduction_is_warned_about(call_ranks):
    for texts in call_ranks(_step_after_synchronize, 2):
        assert len(texts) == 1
        assert texts[0].startswith("optimizer.step() called without optimizer.skip_synchronize() context after optimizer.synchronize()")


def _attributes():
    """What scripts read of Horovod's optimizer."""
    hvd.init()
    weight, frozen = torch.zeros(2, requires_grad=True), torch.zeros(1)
    optimizer = hvd.DistributedOptimizer(
        torch.optim.SGD([weight, frozen], lr=1.0), [("w", weight), ("f", frozen)], hvd.Compression.fp16,
        gradient_predivide_factor=2.0, sparse_as_dense=True, backward_passes_per_step=2,
    )  # fmt: skip
    in_flight = []
    for _ in range(2):
        weight.sum().backward()
        in_flight.append([optimizer._parameter_names[parameter] for parameter in optimizer._handles])
    optimizer.step()
    return {
        "in flight": [*in_flight, list(optimizer._handles)],
        "names": sorted(optimizer._parameter_names.values()),
        "updated": [parameter is weight for parameter in optimizer._requires_update],
        "compression": optimizer._compression is hvd.Compression.fp16,
        "set": optimizer.process_set is hvd.global_process_set,
        "values": (optimizer.op, optimizer.gradient_predivide_factor, optimizer.sparse_as_dense, optimizer.backward_passes_per_step),
    }


def test_attributes_that_scripts_read_are_there(call_ranks):
    expected = {
        "in flight": [[], [], []], "names": ["f", "w"], "updated": [True], "compression": True, "set": True,
        "values": (hvd.Average, 2.0, True, 2),
    }  # fmt: skip
    assert call_ranks(_attributes, 2) == [expected] * 2


def _closures():
    """LBFGS with a line search calls the closure as often as the loss tells it to: all ranks must hear the same loss."""
    found = []
    for is_distributed in (False, True):
        torch.manual_seed(1)
        weight = torch.randn(4, dtype=torch.float64, requires_grad=True)
        optimizer = torch.optim.LBFGS([weight], lr=1.0, max_iter=8, line_search_fn="strong_wolfe")
        if is_distributed:
            optimizer = hvd.DistributedOptimizer(optimizer)
        samples = torch.randn(6, 4, dtype=torch.float64)
        samples = samples.chunk(hvd.size())[hvd.rank()] if is_distributed else samples

        def closure():
            optimizer.zero_grad()
            loss = ((samples * weight).sum(dim=1) - 1).pow(2).mean() + weight.pow(4).sum()
            loss.backward()
            return loss

        losses = [optimizer.step(closure) for _ in range(2)]
        found.append(torch.cat([weight.detach(), torch.stack(losses).detach()]))
    return float((found[0] - found[1]).abs().max())


def _losses():
    weight = torch.zeros(1, requires_grad=True)
    optimizer = hvd.DistributedOptimizer(torch.optim.SGD([weight], lr=1.0))
    returned = []
    for value in (torch.tensor(2.0 + hvd.rank()), 4.0 + hvd.rank(), None, "text"):

        def closure():
            optimizer.zero_grad()
            weight.sum().backward()
            return value

        result = optimizer.step(closure)
        returned.append(result.item() if isinstance(result, torch.Tensor) else result)
    return returned


def _closures_and_losses():
    hvd.init()
    return _closures() < 1e-8, _losses()


def test_losses_of_closures_are_reduced_so_that_line_searches_agree(call_ranks):
    assert call_ranks(_closures_and_losses, 2) == [(True, [2.5, 4.5, None, "text"])] * 2


def _schedulers():
    """One made for the optimizer before it was wrapped, and one after: neither warns, both set the learning rate."""
    hvd.init()
    weight = torch.zeros(1, requires_grad=True)
    inner = torch.optim.SGD([weight], lr=1.0)
    before = torch.optim.lr_scheduler.StepLR(inner, step_size=1, gamma=0.5)
    optimizer = hvd.DistributedOptimizer(inner, [("w", weight)])
    after = torch.optim.lr_scheduler.StepLR(optimizer, step_size=1, gamma=0.5)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        for _ in range(2):
            optimizer.zero_grad()
            (weight * (hvd.rank() + 1)).sum().backward()
            optimizer.step()
            before.step()
            after.step()
    return weight.item(), [str(each.message) for each in caught], optimizer.param_groups[0]["lr"]


def test_schedulers_of_both_optimizers_work(call_ranks):
    assert call_ranks(_schedulers, 2) == [(-1.5 - 1.5 * 0.25, [], 0.0625)] * 2


def _copies():
    hvd.init()
    weight = torch.ones(2, requires_grad=True)
    optimizer = hvd.DistributedOptimizer(torch.optim.Adam([weight], lr=0.1), [("w", weight)])
    weight.sum().backward()
    optimizer.step()
    copies = [copy.deepcopy(optimizer), pickle.loads(pickle.dumps(optimizer))]
    states = []
    for each in copies:
        (parameter,) = each.param_groups[0]["params"]
        parameter.grad = torch.ones(2)
        each.step()
        states.append((type(each) is torch.optim.Adam, parameter is weight, each.state[parameter]["step"].item()))
    return states, isinstance(optimizer, torch.optim.Adam), repr(optimizer).splitlines()[0]


@pytest.mark.parametrize("np", [1, 2])
def test_copies_and_pickles_are_of_the_wrapped_class(call_ranks, np):
    assert call_ranks(_copies, np) == [([(True, False, 2.0)] * 2, True, "Adam (")] * np


def _one_rank():
    """There is nobody to reduce with: nothing is noticed, and gradients are the model's own."""
    hvd.init()
    weight = torch.zeros(2, requires_grad=True)
    optimizer = hvd.DistributedOptimizer(torch.optim.SGD([weight], lr=1.0))
    for _ in range(3):  # more than backward_passes_per_step
        weight.sum().backward()
    optimizer.zero_grad()
    weight.sum().backward()
    optimizer.synchronize()
    with optimizer.skip_synchronize():
        optimizer.step()
    optimizer.step(lambda: 1.0)
    return weight.tolist(), weight._post_accumulate_grad_hooks is None


def test_one_rank_trains_as_without_it(call_ranks):
    assert call_ranks(_one_rank, 1) == [([-2.0, -2.0], True)]


def _around_a_step():
    """PyTorch's own step hooks, a scheduler, and a second optimizer for the same parameters."""
    hvd.init()
    seen = []
    for turn in range(2):
        weight = torch.zeros(1, requires_grad=True) if turn == 0 else weight
        inner = torch.optim.SGD([weight], lr=1.0)
        optimizer = hvd.DistributedOptimizer(inner, [("w", weight)])
        optimizer.register_step_pre_hook(lambda *_: seen.append(weight.grad.item()))
        scheduler = torch.optim.lr_scheduler.StepLR(optimizer, step_size=1, gamma=0.5)
        for _ in range(2):
            optimizer.zero_grad()
            (weight * (hvd.rank() + 1)).sum().backward()
            optimizer.step()
            scheduler.step()
        del optimizer, scheduler, inner
        gc.collect()
    return seen, weight.item()


def test_hooks_run_once_with_reduced_gradients_and_schedulers_work(call_ranks):
    assert call_ranks(_around_a_step, 2) == [([1.5] * 4, 2 * -1.5 * 1.5)] * 2


def _accumulate_then_change():
    hvd.init()
    weight = torch.zeros(1, requires_grad=True)
    optimizer = hvd.DistributedOptimizer(torch.optim.SGD([weight], lr=1.0), [("w", weight)], backward_passes_per_step=3)
    values = []
    for passes in (3, 1):  # after one pass of three, step() reduces what there is
        optimizer.zero_grad()
        for _ in range(passes):
            (weight * (hvd.rank() + 1)).sum().backward()
        optimizer.step()
        values.append(weight.item())
    optimizer.set_backward_passes_per_step(1)
    optimizer.zero_grad()
    weight.sum().backward()
    optimizer.step()
    return values + [weight.item()]


def test_passes_add_up(call_ranks):
    assert call_ranks(_accumulate_then_change, 2) == [[-4.5, -6.0, -7.0]] * 2


def _load_state():
    hvd.init()
    weight = torch.ones(2, requires_grad=True)
    optimizer = hvd.DistributedOptimizer(torch.optim.Adam([weight], lr=0.1), [("w", weight)])
    weight.sum().backward()
    optimizer.step()
    state = optimizer.state_dict()
    optimizer.zero_grad()
    weight.sum().backward()  # not stepped on when the state is loaded
    optimizer.load_state_dict(state)
    optimizer.zero_grad()
    weight.sum().backward()
    optimizer.step()
    return optimizer.state[weight]["step"].item(), state["param_groups"][0]["lr"]


def test_a_loaded_state_begins_a_new_step(call_ranks):
    assert call_ranks(_load_state, 2) == [(2.0, 0.1)] * 2


def _state_survives_wrapping():
    hvd.init()
    weight = torch.ones(2, requires_grad=True)
    inner = torch.optim.Adam([weight], lr=0.1)
    weight.sum().backward()
    inner.step()
    optimizer = hvd.DistributedOptimizer(inner, [("w", weight)])
    return optimizer.state[weight]["step"].item(), optimizer.defaults["lr"], optimizer.param_groups is inner.param_groups


def test_options_and_state_are_the_wrapped_optimizers(call_ranks):
    assert call_ranks(_state_survives_wrapping, 1) == [(1.0, 0.1, True)]


def _mismatch_in_a_step():
    hvd.init()
    weight = torch.zeros(2 + hvd.rank(), requires_grad=True)
    other = torch.zeros(1, requires_grad=True)
    optimizer = hvd.DistributedOptimizer(torch.optim.SGD([weight, other], lr=1.0), [("w", weight), ("v", other)])
    try:
        (weight.sum() + other.sum()).backward()
    except hvd.HorovodInternalError as error:
        optimizer.zero_grad()  # nothing is in flight
        return str(error)


def test_a_failed_reduction_names_the_parameter_and_leaves_nothing_in_flight(call_ranks):
    for text in call_ranks(_mismatch_in_a_step, 2):
        assert "the ranks disagree about w: its shape is (2,) on rank 0 of the process set and (3,) on rank 1" in text


SHARED = [torch.ones(1)]


@pytest.mark.parametrize(
    "arguments, error, text",
    [
        ({"groups": 0}, ValueError, "a positive number or a list of lists of parameters, not 0"),
        ({"groups": -1}, ValueError, "a positive number or a list of lists of parameters, not -1"),
        ({"groups": "all"}, ValueError, "a positive number or a list of lists of parameters, not 'all'"),
        ({"groups": [torch.ones(1)]}, ValueError, "a positive number or a list of lists of parameters"),
        ({"groups": [["first"]]}, ValueError, "'first' is no torch.Tensor"),
        ({"groups": [SHARED, SHARED]}, ValueError, "groups has a parameter twice"),
        ({"op": 17}, ValueError, "op=17 is no reduction"),
        ({"process_set": [0]}, ValueError, "is not a ProcessSet"),
        ({"op": hvd.Sum, "gradient_predivide_factor": 2.0}, ValueError, "goes with op=Average only"),
        ({"backward_passes_per_step": 0}, ValueError, "must be positive, not 0"),
        ({"named_parameters": ["a"]}, ValueError, "must be pairs"),
        ({"named_parameters": [("a", "first"), ("a", "second")]}, ValueError, "duplicate names: a"),
        ({"named_parameters": [("a", "first")]}, ValueError, r"does not name these.*1 of group 0 \(shape \(3,\)\)"),
    ],
)
def test_arguments_that_do_not_go_together(arguments, error, text):
    hvd.init()
    parameters = {"first": torch.ones(2, requires_grad=True), "second": torch.ones(3, requires_grad=True)}
    if "named_parameters" in arguments:
        named = [i if isinstance(i, str) else (i[0], parameters[i[1]]) for i in arguments["named_parameters"]]
        arguments = {"named_parameters": named}
    with pytest.raises(error, match=text):
        hvd.DistributedOptimizer(torch.optim.SGD(list(parameters.values()), lr=1.0), **arguments)
    hvd.shutdown()


def test_before_init_it_cannot_be_made():
    weight = torch.ones(1, requires_grad=True)
    with pytest.raises(ValueError, match="has not been initialized"):
        hvd.DistributedOptimizer(torch.optim.SGD([weight], lr=1.0))


def test_the_old_name_of_groups_is_deprecated():
    hvd.init()
    weight = torch.ones(1, requires_grad=True)
    with pytest.warns(DeprecationWarning, match="use groups="):
        hvd.DistributedOptimizer(torch.optim.SGD([weight], lr=1.0), num_groups=2)
    hvd.shutdown()
