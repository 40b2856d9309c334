"""The exceptions that runjob raises, and the codes of the C interface that they come from.

    Error                      every error of the library; .code is its Code
    +- InvalidArgumentError    also a ValueError: the call can never work
    +- HorovodInternalError    also a RuntimeError: the job is in trouble, or the ranks disagree
       +- MismatchError, PeerLostError, WaitTimeoutError, AbortedError, UnavailableError, ConnectError
       +- NotInitializedError  also a ValueError
    HostsUpdatedInterrupt      an elastic job has gained or lost hosts
    HorovodVersionMismatchError
"""

from __future__ import annotations

import enum


class Code(enum.IntEnum):
    """runjob_code of runjob.h."""

    OK = 0
    INVALID_ARGUMENT = 1
    NOT_INITIALIZED = 2
    MISMATCH = 3
    PEER_LOST = 4
    TIMEOUT = 5
    ABORTED = 6
    UNAVAILABLE = 7
    CONNECT = 8
    IN_PROGRESS = 9
    INTERNAL = 10


class Error(Exception):
    """An error that librunjob reported. `code` is its Code."""

    code = Code.INTERNAL


class InvalidArgumentError(Error, ValueError):
    """The call can never succeed: the operation does not take the dtype, the name is in flight already, or the root
    does not exist.
    """

    code = Code.INVALID_ARGUMENT


class HorovodInternalError(Error, RuntimeError):
    """A collective failed. Elastic training catches this, restores its state and goes on."""


class NotInitializedError(HorovodInternalError, ValueError):
    """init() has not been called, or shutdown() has been called since."""

    code = Code.NOT_INITIALIZED


class MismatchError(HorovodInternalError):
    """The ranks disagree about a tensor. The text names it and the ranks. The job continues."""

    code = Code.MISMATCH


class PeerLostError(HorovodInternalError):
    """Another rank has left the job. The text names it."""

    code = Code.PEER_LOST


class WaitTimeoutError(HorovodInternalError):
    """A time limit has passed. The text names what the call waited for."""

    code = Code.TIMEOUT


class AbortedError(HorovodInternalError):
    """The operation was ended by shutdown(), or its group was given up, here or on another rank."""

    code = Code.ABORTED


class UnavailableError(HorovodInternalError):
    """No backend can run the operation. The text gives the reason."""

    code = Code.UNAVAILABLE


class ConnectError(HorovodInternalError):
    """The rendezvous or another rank could not be reached."""

    code = Code.CONNECT


class HostsUpdatedInterrupt(RuntimeError):
    """The hosts of an elastic job have changed. `skip_sync`: the state needs no synchronisation afterwards."""

    def __init__(self, skip_sync: bool = False) -> None:
        super().__init__("the hosts of the job have changed")
        self.skip_sync = skip_sync


class HorovodVersionMismatchError(ImportError):
    """A framework is not the one that the package was made for. runjob's package is made for no particular one and
    never raises it.
    """


class NotInThisVersionError(AttributeError):
    """A name that Horovod has and that this version of runjob does not have yet."""


_BY_CODE: dict[int, type[Error]] = {
    cls.code: cls
    for cls in (
        InvalidArgumentError,
        NotInitializedError,
        MismatchError,
        PeerLostError,
        WaitTimeoutError,
        AbortedError,
        UnavailableError,
        ConnectError,
    )
}


def from_code(code: int, message: str) -> Error:
    """The exception for a code of the C interface other than OK."""
    cls = _BY_CODE.get(code)
    if cls is not None:
        return cls(message)
    error = HorovodInternalError(message)
    error.code = Code(code)
    return error
