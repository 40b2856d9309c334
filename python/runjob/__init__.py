"""runjob: one program on many hosts, with fast collectives.

Import the module of your framework: `import runjob.torch as hvd`. This package itself imports no framework.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from .exceptions import Error, HorovodInternalError, HostsUpdatedInterrupt

if TYPE_CHECKING:
    from .launch.run_errors import RankError, RunError
    from .launch.run_function import run

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
    """Imports a name that ranks do not need when a program first asks for it."""
    if name in ("RankError", "RunError", "run"):
        from .launch import run_errors, run_function

        globals()[name] = getattr(run_function if name == "run" else run_errors, name)
        return globals()[name]
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
