"""DistributedOptimizer: any PyTorch optimizer, stepping on gradients that are averaged over the ranks."""

from __future__ import annotations

import contextlib
import warnings
import weakref
from collections import Counter
from typing import Any, Callable, Iterable, Iterator, NamedTuple

import torch

from .. import basics, process_sets
from ..exceptions import Error
from ..process_sets import GlobalProcessSet, global_process_set
from ..reduce_ops import Adasum, Average
from .compression import Compression
from .handles import synchronize
from .operations import allreduce_async_


class _InFlight(NamedTuple):
    handle: int
    context: Any  # the compressor's


class _DistributedMixin:
    """What DistributedOptimizer() puts in front of an optimizer's own class.

    A parameter's gradient is submitted as soon as it has been accumulated backward_passes_per_step times; step() waits
    for all of them. A parameter that got no gradient takes part with what it has, or with zeros: another rank may have
    used it.
    """

    def _begin(self, names, compression, passes, op, gradient_predivide_factor, process_set) -> None:
        self._names: dict[torch.Tensor, str] = names
        self._compression = compression
        self.op = op
        self.gradient_predivide_factor = gradient_predivide_factor
        self.process_set = process_set
        self._in_flight: dict[torch.Tensor, _InFlight] = {}
        self._synchronized = False
        self._should_synchronize = True
        self.set_backward_passes_per_step(passes)
        self._requires_update: list[torch.Tensor] = []
        if basics.size() > 1:
            self._register_hooks()

    def _register_hooks(self) -> None:
        """One hook per parameter. They end with this optimizer: a parameter may be given to another one after it."""
        this = weakref.ref(self)

        def hook(parameter: torch.Tensor) -> None:
            optimizer = this()
            if optimizer is not None:
                optimizer._gradient_is_ready(parameter)

        for parameter in self._names:
            if parameter.requires_grad:
                self._requires_update.append(parameter)
                weakref.finalize(self, parameter.register_post_accumulate_grad_hook(hook).remove)

    def _gradient_is_ready(self, parameter: torch.Tensor) -> None:
        if self._passes_left[parameter] <= 0:
            raise AssertionError(
                f"the gradient of {self._names[parameter]} was computed more than backward_passes_per_step "
                f"({self.backward_passes_per_step}) times before step(); raise backward_passes_per_step to accumulate"
            )
        self._passes_left[parameter] -= 1
        if self._passes_left[parameter] == 0:
            self._submit(parameter)

    def _submit(self, parameter: torch.Tensor) -> None:
        if parameter.grad is None:
            parameter.grad = torch.zeros_like(parameter)
        if parameter.grad.is_sparse:
            raise NotImplementedError(
                f"the gradient of {self._names[parameter]} is sparse: sparse gradients are not in this version of runjob; "
                "use sparse=False in the layer"
            )
        average = self.op == Average
        compressed, context = self._compression.compress(parameter.grad)
        handle = allreduce_async_(
            compressed.contiguous(),
            name=self._names[parameter],
            op=self.op,
            prescale_factor=1.0 / self.gradient_predivide_factor if average else 1.0,
            postscale_factor=self.gradient_predivide_factor if average else 1.0,
            process_set=self.process_set,
        )
        self._in_flight[parameter] = _InFlight(handle, context)

    def synchronize(self) -> None:
        """Waits until every gradient is the reduced one. Needed before step() only to look at or change gradients:
        then step() goes into skip_synchronize().

        Errors  HorovodInternalError and its kinds; nothing is in flight afterwards.
        """
        for parameter in self._requires_update:
            if parameter not in self._in_flight:
                self._submit(parameter)
        in_flight, self._in_flight = self._in_flight, {}
        failure = None
        for parameter, (handle, context) in in_flight.items():
            self._passes_left[parameter] = self.backward_passes_per_step
            try:
                reduced = self._compression.decompress(synchronize(handle), context)
            except Error as error:
                failure = failure or error
                continue
            self._take_back(parameter, reduced)
        if failure is not None:
            raise failure
        self._synchronized = True

    def _take_back(self, parameter: torch.Tensor, reduced: torch.Tensor) -> None:
        if parameter.grad is None:
            raise AssertionError(
                f"the gradient of {self._names[parameter]} was removed while it was being reduced; "
                "clear gradients after step() only"
            )
        if reduced.data_ptr() != parameter.grad.data_ptr():
            parameter.grad.detach().copy_(reduced)

    @contextlib.contextmanager
    def skip_synchronize(self) -> Iterator[None]:
        """step() inside it uses the gradients as they are: for after synchronize()."""
        self._should_synchronize = False
        try:
            yield
        finally:
            self._should_synchronize = True

    def step(self, closure: Callable[[], Any] | None = None) -> Any:
        """The optimizer's own step, on reduced gradients. The gradients that `closure` computes are reduced as well."""
        if not self._should_synchronize:
            self._synchronized = False
            return super().step(closure)
        if closure is not None:
            return super().step(self._synchronizing(closure))
        if self._synchronized:
            warnings.warn(
                "step() after synchronize() reduces the gradients a second time; put it into skip_synchronize()", stacklevel=2
            )
        self.synchronize()
        self._synchronized = False
        return super().step()

    step.hooked = True  # the base class's step runs the hooks of PyTorch: once, and on reduced gradients

    def _synchronizing(self, closure: Callable[[], Any]) -> Callable[[], Any]:
        def evaluate() -> Any:
            loss = closure()
            self.synchronize()
            self._synchronized = False
            return loss

        return evaluate

    def zero_grad(self, *args: Any, **kwargs: Any) -> None:
        """The optimizer's own. Errors  AssertionError while gradients are in flight."""
        if self._in_flight:
            raise AssertionError(
                "zero_grad() after backward() and before step() or synchronize(): gradients are still being reduced"
            )
        super().zero_grad(*args, **kwargs)

    def set_backward_passes_per_step(self, passes: int) -> None:
        """How many backward passes add up to one step."""
        if passes <= 0:
            raise ValueError(f"backward_passes_per_step must be positive, not {passes}")
        self.backward_passes_per_step = passes
        self._passes_left = {parameter: passes for parameter in self._names}

    def load_state_dict(self, *args: Any, **kwargs: Any) -> None:
        """The optimizer's own; what was in flight is waited for and dropped."""
        in_flight, self._in_flight = self._in_flight, {}
        for handle, _ in in_flight.values():
            with contextlib.suppress(Error):  # elastic training loads a state after a failure
                synchronize(handle)
        self._synchronized = False
        self._should_synchronize = True
        self.set_backward_passes_per_step(self.backward_passes_per_step)
        super().load_state_dict(*args, **kwargs)


