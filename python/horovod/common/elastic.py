"""horovod.common.elastic."""

from __future__ import annotations

from typing import Any, Callable

from runjob.elastic import ObjectState, State, run

__all__ = ["ObjectState", "State", "run_fn"]


def run_fn(func: Callable[..., Any], reset: Callable[[], Any] | None = None) -> Callable[..., Any]:
    """runjob.elastic.run(func). `reset` has no effect: the ranks' meeting for the next generation takes its place."""
    return run(func)
