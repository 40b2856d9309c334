"""The libraries whose collectives loop.py measures, behind one interface, which loop.py describes.

This file imports nothing of the package: ranks of other libraries use it from where it lies.
"""

from __future__ import annotations

import datetime
import importlib
from typing import Any

_IN_PLACE = ("allreduce", "broadcast")
_NO_FUTURES = "only torch.distributed has futures"


class HorovodInterface:
    """A module with Horovod's functions: runjob.torch, runjob.numpy, or horovod.torch for Horovod itself. Joins the job."""

    def __init__(self, module: str) -> None:
        self._hvd = importlib.import_module(module)
        self._hvd.init()
        self.rank, self.size = self._hvd.rank(), self._hvd.size()
        self.arrays = importlib.import_module(module.rpartition(".")[2])
        package = importlib.import_module(module.partition(".")[0])
        self.library = f"{module} {package.__version__}, {self.arrays.__name__} {self.arrays.__version__}"

    def run(self, op: str, slot: Any) -> Any:
        """The result of a blocking operation."""
        return self._hvd.barrier() if op == "barrier" else _first(self._call(op, "", slot))

    def start(self, op: str, slot: Any) -> Any:
        """The handle of an operation."""
        return self._call(op, "_async", slot)

    def finish(self, op: str, slot: Any, handle: Any) -> Any:
        """The result of the operation that start() has begun."""
        return _first(self._hvd.synchronize(handle))

    def run_future(self, op: str, slot: Any) -> Any:
        """The result of an operation that is waited for by its future."""
        raise NotImplementedError(_NO_FUTURES)

    def _call(self, op: str, form: str, slot: Any) -> Any:
        name = f"{op}{form}_" if op in _IN_PLACE else f"{op}{form}"
        function = getattr(self._hvd, name, None)
        if function is None:
            raise NotImplementedError(f"{self._hvd.__name__} has no {name}")
        if op == "broadcast":
            return function(slot.input, slot.root, name=slot.name)
        if op in ("allreduce", "reducescatter"):
            return function(slot.input, name=slot.name, op=self._hvd.Sum)
        return function(slot.input, name=slot.name)

    def barrier(self) -> None:
        """Waits for all ranks."""
        self._hvd.barrier()

    def of_rank_0(self, number: int) -> int:
        """Rank 0's number."""
        cell = self.arrays.zeros(1, dtype=self.arrays.int64)
        cell[0] = number
        self._hvd.broadcast_(cell, 0, name="iterations")
        return int(cell[0])

    def close(self) -> None:
        """Leaves the job, when all ranks do."""
        self._hvd.barrier()
        self._hvd.shutdown()


def _first(result: Any) -> Any:
    return result[0] if isinstance(result, tuple) else result  # an alltoall's may come with the sizes that each rank sent


class TorchDistributed:
    """torch.distributed over the backend gloo or runjob. Its place comes from RANK, WORLD_SIZE, MASTER_ADDR and MASTER_PORT. Where
    it is in use already, a group of all its ranks.
    """

    def __init__(self, backend: str, limit: datetime.timedelta = datetime.timedelta(minutes=5)) -> None:
        import torch
        import torch.distributed

        if backend == "runjob":
            importlib.import_module("runjob.torch.distributed")  # registers it, also where the package is not installed
        self.arrays, self._dist = torch, torch.distributed
        if self._dist.is_initialized():
            self._group: Any = self._dist.new_group(backend=backend, timeout=limit)
        else:
            self._dist.init_process_group(backend, timeout=limit)
            self._group = self._dist.group.WORLD
        self.rank, self.size = self._dist.get_rank(), self._dist.get_world_size()
        self.library = f"torch {torch.__version__} {backend}"

    def _call(self, op: str, slot: Any, asynchronous: bool) -> Any:
        if op == "allreduce":
            return self._dist.all_reduce(slot.input, group=self._group, async_op=asynchronous)
        if op == "broadcast":
            return self._dist.broadcast(slot.input, slot.root, group=self._group, async_op=asynchronous)
        if op == "allgather":
            return self._dist.all_gather_into_tensor(slot.output, slot.input, group=self._group, async_op=asynchronous)
        if op == "reducescatter":
            return self._dist.reduce_scatter_tensor(slot.output, slot.input, group=self._group, async_op=asynchronous)
        if op == "alltoall":
            return self._dist.all_to_all_single(slot.output, slot.input, group=self._group, async_op=asynchronous)
        if op == "sendrecv":
            return self._send_on(slot, asynchronous)
        return self._dist.barrier(group=self._group, async_op=asynchronous)

    def run(self, op: str, slot: Any) -> Any:
        """The result of a blocking operation."""
        self._call(op, slot, False)
        return slot.input if op in _IN_PLACE else slot.output

    def start(self, op: str, slot: Any) -> Any:
        """The handle of an operation."""
        return self._call(op, slot, True)

    def finish(self, op: str, slot: Any, handle: Any) -> Any:
        """The result of the operation that start() has begun."""
        handle.wait()
        return slot.input if op in _IN_PLACE else slot.output

    def run_future(self, op: str, slot: Any) -> Any:
        """The result of an operation that is waited for by its future."""
        self._call(op, slot, True).get_future().wait()
        return slot.input if op in _IN_PLACE else slot.output

    def _send_on(self, slot: Any, asynchronous: bool) -> Any:
        """To the next rank, while the one before sends to this one."""
        if asynchronous:
            raise NotImplementedError("sendrecv is measured as a blocking operation only")
        sent: Any = self._dist.isend(slot.input, (self.rank + 1) % self.size, group=self._group)
        self._dist.recv(slot.output, (self.rank - 1) % self.size, group=self._group)
        sent.wait()

    def barrier(self) -> None:
        """Waits for all ranks."""
        self._dist.barrier(group=self._group)

    def of_rank_0(self, number: int) -> int:
        """Rank 0's number."""
        cell = self.arrays.tensor([number])
        self._dist.broadcast(cell, 0, group=self._group)
        return int(cell)

    def close(self) -> None:
        """Leaves the group, when all ranks do."""
        self._dist.barrier()
        self._dist.destroy_process_group()
