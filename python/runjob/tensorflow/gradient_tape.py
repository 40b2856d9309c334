"""DistributedGradientTape: a tf.GradientTape whose gradients are reduced over the ranks."""

from __future__ import annotations

from typing import Any

import tensorflow as tf

from ..compression import Compressor
from ..keras_optimizer import variables_of
from ..process_sets import ProcessSet, global_process_set
from ..reduce_ops import Average
from .compression import Compression
from .gradients import GradientReduction


class _DistributedMixin:
    """The mixin class that DistributedGradientTape() puts in front of a tape's own class."""

    _reduction: GradientReduction

    def gradient(self, target: Any, sources: Any, output_gradients: Any = None, use_generic_names: bool = False, **more: Any) -> Any:
        """The reduced gradients of the tape. Gradients of local sources are this rank's own. All ranks must call it.

        use_generic_names  has no effect.
        more               unconnected_gradients, as tf.GradientTape.gradient() takes it.
        Errors             as allreduce().
        """
        own = super().gradient(target, sources, output_gradients, **more)  # type: ignore[misc]
        reduced = self._reduction.reduced(_flat(own), _flat(sources))
        return tf.nest.pack_sequence_as(sources, reduced) if tf.nest.is_nested(sources) else reduced[0]

    def get_local_and_global_gradients(
        self, target: Any, sources: Any, output_gradients: Any = None, use_generic_names: bool = False
    ) -> tuple[list[Any], list[Any]]:
        """The gradients as two lists: those of local sources, and the reduced ones."""
        gradients = _flat(self.gradient(target, sources, output_gradients, use_generic_names))
        pairs = list(zip(gradients, _flat(sources)))
        local = [gradient for gradient, source in pairs if self._reduction.is_local(source)]
        return local, [gradient for gradient, source in pairs if not self._reduction.is_local(source)]

    def register_local_source(self, source: Any) -> None:
        """Excludes the gradients of a variable from the reduction, because each rank has another variable."""
        self._reduction.register_local(source)


def DistributedGradientTape(  # noqa: N802  Horovod's name
    gradtape: tf.GradientTape, device_dense: str = "", device_sparse: str = "",
    compression: type[Compressor] = Compression.none, sparse_as_dense: bool = False, op: int = Average,
    gradient_predivide_factor: float = 1.0, num_groups: int = 0, groups: Any = None,
    process_set: ProcessSet = global_process_set, scale_local_gradients: bool = True,
) -> Any:  # fmt: skip
    """Changes `gradtape` so that gradient() reduces over the ranks of the set, and returns it. It may be called before
    or after the tape has recorded. The tape keeps the methods of its class.

    sparse_as_dense            makes gradients that are tf.IndexedSlices dense first, which is better if most rows have
                               a gradient.
    gradient_predivide_factor  divides by it before the sum, and by the rest of the size after the sum; for op=Average.
    groups                     the number of operations that the gradients become, or lists of variables whose gradients
                               are reduced together.
    scale_local_gradients      divides gradients of local sources by the size.
    Errors                     ValueError for options that exclude each other.
    """
    reduction = GradientReduction(
        compression, sparse_as_dense, op, gradient_predivide_factor, num_groups, groups, process_set, scale_local_gradients,
        device_dense, device_sparse,
    )  # fmt: skip
    own = type(gradtape)
    gradtape.__class__ = type(own.__name__, (_DistributedMixin, own), {})
    gradtape._reduction = reduction
    return gradtape


def PartialDistributedGradientTape(  # noqa: N802
    gradtape: tf.GradientTape, device_dense: str = "", device_sparse: str = "",
    compression: type[Compressor] = Compression.none, sparse_as_dense: bool = False, op: int = Average,
    gradient_predivide_factor: float = 1.0, num_groups: int = 0, groups: Any = None,
    process_set: ProcessSet = global_process_set, local_layers: Any = None, scale_local_gradients: bool = True,
) -> Any:  # fmt: skip
    """DistributedGradientTape(), with all variables of `local_layers`, a layer or several, as local sources."""
    tape = DistributedGradientTape(
        gradtape, device_dense, device_sparse, compression, sparse_as_dense, op, gradient_predivide_factor, num_groups, groups,
        process_set, scale_local_gradients,
    )  # fmt: skip
    for variable in variables_of(local_layers):
        tape.register_local_source(variable)
    return tape


def _flat(values: Any) -> list[Any]:
    """The values of a nested structure as a list. None is a leaf, as in the list of gradients."""
    return list(tf.nest.flatten(values))
