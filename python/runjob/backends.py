"""The backends that librunjob has, in Horovod's names. `_built` and `_enabled` are the same: a backend is opened when
needed.
"""

from __future__ import annotations

import json
from typing import Any

from . import communicator
from ._library import library


def backends() -> dict[str, dict[str, Any]]:
    """Every backend by name, with its version and path or the reason why it is absent: runjob_backends_json()."""
    document = json.loads(library().runjob_backends_json())
    return {backend["name"]: backend for backend in document["backends"]}


def gloo_built() -> bool:
    """True if the library can open Gloo's backend, which moves data between hosts over TCP."""
    return _available("gloo")


def mpi_built() -> bool:
    """True if the library has the MPI backend."""
    return _available("mpi")


def nccl_built() -> int:
    """NCCL's version code, 0 without NCCL."""
    return int(backends()["nccl"].get("version_code", 1)) if _available("nccl") else 0


def cuda_built() -> bool:
    """True if collectives take CUDA tensors: NCCL and the driver can be used."""
    return _available("nccl") and _available("cuda")


def rocm_built() -> bool:
    """False: there is no ROCm backend."""
    return False


def ddl_built() -> bool:
    """False: IBM's DDL is gone."""
    return False


def ccl_built() -> bool:
    """False: there is no oneCCL backend."""
    return False


def mpi_threads_supported() -> bool:
    """True if the program's threads may call MPI beside runjob. That is so for ranks that mpirun, mpiexec or srun has
    started, unless MPI was initialized without support for threads. It is False if MPI has started no rank, because
    MPI's world is then not the job.
    """
    return communicator.is_mpi_threaded()


gloo_enabled = gloo_built
mpi_enabled = mpi_built


def _available(name: str) -> bool:
    return bool(backends().get(name, {}).get("available"))
