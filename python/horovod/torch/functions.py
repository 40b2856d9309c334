"""horovod.torch.functions."""

from runjob.objects import allgather_object, broadcast_object
from runjob.torch.functions import broadcast_optimizer_state, broadcast_parameters

__all__ = ["allgather_object", "broadcast_object", "broadcast_optimizer_state", "broadcast_parameters"]
