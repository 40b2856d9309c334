"""The collectives of operations.py for tensors, asynchronous and in place. Those with gradients are in differentiable.py."""

from __future__ import annotations

import torch

from ..operations import Operations
from .compression import NATIVE
from .placement import PlacedCalls
from .tensors import Tensors

#: The operations for start() and run(), for the other modules of this package.
calls = PlacedCalls(Tensors())

_operations: Operations[torch.Tensor, torch.Tensor] = Operations(calls, NATIVE)

allreduce_ = _operations.allreduce_
allreduce_async = _operations.allreduce_async
allreduce_async_ = _operations.allreduce_async_
allgather_async = _operations.allgather_async
alltoall_async = _operations.alltoall_async
broadcast_ = _operations.broadcast_
broadcast_async = _operations.broadcast_async
broadcast_async_ = _operations.broadcast_async_
reducescatter_async = _operations.reducescatter_async
