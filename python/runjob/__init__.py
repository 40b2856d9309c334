"""runjob: one program on many hosts, with fast collectives.

Import the module of your framework: `import runjob.torch as hvd`. This package itself imports no framework.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from .exceptions import Error, HorovodInternalError, HostsUpdatedInterrupt

if TYPE_CHECKING:
    from .run_errors import RankError, RunError
    from .run_function import run

__version__ = "0.1.0"

__all__ = [
    "Error",
    "HorovodInternalError",
    "HostsUpdatedInterrupt",
    "RankError",
    "RunError",
    "__version__",
    "run",
]


def __getattr__(name: str) -> Any:
    """What ranks do not need is imported when it is asked for."""
    if name == "run":
        from .run_function import run

        return run
    if name in ("RankError", "RunError"):
        from . import run_errors

        return getattr(run_errors, name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}", name=name)
