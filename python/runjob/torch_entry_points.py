"""What PyTorch calls by itself, without an import in the program (pyproject.toml names both functions):

    register()  from 2.14 on, when a program asks torch.distributed for the backend "runjob"
    autoload()  from 2.5 on, at the end of each `import torch`, also outside of runjob

Therefore this module imports neither runjob.torch nor the library, and autoload() never raises.

`runjob --torch-backend runjob` sets RUNJOB_TORCH_BACKEND. Then autoload() registers a backend of the name "gloo", which
is also the one that a program on CPUs gets without a name. A group of it runs over runjob if torch.distributed's ranks
are those of the job, and this process is the rank's own; any other group is Gloo's. Before 2.14 PyTorch makes Gloo's groups without asking for a backend.
"""

from __future__ import annotations

import os
import sys
import warnings
from typing import Any

_VARIABLE = "RUNJOB_TORCH_BACKEND"
#: The process that has made the first group of the rank. Children that it starts inherit the variable, and get Gloo.
_OWNER = "RUNJOB_TORCH_BACKEND_PID"
_FIRST_VERSION = (2, 14)


def register() -> None:
    """Registers the backend "runjob"."""
    from .torch.distributed import register as register_backend

    register_backend()


def autoload() -> None:
    """Answers for "gloo" if the launcher has asked for it. Does nothing otherwise."""
    if os.environ.get(_VARIABLE, "").lower() != "runjob":
        return
    try:
        _answer_for_gloo()
    except Exception as error:  # otherwise `import torch` would fail
        warnings.warn(f"--torch-backend runjob has no effect: {type(error).__name__}: {error}", stacklevel=2)


def _answer_for_gloo() -> None:
    torch = sys.modules["torch"]
    version = tuple(int(part) for part in torch.__version__.split("+")[0].split(".")[:2])
    if version < _FIRST_VERSION:
        warnings.warn(
            f"--torch-backend runjob has no effect with PyTorch {torch.__version__}, which does not ask for a backend of the name "
            f'gloo; use PyTorch {".".join(map(str, _FIRST_VERSION))} or later, or init_process_group("runjob")',
            stacklevel=2,
        )
        return
    import torch.distributed as dist

    if dist.is_available():
        dist.Backend.register_backend("gloo", _create, extended_api=True, devices=["cpu", "cuda"])


def _create(options: Any, backend_options: Any = None) -> Any:
    from torch.distributed import distributed_c10d

    if _is_owner() and _is_the_job(options):
        from .torch.distributed.creation import create

        return create(options, backend_options)
    return distributed_c10d._create_gloo_process_group(options, backend_options)


def _is_owner() -> bool:
    """True in the process of a rank that has made the rank's first group."""
    return os.environ.setdefault(_OWNER, str(os.getpid())) == str(os.getpid())


def _is_the_job(options: Any) -> bool:
    """True if torch.distributed's ranks are those of the job. A smaller group is then one of its process sets."""
    members = list(options.global_ranks_in_group)
    if members:
        return os.environ.get("RUNJOB_RANK") == str(members[options.group_rank])
    ours = os.environ.get("RUNJOB_RANK"), os.environ.get("RUNJOB_SIZE")
    return ours == (str(options.group_rank), str(options.group_size))
