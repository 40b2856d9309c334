"""The state of training with PyTorch. The other names of horovod.torch.elastic.state are in handlers.py."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ...elastic import ObjectState
from ...elastic.array_kinds import add_kind
from .handlers import (
    ModelStateHandler,
    OptimizerStateHandler,
    SamplerStateHandler,
    StateHandler,
    TreeHandler,
    get_handler_registry,
    handler_of,
    is_ours,
    set_handler_registry,
)
from .sampler import ElasticSampler
from .tensor_copies import TorchTensors

__all__ = [
    "ModelStateHandler", "OptimizerStateHandler", "SamplerStateHandler", "StateHandler", "TorchState", "get_handler_registry",
    "set_handler_registry",
]  # fmt: skip

add_kind(TorchTensors())


class TorchState(ObjectState):
    """Models, optimizers, samplers and plain objects: each keyword becomes an attribute.

        state = TorchState(model=model, optimizer=optimizer, sampler=sampler, epoch=0, batch=0)

    A commit copies the plain objects first, and then all tensors, into the same memory each time.

    Attributes  those of the keywords. A new value for one of them is part of the next commits.
    Errors      ValueError for a value that cannot be copied; in sync() MismatchError for models and optimizers that
                differ from rank 0's.
    """

    def __init__(self, model: Any = None, optimizer: Any = None, **kwargs: Any) -> None:
        kwargs.update(model=model, optimizer=optimizer)
        found = {name: handler_of(value) for name, value in kwargs.items()}
        self._handlers: dict[str, StateHandler] = {name: handler for name, handler in found.items() if handler is not None}
        for name, handler in self._handlers.items():
            super().__setattr__(name, handler.value)
        super().__init__(**{name: value for name, value in kwargs.items() if name not in self._handlers})

    def save(self) -> None:
        """Saves as ObjectState does, after the handlers of other classes."""
        for handler in self._other_handlers():
            handler.save()
        super().save()

    def restore(self) -> None:
        """Restores as ObjectState does, and by the handlers of other classes."""
        super().restore()
        for handler in self._other_handlers():
            handler.restore()

    def sync(self) -> None:
        """Synchronizes as ObjectState does, and by the handlers of other classes. Divides the samples that have not
        been processed, on all ranks.
        """
        super().sync()
        if self._rank() == 0:  # rank 0 keeps its own values; the other ranks divide the samples when they load them
            self._share_samples()
        for handler in self._other_handlers():
            handler.sync()

    sync.leaves_a_commit = True  # type: ignore[attr-defined]

    def reset(self) -> None:
        """Divides the samples of each sampler among the present ranks."""
        self._share_samples()

    def _share_samples(self) -> None:
        for handler in self._handlers.values():
            if isinstance(handler.value, ElasticSampler):
                handler.value.reset()

    def __setattr__(self, name: str, value: Any) -> None:
        handler = self.__dict__.get("_handlers", {}).get(name)
        if handler is not None and value is not handler.value:
            handler.set_value(value)
        super().__setattr__(name, value)

    def _values(self) -> dict[str, Any]:
        return {**{name: handler.tree() for name, handler in self._own_handlers().items()}, **super()._values()}

    def _set_values(self, values: Mapping[str, Any]) -> None:
        own = self._own_handlers()
        super()._set_values({name: value for name, value in values.items() if name not in own})
        for name, handler in own.items():
            handler.load(values[name])

    def _outside_of_snapshot(self) -> list[str]:
        return [name for name, each in self._handlers.items() if not is_ours(type(each))]

    def _own_handlers(self) -> dict[str, TreeHandler]:
        """The handlers whose trees are a part of this state's commits."""
        return {name: each for name, each in self._handlers.items() if isinstance(each, TreeHandler) and is_ours(type(each))}

    def _other_handlers(self) -> list[StateHandler]:
        return [each for each in self._handlers.values() if not is_ours(type(each))]
