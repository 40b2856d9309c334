"""The names of operations among the ranks, as Python passes them to the library."""

from runjob import handles


def record(seen, *kinds):
    """Adds to `seen` the names of all operations of these kinds that this process starts from now on."""

    def recording(function):
        def noted(call, wire_name):
            if call.kind in kinds:
                seen.append(wire_name.decode())
            return function(call, wire_name)

        return noted

    handles.Call.submit, handles.Call.block = recording(handles.Call.submit), recording(handles.Call.block)
