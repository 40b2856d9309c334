"""Reduces lists of gradients that PyTorch has computed over the ranks, before an optimizer of Keras applies them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import torch

from ...bucket_settings import bucket_settings
from ...compression import Compressor
from ...gradient_groups import given_groups, grouped
from ...process_sets import ProcessSet, size_of
from ...reduce_ops import Average, Sum
from ...torch import grouped_allreduce


class GradientReduction:
    """The checked arguments of DistributedOptimizer().

    Errors  ValueError.
    """

    def __init__(
        self, compression: type[Compressor], op: int, gradient_predivide_factor: float, num_groups: int, groups: Any,
        process_set: ProcessSet, scale_local_gradients: bool,
    ) -> None:  # fmt: skip
        if op not in (Average, Sum):
            raise ValueError(f"op={op!r}: optimizers of Keras take op=Average and op=Sum")
        if gradient_predivide_factor != 1.0 and op != Average:
            raise ValueError("gradient_predivide_factor needs op=Average")
        groups = given_groups(num_groups, groups)
        self._groups = [[id(each) for each in group] for group in groups] if isinstance(groups, (list, tuple)) else groups
        self._process_set = process_set
        self._scale_local_gradients = scale_local_gradients
        self._options: dict[str, Any] = {"compression": compression, "op": op, "process_set": process_set}
        if gradient_predivide_factor != 1.0:
            self._options.update(prescale_factor=1.0 / gradient_predivide_factor, postscale_factor=float(gradient_predivide_factor))
        self.local: set[int] = set()

    def register_local(self, variable: Any) -> None:
        """Excludes the gradients of a variable from the reduction."""
        self.local.add(id(variable))

    # With model.compile(jit_compile=True), the code before and after it is compiled.
    @torch.compiler.disable  # type: ignore[untyped-decorator]
    @torch.no_grad()
    def reduced(self, gradients: Sequence[Any], variables: Sequence[Any]) -> list[Any]:
        """The reduced gradients of `variables`, in their order. None stays None, on all ranks or on none. A rank that
        is not in the set keeps its own gradients.
        """
        if self._process_set.included() is False:
            return list(gradients)
        results = [gradient.to_dense() if gradient is not None and gradient.is_sparse else gradient for gradient in gradients]
        identities = [id(variable) for variable in variables]
        if self._scale_local_gradients:
            for index, identity in enumerate(identities):
                if identity in self.local and results[index] is not None:
                    results[index] = results[index] / size_of(self._process_set)
        places = [index for index, gradient in enumerate(results) if gradient is not None and identities[index] not in self.local]
        sizes = [0 if gradient is None else gradient.numel() * gradient.element_size() for gradient in results]
        for group in grouped(places, sizes, identities, self._groups, bucket_settings().bucket_bytes):
            for index, gradient in zip(group, grouped_allreduce([results[index] for index in group], **self._options)):
                results[index] = gradient
        return results


class Accumulation:
    """Adds up gradients over several backward passes before they are reduced and applied. Errors  ValueError."""

    def __init__(self, reduction: GradientReduction, passes: int, averages: bool) -> None:
        if not isinstance(passes, int) or passes < 1:
            raise ValueError(f"backward_passes_per_step={passes!r}: give a positive number")
        self.reduction = reduction
        self._passes = passes
        self._averages = averages
        # By variables: the number of passes, and the sums of their gradients.
        self._sums: dict[tuple[int, ...], tuple[int, list[Any]]] = {}

    def step(self, gradients: Sequence[Any], variables: Sequence[Any], apply: Callable[[list[Any]], None]) -> None:
        """Takes the gradients of one backward pass. If the pass is the last one of a step, calls `apply` with the
        reduced gradients. The passes of each list of variables are counted separately.
        """
        if self._passes == 1:
            apply(self.reduction.reduced(gradients, variables))
            return
        key = tuple(map(id, variables))
        count, sums = self._sums.pop(key, (0, []))
        if sums:
            totals = [_added(*pair) for pair in zip(sums, gradients)]
        else:
            totals = [None if gradient is None else gradient.clone() for gradient in gradients]
        if count + 1 < self._passes:
            self._sums[key] = count + 1, totals
            return
        if self._averages:
            totals = [None if total is None else total / self._passes for total in totals]
        apply(self.reduction.reduced(totals, variables))


def _added(total: Any, gradient: Any) -> Any:
    if total is None or gradient is None:
        return gradient if total is None else total
    return total + gradient
