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
    from .torch_version import FIRST_WITH_BACKENDS, has_new_backends

    torch = sys.modules["torch"]
    if not has_new_backends(torch):
        warnings.warn(
            f"--torch-backend runjob has no effect with PyTorch {torch.__version__}, which does not ask for a backend of the name "
            f'gloo; use PyTorch {".".join(map(str, FIRST_WITH_BACKENDS))} or later, or init_process_group("runjob")',
            stacklevel=2,
        )
        return
    import torch.distributed as dist

    if dist.is_available():
        dist.Backend.register_backend("gloo", _create, extended_api=True, devices=["cpu", "cuda"])


def _create(options: Any, backend_options: Any = None) -> Any:
    from torch.distributed import distributed_c10d

    if objection := _objection(options):
        _report(f"torch.distributed runs over Gloo, because {objection}", options)
        return distributed_c10d._create_gloo_process_group(options, backend_options)
    from .torch.distributed.creation import create

    _report(f"torch.distributed runs over runjob, with {options.group_size} ranks", options)
    return create(options, backend_options)


def _objection(options: Any) -> str:
    """The reason for a group of Gloo's; "" if there is none.

    runjob serves the process of a rank that makes the rank's first group, if torch.distributed's ranks are those of the
    job. A smaller group is then one of its process sets.
    """
    if os.environ.setdefault(_OWNER, str(os.getpid())) != str(os.getpid()):
        return f"the process {os.environ[_OWNER]} of this rank has made a group before, and has started the process {os.getpid()}"
    members = list(options.global_ranks_in_group)
    ours = (os.environ.get("RUNJOB_RANK", "none"), os.environ.get("RUNJOB_SIZE", "none"))
    theirs = (str(members[options.group_rank]), ours[1]) if members else (str(options.group_rank), str(options.group_size))
    return "" if ours == theirs else f"its rank {theirs[0]} of {theirs[1]} is the job's rank {ours[0]} of {ours[1]}"


def _report(text: str, options: Any) -> None:
    """Prints a line about the group of all ranks, on rank 0 of a job that logs what it does, as with --verbose."""
    level = os.environ.get("RUNJOB_LOG_LEVEL") or os.environ.get("HOROVOD_LOG_LEVEL") or ""
    is_of_all = not list(options.global_ranks_in_group)
    if is_of_all and options.group_rank == 0 and level.lower() in ("trace", "debug", "info"):
        print(f"runjob: {text}", file=sys.stderr, flush=True)
