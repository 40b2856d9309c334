"""horovod.runner.common.util.env: the variables in the environment of a rank."""

from __future__ import annotations

import os
import re

#: Variables that belong to one host or one shell; others may be sent to the ranks.
IGNORE_REGEXES = {"BASH_FUNC_.*", "OLDPWD", ".*CUDA_VISIBLE_DEVICES", "_HOROVOD_SECRET_KEY"}

_LAUNCHERS = (("HOROVOD_RANK", "HOROVOD_SIZE"), ("OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE"), ("PMI_RANK", "PMI_SIZE"))
_KUBEFLOW_AGENT = "/etc/mpi/kubexec.sh"


def is_exportable(v: str) -> bool:
    """True if the variable `v` makes sense on other hosts."""
    return not any(re.match(pattern, v) for pattern in IGNORE_REGEXES)


def get_env_rank_and_size() -> tuple[int, int]:
    """This process's rank and the job's size from the launcher's variables, before init(). Without a launcher (0, 1).

    Errors  RuntimeError where one of the two is missing.
    """
    for names in _LAUNCHERS:
        found = [os.environ.get(name) for name in names]
        if found[0] is not None and found[1] is not None:
            return int(found[0]), int(found[1])
        if found != [None, None]:
            there, missing = names if found[1] is None else names[::-1]
            raise RuntimeError(f"the environment has {there} and no {missing}: start this program with runjob, mpirun or srun, or unset {there}")
    return 0, 1


def is_kubeflow_mpi() -> bool:
    """True if Kubeflow's MPI operator has started this process."""
    return os.environ.get("OMPI_MCA_plm_rsh_agent") == _KUBEFLOW_AGENT
