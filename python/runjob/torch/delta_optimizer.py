"""DistributedOptimizer(op=Adasum): each rank steps on its own gradients, and the changes of the parameters are reduced."""

from __future__ import annotations

import contextlib
import weakref
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any, Callable, SupportsIndex

import torch

from .. import handles, job
from ..calls import Reduction
from ..compression import split
from .buckets import GradientReduction
from .compression import NATIVE
from .grouped import groups
from .parameter_names import add_names

if TYPE_CHECKING:
    _Optimizer = torch.optim.Optimizer
else:
    _Optimizer = object


class WrappingMixin(_Optimizer):
    """What all mixin classes of DistributedOptimizer() share. They stand in front of the wrapped optimizer's own class."""

    _wrapped: Callable[[], torch.optim.Optimizer | None]

    def _note_step(self) -> None:
        """Marks the wrapped optimizer as stepped: a scheduler that was made for it warns otherwise."""
        wrapped = self._wrapped()
        if wrapped is not None:
            wrapped._opt_called = True  # type: ignore[attr-defined]

    def __reduce_ex__(self, protocol: SupportsIndex) -> tuple[Any, ...]:
        """Copies and pickles have the class of the wrapped optimizer, and belong to no job."""
        classes: tuple[type, ...] = type(self).__mro__
        own = next(cls for cls in classes if issubclass(cls, torch.optim.Optimizer) and cls is not type(self))
        return object.__new__, (own,), self.__getstate__()


class DistributedAdasumMixin(WrappingMixin):
    """The mixin class for op=Adasum. With one rank it is the wrapped optimizer.

    All ranks call step(), equally often. A torch.amp.GradScaler is not supported: it skips steps on single ranks.
    """

    def _begin(self, wrapped: torch.optim.Optimizer, names: dict[torch.Tensor, str], reduction: GradientReduction, passes: int) -> None:
        self._names = names
        self._reduction = reduction
        self._wrapped = weakref.ref(wrapped)
        self._passes = passes

    def step(self, closure: Callable[[], Any] | None = None) -> Any:
        """Takes the optimizer's own step on this rank's gradients, reduces the changes of all parameters that require
        gradients as one group, and adds them to the parameters as they were before. Blocks.

        Errors  HorovodInternalError and its kinds; MismatchError when the ranks have different parameters. The parameters
                are as before the step then, and the optimizer's state is as after it.
        """
        self._note_step()
        if not self._reduces():
            return super().step() if closure is None else super().step(closure)
        parameters = [each for group in self.param_groups for each in group["params"] if each.requires_grad]
        before = [parameter.detach().clone() for parameter in parameters]
        try:
            result = super().step() if closure is None else super().step(closure)
            with torch.no_grad():
                for parameter, start, change in zip(parameters, before, self._reduced_changes(parameters, before)):
                    parameter.copy_(start.add_(change))
        except BaseException:
            with torch.no_grad():
                for parameter, start in zip(parameters, before):
                    parameter.copy_(start)
            raise
        return result

    # The base class's step runs the hooks of PyTorch: once.
    step.hooked = True  # type: ignore[attr-defined]

    def _reduces(self) -> bool:
        process_set = self._reduction.process_set
        return job.size() != 1 and bool(process_set.included()) and (process_set.size() or 1) > 1

    def _reduced_changes(self, parameters: Sequence[torch.Tensor], before: Sequence[torch.Tensor]) -> list[torch.Tensor]:
        compression, native = split(self._reduction.compression, NATIVE)
        pairs = [compression.compress(parameter.detach() - start) for parameter, start in zip(parameters, before)]
        reduction = Reduction(self._reduction.op, 1.0, 1.0, self._reduction.process_set, native)
        changes: list[Any] = [None] * len(pairs)
        for device in dict.fromkeys(change.device for change, _ in pairs):  # a group has one device
            places = [place for place, (change, _) in enumerate(pairs) if change.device == device]
            name = f"DistributedOptimizer.changes.{self._parameter_names[parameters[places[0]]]}"
            given = [pairs[place][0].contiguous() for place in places]
            for place, change in zip(places, handles.run(groups.allreduce(given, name, reduction, in_place=True))):
                changes[place] = compression.decompress(change, pairs[place][1])
        return changes

    def synchronize(self) -> None:
        """Does nothing: gradients are not reduced."""

    @contextlib.contextmanager
    def skip_synchronize(self) -> Iterator[None]:
        """Errors  AssertionError."""
        raise AssertionError("skip_synchronize() has no meaning with op=Adasum, which reduces in step(); use another op")
        yield  # makes it a generator

    @property
    def backward_passes_per_step(self) -> int:
        """The number as given. A step takes the gradients that are there, of any number of passes."""
        return self._passes

    def set_backward_passes_per_step(self, passes: int) -> None:
        """Sets backward_passes_per_step. Errors  ValueError unless positive."""
        self._passes = positive(passes)

    # Attributes of Horovod's optimizer, which scripts read.

    op = property(lambda self: self._reduction.op, doc="The reduction, Adasum.")
    process_set = property(lambda self: self._reduction.process_set, doc="The ranks that reduce the changes.")
    _compression = property(lambda self: self._reduction.compression, doc="The compressor.")
    _parameter_names = property(lambda self: add_names(self.param_groups, self._names), doc="The name of each parameter.")


def positive(passes: int) -> int:
    """`passes` itself. Errors  ValueError unless positive."""
    if passes <= 0:
        raise ValueError(f"backward_passes_per_step must be positive, not {passes}")
    return passes
