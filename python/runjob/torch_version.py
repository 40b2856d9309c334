"""What the version of PyTorch decides, for modules that must not import each other. It imports nothing."""

from __future__ import annotations

from typing import Any

#: The first version that asks packages for each backend, and for which backends can be written in Python.
FIRST_WITH_BACKENDS = (2, 14)


def has_new_backends(torch: Any) -> bool:
    """True for PyTorch 2.14 and later."""
    return tuple(int(part) for part in torch.__version__.split("+")[0].split(".")[:2]) >= FIRST_WITH_BACKENDS
