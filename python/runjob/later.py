"""Names that Horovod has and that this version of runjob does not have yet. An access fails with a text that explains
this.
"""

from __future__ import annotations

from typing import Any, Callable, Iterable

from .exceptions import NotInThisVersionError


def getattr_for(module: str, names: Iterable[str]) -> Callable[[str], Any]:
    """A module's __getattr__ that explains `names` and refuses all other names as Python does. hasattr() stays False."""
    known = frozenset(names)

    def __getattr__(name: str) -> Any:
        if name in known:
            raise NotInThisVersionError(f"{module}.{name} is not in this version of runjob; it comes with a later one")
        raise AttributeError(f"module {module!r} has no attribute {name!r}")

    return __getattr__
