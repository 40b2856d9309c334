"""runjob.keras where Keras's backend is PyTorch. TensorFlow is not imported."""

from ... import callable_variables, common
from ...common import *  # noqa: F403
from ...torch import Compression
from . import callbacks, elastic
from .models import load_model
from .optimizers import DistributedOptimizer, PartialDistributedOptimizer
from .values import allgather, allreduce, broadcast, broadcast_global_variables, reducescatter

__all__ = [
    "Compression", "DistributedOptimizer", "PartialDistributedOptimizer", "allgather", "allreduce", "broadcast",
    "broadcast_global_variables", "callbacks", "elastic", "load_model", "reducescatter",
]  # fmt: skip
__all__ += [name for name in common.__all__ if name not in ("barrier", "join", "poll", "synchronize")]

callable_variables.install()


def __dir__() -> list[str]:
    return sorted(__all__)  # without the modules that the names come from
