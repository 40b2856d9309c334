"""The import name `horovod`, served by runjob: scripts written for Horovod run unmodified. All code is in `runjob`."""

from __future__ import annotations

import importlib
from typing import Any

from ._absent import explain
from ._owner import refuse_other_owners

__version__ = "0.28.1"  # of the Horovod that this stands in for

refuse_other_owners()
explain()


def __getattr__(name: str) -> Any:
    """Imports a name that ranks do not need when a program first asks for it."""
    if name in ("run", "runner"):
        runner = importlib.import_module("horovod.runner")
        return runner.run if name == "run" else runner
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    hidden = {"Any", "_absent", "_owner", "annotations", "explain", "importlib", "refuse_other_owners"}
    return sorted({*globals(), "run", "runner"} - hidden)
