"""horovod.tensorflow.mpi_ops: the operations of runjob.tensorflow."""

from typing import TYPE_CHECKING, Any

import runjob.tensorflow as _implementation
from horovod.common import basics as _basics  # noqa: F401  scripts ask it for the process sets
from horovod.common import util as _util
from runjob.tensorflow import *  # noqa: F403


def check_num_rank_power_of_2(num_rank: int) -> bool:
    """Whether it is one."""
    return bool(_util.num_rank_is_power_2(num_rank))


def gpu_available(ext_base_name: str, verbose: bool = False) -> bool:
    """Whether collectives take tensors of GPUs as they are."""
    return bool(_util.gpu_available(ext_base_name, verbose))


if not TYPE_CHECKING:

    def __getattr__(name: str) -> Any:
        return getattr(_implementation, name)
