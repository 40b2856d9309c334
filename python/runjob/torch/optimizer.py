"""DistributedOptimizer: any PyTorch optimizer, which steps on gradients that are reduced over the ranks."""

from __future__ import annotations

import contextlib
import warnings
import weakref
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, Callable, cast

import torch

from .. import handles, process_sets
from ..calls import Reduction
from ..compression import Compressor
from ..process_sets import ProcessSet, global_process_set
from ..reduce_ops import Adasum, Average, resolve
from .buckets import GradientReduction
from .compression import Compression
from .delta_optimizer import DistributedAdasumMixin, WrappingMixin, positive
from .gradients import Gradients
from .operations import calls
from .parameter_names import name_parameters


class _DistributedMixin(WrappingMixin):
    """The mixin class that DistributedOptimizer() puts in front of an optimizer's own class.

    Gradients are reduced in buckets during the backward pass. A bucket's reduction starts when its last gradient has
    been accumulated backward_passes_per_step times. When backward() returns from the last of these passes, p.grad is
    the reduced gradient. step() reduces the gradients that no pass has computed. p.grad is None until the backward pass
    makes it, and stays None if no rank has made it. If only other ranks have made it, this rank takes part with zeros
    and gets the result.
    """

    def _begin(self, wrapped: torch.optim.Optimizer, gradients: Gradients, reduction: GradientReduction) -> None:
        self._gradients = gradients
        self._reduction = reduction
        self._wrapped = weakref.ref(wrapped)
        self._is_synchronized = False
        self._should_synchronize = True
        this = weakref.ref(self)
        gradients.follow(lambda: getattr(this(), "param_groups", ()))

    @property
    def backward_passes_per_step(self) -> int:
        """The number of backward passes that make one step."""
        return self._gradients.passes

    def set_backward_passes_per_step(self, passes: int) -> None:
        """Sets backward_passes_per_step, and begins to count again. Errors  ValueError unless positive."""
        self._gradients.passes = positive(passes)
        self._gradients.begin_anew()

    def synchronize(self) -> None:
        """Reduces the gradients that no backward pass has reduced; step() does so too. It is only needed before step(),
        to read or change gradients that the program has assigned itself, or that were accumulated in fewer than
        backward_passes_per_step passes. All ranks of the process set call it.

        Errors  HorovodInternalError and its kinds; MismatchError when the ranks have different parameters, or have run backward()
                unequally often. Nothing is in flight afterwards. backward() raises the same ones.
        """
        self._gradients.synchronize()
        self._is_synchronized = True

    @contextlib.contextmanager
    def skip_synchronize(self) -> Iterator[None]:
        """step() inside of it uses the gradients unchanged. It is for use after synchronize()."""
        self._should_synchronize = False
        try:
            yield
        finally:
            self._should_synchronize = True

    def step(self, closure: Callable[[], Any] | None = None) -> Any:
        """Takes the optimizer's own step, on reduced gradients.

        closure  the gradients that it computes are reduced whenever the optimizer calls it, and so is the loss that it
                 returns: optimizers such as LBFGS decide by the loss how to continue, and all ranks must decide alike.
        """
        self._note_step()
        if self._should_synchronize and closure is None:
            if self._is_synchronized:
                warnings.warn(
                    "optimizer.step() called without optimizer.skip_synchronize() context after optimizer.synchronize(): here gradients are "
                    "reduced only once, but Horovod reduces them again. Put step() into `with optimizer.skip_synchronize():`",
                    stacklevel=2,
                )
            self._gradients.synchronize()
        self._is_synchronized = False
        if closure is None:
            self._gradients.begin_step()
            return super().step()
        try:
            return super().step(self._synchronizing(closure) if self._should_synchronize else closure)
        finally:
            self._gradients.begin_step()

    # The base class's step runs the hooks of PyTorch: once, and on reduced gradients.
    step.hooked = True  # type: ignore[attr-defined]

    def _synchronizing(self, closure: Callable[[], Any]) -> Callable[[], Any]:
        def evaluate() -> Any:
            self._gradients.begin_evaluation()
            loss = closure()
            self._gradients.synchronize()
            return self._reduced(loss) if self._gradients.is_active else loss

        return evaluate

    def _reduced(self, loss: Any) -> Any:
        if not isinstance(loss, (torch.Tensor, float)):
            return loss
        value = loss.detach() if isinstance(loss, torch.Tensor) else torch.tensor(loss, dtype=torch.float64, device="cpu")
        reduction = Reduction(self._reduction.op, 1.0, 1.0, self._reduction.process_set)
        reduced = handles.run(calls.allreduce(value, f"{self._gradients.name}.loss", reduction))
        return reduced if isinstance(loss, torch.Tensor) else reduced.item()

    def zero_grad(self, *args: Any, **kwargs: Any) -> None:
        """Clears the gradients as the optimizer does. Their accumulation begins again, also that of gradients without a
        step. Errors  AssertionError in hooks of a backward pass, while gradients are in flight.
        """
        self._gradients.clear()
        self._is_synchronized = False
        super().zero_grad(*args, **kwargs)

    def add_param_group(self, param_group: dict[str, Any]) -> None:
        """Adds the group to the optimizer. All ranks must call it. Parameters without a name get one from their place."""
        super().add_param_group(param_group)
        self._gradients.follow()

    def load_state_dict(self, *args: Any, **kwargs: Any) -> None:
        """Loads the state into the optimizer. Waits for reductions in flight and discards them."""
        self._forget_step()
        super().load_state_dict(*args, **kwargs)

    def _forget_step(self) -> None:
        """Begins a step again. Elastic training does so after a failure. Errors of operations in flight are discarded."""
        self._gradients.drop()
        self._is_synchronized = False
        self._should_synchronize = True

    # Attributes of Horovod's optimizer, which scripts read.

    op = property(lambda self: self._reduction.op, doc="The reduction, such as Average.")
    process_set = property(lambda self: self._reduction.process_set, doc="The ranks that reduce gradients.")
    gradient_predivide_factor = property(lambda self: self._reduction.postscale_factor, doc="As given.")
    sparse_as_dense = property(lambda self: self._gradients.sparse_as_dense, doc="As given.")
    _compression = property(lambda self: self._reduction.compression, doc="The compressor.")
    _parameter_names = property(lambda self: self._gradients.names, doc="The name of each parameter.")
    _requires_update = property(lambda self: self._gradients.parameters(), doc="The parameters whose gradients are reduced.")
    _handles = property(lambda self: self._gradients.in_flight(), doc="(None, None) for each parameter whose gradient is in flight.")


