"""Messages between two ranks of a group: send() and recv() of torch.distributed, over those of the library.

Threads  any.
Owner    a message must live until its operation is done, because the library reads or writes its tensor.
"""

from __future__ import annotations

from collections.abc import Callable
from ctypes import byref, c_int32, c_int64

import torch

from ... import job
from ..._library import library
from ...exceptions import Error
from .submission import Part, dense, is_dense
from .work import Flights, Label, Work

#: As the peer of a receive: any rank of the group.
ANY_RANK = -1


class Message(Part):
    """A tensor that is sent or received.

    tensor  the tensor, without its gradient.
    peer    the other rank's index in the group.
    source  after a receive: the sender's index in the group.
    """

    def __init__(self, tensor: torch.Tensor, peer: int, tag: int, process_set: int, *, is_send: bool) -> None:
        self._is_send = is_send
        self.tensor = tensor.detach()
        # In the memory of the processor, in one piece.
        is_direct = is_dense(tensor) and tensor.device.type == "cpu"
        if is_direct:
            self._whole = self.tensor
        elif is_send:
            self._whole = dense(self.tensor.cpu())
        else:
            self._whole = torch.empty(tensor.shape, dtype=tensor.dtype)
        self._arguments = (self._whole.data_ptr(), self._whole.numel() * self._whole.element_size(), peer, tag, process_set)
        self.finish: Callable[[], None] | None = None if is_send or is_direct else self._copy_out
        self.source: int | None = None

    def submit(self) -> int:
        """Begins it and returns the library's handle. Errors  those of runjob_send_async()."""
        begin = library().runjob_send_async if self._is_send else library().runjob_recv_async
        handle = c_int64()
        job.check(begin(*self._arguments, byref(handle)))
        return handle.value

    def check(self, handle: int) -> None:
        if not self._is_send:
            peer = c_int32()
            job.check(library().runjob_received_from(handle, byref(peer), None))
            self.source = peer.value

    def _copy_out(self) -> None:
        self.tensor.copy_(self._whole)


class MessageWork(Work):
    """A call of send() or recv(). `what` names it in errors; `seconds` is the time limit of wait(). The operation is in
    flight when the object is made.

    Errors  those of Message.submit().
    """

    ends_with_group = False

    def __init__(self, flights: Flights, message: Message, what: Label, seconds: float | None) -> None:
        handles: list[int] = []
        super().__init__(flights, handles, [message], [message.tensor], message.finish, what, seconds)
        self._message = message
        try:
            handles.append(message.submit())
        except Error as error:
            raise self._described(error) from None
        flights.add(self)

    def source_rank(self) -> int:
        """The sender's index in the group, once the message has come."""
        self.wait()
        return super().source_rank() if self._message.source is None else self._message.source
