"""The names that the modules of all frameworks export."""

from .backends import (
    ccl_built,
    cuda_built,
    ddl_built,
    gloo_built,
    gloo_enabled,
    mpi_built,
    mpi_enabled,
    mpi_threads_supported,
    nccl_built,
    rocm_built,
)
from .basics import (
    cross_rank,
    cross_size,
    init,
    is_homogeneous,
    is_initialized,
    local_rank,
    local_size,
    rank,
    shutdown,
    size,
    start_timeline,
    stop_timeline,
)
from .exceptions import HorovodInternalError, HostsUpdatedInterrupt
from .handles import poll, synchronize
from .objects import allgather_object, broadcast_object
from .operations import barrier, join
from .process_sets import (
    ProcessSet,
    add_process_set,
    get_process_set_ids_and_ranks,
    global_process_set,
    remove_process_set,
)
from .reduce_ops import Adasum, Average, Max, Min, Product, Sum

__all__ = [
    "Adasum", "Average", "HorovodInternalError", "HostsUpdatedInterrupt", "Max", "Min", "ProcessSet", "Product", "Sum",
    "add_process_set", "allgather_object", "barrier", "broadcast_object", "ccl_built", "cross_rank", "cross_size", "cuda_built",
    "ddl_built", "get_process_set_ids_and_ranks", "global_process_set", "gloo_built", "gloo_enabled", "init", "is_homogeneous",
    "is_initialized", "join", "local_rank", "local_size", "mpi_built", "mpi_enabled", "mpi_threads_supported", "nccl_built", "poll",
    "rank", "remove_process_set", "rocm_built", "shutdown", "size", "start_timeline", "stop_timeline", "synchronize",
]  # fmt: skip