def DistributedOptimizer(
    optimizer: torch.optim.Optimizer,
    named_parameters: Iterable[tuple[str, torch.Tensor]] | None = None,
    compression: type = Compression.none,
    backward_passes_per_step: int = 1,
    op: int = Average,
    gradient_predivide_factor: float = 1.0,
    num_groups: int = 0,
    groups: Any = None,
    sparse_as_dense: bool = False,
    process_set: GlobalProcessSet = global_process_set,
) -> torch.optim.Optimizer:
    """An optimizer of a subclass of optimizer's class, with its options and state, that reduces gradients over the ranks.

    named_parameters           model.named_parameters(): names every parameter, the same on all ranks. Without it,
                               parameters are named by their place.
    compression                Compression.none or Compression.fp16.
    backward_passes_per_step   gradients of so many backward passes are added up before they are reduced.
    gradient_predivide_factor  with op=Average, divides before the sum by it, and after the sum by size / it.
    Errors  ValueError for duplicate or missing names and arguments that exclude each other; NotImplementedError for
            groups, num_groups, sparse_as_dense, Adasum and process sets, which later versions have.
    """
    for argument, given in (("num_groups", num_groups), ("groups", groups), ("sparse_as_dense", sparse_as_dense)):
        if given:
            raise NotImplementedError(f"DistributedOptimizer({argument}=...) is not in this version of runjob; leave it out")
    if op == Adasum:
        raise NotImplementedError("DistributedOptimizer(op=Adasum) is not in this version of runjob")
    process_sets.identifier(process_set)
    if gradient_predivide_factor != 1.0 and op != Average:
        raise ValueError("gradient_predivide_factor goes with op=Average only")
    names = _name_parameters(optimizer, named_parameters)
    cls = type(optimizer.__class__.__name__, (_DistributedMixin, optimizer.__class__), {})
    distributed = cls.__new__(cls)
    distributed.__dict__.update(optimizer.__dict__)
    distributed._begin(names, compression, backward_passes_per_step, op, gradient_predivide_factor, process_set)
    return distributed


def _name_parameters(optimizer, named_parameters) -> dict[torch.Tensor, str]:
    parameters = [(g, i, p) for g, group in enumerate(optimizer.param_groups) for i, p in enumerate(group["params"])]
    if named_parameters is None:
        return {p: f"allreduce.noname.{g}.{i}" for g, i, p in parameters}
    named = list(named_parameters)
    if any(not isinstance(item, tuple) for item in named):
        raise ValueError("named_parameters must be pairs (name, parameter), as model.named_parameters() gives them")
    duplicates = sorted(name for name, count in Counter(name for name, _ in named).items() if count > 1)
    if duplicates:
        raise ValueError(f"named_parameters has duplicate names: {', '.join(duplicates)}")
    names = {parameter: name for name, parameter in named}
    missing = [f"{i} of group {g} (shape {tuple(p.shape)})" for g, i, p in parameters if p not in names]
    if missing:
        raise ValueError(f"named_parameters does not name these parameters of the optimizer: {', '.join(missing)}")
    return {p: names[p] for _, _, p in parameters}
