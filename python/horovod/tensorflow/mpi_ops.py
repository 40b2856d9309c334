"""horovod.tensorflow.mpi_ops: the operations of runjob.tensorflow."""

import re
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import runjob.tensorflow as _implementation
from horovod.common import basics as _basics  # noqa: F401  scripts ask it for the process sets
from horovod.common import util as _util
from runjob import reduce_ops as _reduce_ops
from runjob.tensorflow import *  # noqa: F403


def check_num_rank_power_of_2(num_rank: int) -> bool:
    """True if `num_rank` is a power of two."""
    return bool(_util.num_rank_is_power_2(num_rank))


def gpu_available(ext_base_name: str, verbose: bool = False) -> bool:
    """True if collectives take tensors of GPUs without a copy to the CPU."""
    return bool(_util.gpu_available(ext_base_name, verbose))


def handle_average_backwards_compatibility(op: int | None, average: bool | None) -> int:
    """The reduction that `op` and the deprecated `average` mean together. Errors  as runjob.reduce_ops.resolve()."""
    return _reduce_ops.resolve(op, average)


# Names that Horovod keeps private and that scripts use nevertheless, mostly for sums.


def _allreduce(
    tensor: Any, name: str | None = None, op: int = _implementation.Sum, prescale_factor: float = 1.0,
    postscale_factor: float = 1.0, ignore_name_scope: bool = False,
    process_set: _implementation.ProcessSet = _implementation.global_process_set,
) -> Any:  # fmt: skip
    """allreduce() of a dense tensor, whose default is the sum."""
    return _implementation.allreduce(
        tensor, op=op, prescale_factor=prescale_factor, postscale_factor=postscale_factor, name=name, process_set=process_set,
        ignore_name_scope=ignore_name_scope,
    )  # fmt: skip


def _grouped_allreduce(
    tensors: Sequence[Any], name: str | None = None, op: int = _implementation.Sum, prescale_factor: float = 1.0,
    postscale_factor: float = 1.0, ignore_name_scope: bool = False,
    process_set: _implementation.ProcessSet = _implementation.global_process_set,
) -> list[Any]:  # fmt: skip
    """grouped_allreduce() of dense tensors, whose default is the sum."""
    return list(
        _implementation.grouped_allreduce(
            tensors, op=op, prescale_factor=prescale_factor, postscale_factor=postscale_factor, process_set=process_set,
            ignore_name_scope=ignore_name_scope, name=name,
        )
    )  # fmt: skip


def _normalize_name(name: str) -> str:
    """`name` with an underscore for each character that a node of a graph cannot have in its name."""
    return re.sub("[^a-zA-Z0-9_]", "_", name)


if not TYPE_CHECKING:

    def __getattr__(name: str) -> Any:
        return getattr(_implementation, name)
