"""horovod.tensorflow: the names of runjob.tensorflow."""

from typing import TYPE_CHECKING, Any

import runjob.tensorflow as _implementation
from runjob.tensorflow import *  # noqa: F403

from ..common.util import check_extension as check_extension
from . import elastic as elastic  # type: ignore[no-redef]
from . import mpi_ops as mpi_ops
from . import util as util
from .mpi_ops import _allreduce as _allreduce
from .mpi_ops import check_num_rank_power_of_2 as check_num_rank_power_of_2
from .mpi_ops import gpu_available as gpu_available
from .mpi_ops import handle_average_backwards_compatibility as handle_average_backwards_compatibility
from .util import _cache as _cache
from .util import _executing_eagerly as _executing_eagerly
from .util import _make_subgraph as _make_subgraph
from .util import refs_to_vars as refs_to_vars
from .util import split_list as split_list
from .util import vars_to_refs as vars_to_refs


def __dir__() -> list[str]:
    return sorted(set(globals()) - {"Any", "TYPE_CHECKING", "_implementation"})


if not TYPE_CHECKING:

    def __getattr__(name: str) -> Any:
        return getattr(_implementation, name)  # names of later versions explain themselves
