"""The names of operations among the ranks, as Python passes them to the library."""

import contextlib
from collections.abc import Iterator
from unittest import mock

from runjob import handles


@contextlib.contextmanager
def recorded(*kinds: str) -> Iterator[list[str]]:
    """The names of all operations of these kinds that this process starts within the context, in a list that grows."""
    seen: list[str] = []

    def recording(function):
        def noted(call, wire_name):
            if call.kind in kinds:
                seen.append(wire_name.decode())
            return function(call, wire_name)

        return noted

    call = handles.Call
    with mock.patch.multiple(call, submit=recording(call.submit), block=recording(call.block)):
        yield seen