def DistributedOptimizer(
    optimizer: torch.optim.Optimizer,
    named_parameters: Iterable[tuple[str, torch.Tensor]] | None = None,
    compression: type[Compressor] = Compression.none,
    backward_passes_per_step: int = 1,
    op: int = Average,
    gradient_predivide_factor: float = 1.0,
    num_groups: int = 0,
    groups: int | Sequence[Sequence[torch.Tensor]] | None = None,
    sparse_as_dense: bool = False,
    process_set: ProcessSet = global_process_set,
) -> _DistributedMixin:
    """An optimizer of a subclass of the class of `optimizer`, with its options and state, that reduces gradients over
    the ranks.

    named_parameters           model.named_parameters(): names every parameter, the same on all ranks. Without it,
                               parameters are named by their place.
    compression                Compression.none, Compression.fp16, or a Compressor, which gets one gradient at a time.
    backward_passes_per_step   the number of backward passes whose gradients are added up before they are reduced.
    op                         Average, Sum, Min, Max or Product. With Adasum, the optimizer steps on this rank's gradients,
                               and the changes of the parameters are reduced: see DistributedAdasumMixin. `groups` and
                               `sparse_as_dense` have no effect then.
    gradient_predivide_factor  with op=Average, divides before the sum by it, and after the sum by size / it.
    groups                     gradients that are reduced together, as lists of parameters, or how many such groups of equal
                               length; by default they are chosen by size. num_groups is its deprecated form.
    sparse_as_dense            sparse gradients are reduced as dense ones, and are sparse again afterwards. Otherwise
                               all ranks get the entries of all.
    Blocks  never, except in the first step after the parameters of a rank have changed: the ranks then exchange
            which parameters they have.
    Errors  ValueError for duplicate or missing names and for arguments that exclude each other.
    """
    op = resolve(op, None)
    process_sets.identifier(process_set)
    if gradient_predivide_factor != 1.0 and op != Average:
        raise ValueError("gradient_predivide_factor goes with op=Average only")
    if num_groups != 0:
        warnings.warn("num_groups= is deprecated: use groups=", DeprecationWarning, stacklevel=2)
        groups = num_groups if groups is None else groups
    names = name_parameters(optimizer, named_parameters)
    reduction = GradientReduction(op, 1.0 / gradient_predivide_factor, gradient_predivide_factor, compression, process_set)
    passes = positive(backward_passes_per_step)
    named_groups = _named_groups(groups, names)
    cls: Any = type(optimizer.__class__.__name__, (DistributedAdasumMixin if op == Adasum else _DistributedMixin, optimizer.__class__), {})
    distributed = cls.__new__(cls)
    state = {key: value for key, value in optimizer.__dict__.items() if key != "step"}  # without a scheduler's wrapper of step()
    distributed.__dict__.update(state)
    if op == Adasum:
        distributed._begin(optimizer, names, reduction, passes)
    else:
        distributed._begin(optimizer, Gradients(names, reduction, passes, named_groups, sparse_as_dense), reduction)
    return cast(_DistributedMixin, distributed)


def _named_groups(groups: Any, names: dict[torch.Tensor, str]) -> int | list[list[str]] | None:
    """`groups` with the parameters' names. Parameters that belong to no optimizer or have no gradient are left out.

    Errors  ValueError for a value that is neither a number nor lists of tensors, and for a parameter in two places.
    """
    if groups is None:
        return None
    if isinstance(groups, int):
        if groups <= 0:
            raise ValueError(f"groups must be a positive number or a list of lists of parameters, not {groups}")
        return groups
    if not isinstance(groups, (list, tuple)) or not all(isinstance(group, (list, tuple)) for group in groups):
        raise ValueError(f"groups must be a positive number or a list of lists of parameters, not {groups!r:.80}")
    seen: set[torch.Tensor] = set()
    for parameter in (parameter for group in groups for parameter in group):
        if not isinstance(parameter, torch.Tensor):
            raise ValueError(f"groups must be lists of parameters; {parameter!r:.80} is no torch.Tensor")
        if parameter in seen:
            raise ValueError(f"groups has {names.get(parameter, 'a parameter')} twice; a parameter goes into one group")
        seen.add(parameter)
    return [[names[parameter] for parameter in group if parameter in names] for group in groups]
