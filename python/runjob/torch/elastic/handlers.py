"""Saves the values of a TorchState by their type: models, optimizers, samplers and other objects with a state_dict()."""

from __future__ import annotations

from typing import Any, Callable

import torch

from ... import job
from ...elastic import ObjectState
from ...exceptions import MismatchError
from ..parameter_names import group_names, keys_among_ranks
from .sampler import ElasticSampler


class StateHandler:
    """Saves, restores and synchronizes one value. set_handler_registry() registers subclasses for other types."""

    def __init__(self, value: Any) -> None:
        self.value = value

    def save(self) -> None:
        """Copies the value's state."""
        raise NotImplementedError

    def restore(self) -> None:
        """Restores the copy."""
        raise NotImplementedError

    def sync(self) -> None:
        """Sends all ranks rank 0's state. Runs on all ranks."""
        raise NotImplementedError

    def set_value(self, value: Any) -> None:
        """Replaces the value by another one."""
        self.value = value
        self.save()


class TreeHandler(StateHandler):
    """A handler whose state is a tree of plain objects and tensors, so that a TorchState commits it together with all
    others.

    is_alone  whether the handler has a commit of its own, for save(), restore() and sync().
    """

    def __init__(self, value: Any, is_alone: bool = True) -> None:
        super().__init__(value)
        self._state = _OneValue(self) if is_alone else None

    def tree(self) -> Any:
        """The state, with the tensors themselves."""
        return self.value.state_dict()

    def load(self, tree: Any) -> None:
        """Loads a tree into the value. The tree may contain the tensors of tree(), which then have the right values."""
        self.value.load_state_dict(tree)

    def save(self) -> None:
        if self._state is not None:
            self._state.save()

    def restore(self) -> None:
        if self._state is not None:
            self._state.restore()

    def sync(self) -> None:
        if self._state is not None:
            self._state.sync()


class _OneValue(ObjectState):
    """The state of a handler that has a commit of its own."""

    def __init__(self, handler: TreeHandler) -> None:
        self._handler = handler
        super().__init__()

    def _values(self) -> dict[str, Any]:
        return {type(self._handler.value).__name__: self._handler.tree()}

    def _set_values(self, values: Any) -> None:
        for value in values.values():
            self._handler.load(value)


class ModelStateHandler(TreeHandler):
    """For torch.nn.Module."""

    def load(self, tree: Any) -> None:
        live = self.value.state_dict()
        if live.keys() == tree.keys() and all(_is_same(live[name], value) for name, value in tree.items()):
            return
        try:
            self.value.load_state_dict(tree)
        except RuntimeError as error:
            raise MismatchError(
                f"the {type(self.value).__name__} of rank {job.rank()} has not the form of rank 0's: {' '.join(str(error).split())} "
                "Make the same model on all ranks before elastic.run()."
            ) from error


class OptimizerStateHandler(TreeHandler):
    """For torch.optim.Optimizer. Its parameter groups and their states are changed in place, because schedulers keep
    references to them. A parameter's state is found by its name if the optimizer knows names, otherwise by its place.
    """

    def tree(self) -> Any:
        optimizer = self.value
        return [
            {
                "options": {key: value for key, value in group.items() if key not in ("params", "param_names")},
                "states": {key: dict(optimizer.state.get(parameter, {})) for key, parameter in zip(keys, group["params"])},
            }
            for group, keys in zip(optimizer.param_groups, keys_among_ranks(optimizer))
        ]

    def load(self, tree: Any) -> None:
        optimizer = self.value
        keys = keys_among_ranks(optimizer)
        names, given_names = group_names(keys), group_names([list(group["states"]) for group in tree])
        self._check(dict(zip(names, keys)), {name: list(group["states"]) for name, group in zip(given_names, tree)})
        forget_step: Callable[[], None] | None = getattr(optimizer, "_forget_step", None)
        if forget_step is not None:
            forget_step()  # gradients of a DistributedOptimizer may be in flight
        given = dict(zip(given_names, tree))
        for group, in_group, name in zip(optimizer.param_groups, keys, names):
            group.update(given[name]["options"])
            for parameter, key in zip(group["params"], in_group):
                state = given[name]["states"][key]
                if state:
                    optimizer.state[parameter] = _placed(state, parameter, group)
                else:
                    optimizer.state.pop(parameter, None)

    def _check(self, ours: dict[str, list[str]], theirs: dict[str, list[str]]) -> None:
        """Checks that both have the same parameters. `ours`, `theirs`: the keys of each group, by its name."""
        if {name: set(keys) for name, keys in ours.items()} == {name: set(keys) for name, keys in theirs.items()}:
            return
        other = set().union(*ours.values()) ^ set().union(*theirs.values())
        lacking = f"; {min(other)} is in one of them only" if other else ""
        raise MismatchError(
            f"the {type(self.value).__name__} has parameter groups of sizes {[*map(len, ours.values())]} on rank {job.rank()}, and "
            f"{[*map(len, theirs.values())]} on rank 0{lacking}; make the same optimizer on all ranks before elastic.run()"
        )


class SamplerStateHandler(TreeHandler):
    """For ElasticSampler."""

    def sync(self) -> None:
        """Sends all ranks rank 0's state, and divides the samples that have not been processed among them."""
        super().sync()
        self.value.reset()


class StateDictHandler(TreeHandler):
    """For other objects with state_dict() and load_state_dict(): schedulers of learning rates, scalers of gradients."""


def _is_same(live: Any, value: Any) -> bool:
    return isinstance(live, torch.Tensor) and isinstance(value, torch.Tensor) and live.data_ptr() == value.data_ptr()


def _placed(state: dict[str, Any], parameter: torch.Tensor, group: dict[str, Any]) -> dict[str, Any]:
    """Moves tensors from another rank to the device where PyTorch's optimizers expect them. That is the device of the
    parameter, except for step counts that the device does not need.
    """
    on_device = group.get("capturable") or group.get("fused")

    def placed(value: Any) -> Any:
        if isinstance(value, torch.Tensor):
            return value.to(parameter.device) if value.dim() > 0 or on_device else value
        return [placed(each) for each in value] if type(value) is list else value

    return {key: placed(value) for key, value in state.items()}


_registry: list[tuple[type, type[StateHandler]]] = [
    (torch.nn.Module, ModelStateHandler),
    (torch.optim.Optimizer, OptimizerStateHandler),
    (ElasticSampler, SamplerStateHandler),
    (torch.optim.lr_scheduler.LRScheduler, StateDictHandler),
    (getattr(torch.amp, "GradScaler", torch.cuda.amp.GradScaler), StateDictHandler),  # the first from PyTorch 2.3 on
]


def get_handler_registry() -> list[tuple[type, type[StateHandler]]]:
    """The (type, handler) pairs. The first type of which a value is an instance decides."""
    return _registry


def set_handler_registry(registry: list[tuple[type, type[StateHandler]]]) -> None:
    """Replaces all pairs, for states that are made from now on."""
    global _registry
    _registry = registry


def handler_of(value: Any) -> StateHandler | None:
    """A handler for a value of a TorchState; None for a plain object. runjob's handlers have no commits of their own then."""
    for cls, handler in _registry:
        if isinstance(value, cls):
            return handler(value, is_alone=False) if issubclass(handler, TreeHandler) and is_ours(handler) else handler(value)
    return None


def is_ours(handler: type[StateHandler]) -> bool:
    """True if a TorchState itself commits the trees of this class of handlers. It calls the methods of all other classes."""
    return issubclass(handler, TreeHandler) and handler.__module__ == __name__
