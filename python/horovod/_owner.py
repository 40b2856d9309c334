"""Finds a second distribution that has installed files under the import name `horovod`, whose files and ours overwrite
each other, and names it.
"""

from __future__ import annotations

import pathlib
from importlib import metadata

DISTRIBUTION = "runjob-horovod"


def refuse_other_owners() -> None:
    """Errors  ImportError naming another distribution that installed its files into this folder."""
    package = pathlib.Path(__file__).parent
    marker = f"{package.name}/__init__.py,"
    for distribution in metadata.distributions(path=[str(package.parent)]):
        name = distribution.metadata["Name"]
        record = distribution.read_text("RECORD") or ""
        if name != DISTRIBUTION and any(line.startswith(marker) for line in record.splitlines()):
            raise ImportError(
                f"{DISTRIBUTION} and {name} {distribution.version} both installed the package horovod in {package.parent}; "
                f"uninstall both, then install one: pip uninstall {name} {DISTRIBUTION}"
            )
