"""The environment in which tests run: nothing of the account, of a surrounding job or of the user's settings is in it."""

from __future__ import annotations

import os
import pathlib
import re
import site
from collections.abc import Mapping

#: Variables of launchers, MPIs, batch systems and frameworks, and settings of runjob itself.
_FOREIGN = re.compile(
    "RUNJOB_|HOROVOD_|PBS_|LSB_|PE_HOSTFILE|SLURM_|SBATCH_|SRUN_|OMPI_|OPAL_|PMIX_|PMI_|PRTE_|HYDI_|HYDRA_|MPICH_|MPIEXEC_|MPI_LOCAL|MPI4PY_"
    "|GLOO_|NCCL_|KERAS_|XDG_|LC_|TORCHELASTIC_|GROUP_|ROLE_"
    "|(LANG|LANGUAGE|RANK|WORLD_SIZE|LOCAL_RANK|LOCAL_WORLD_SIZE|NODE_RANK|MASTER_ADDR|MASTER_PORT)$"
)
#: Which build is tested: docs/developers/testing.md has them.
_OF_TESTS = ("RUNJOB_BIN", "RUNJOB_LIBRARY", "RUNJOB_BUILD")
#: Tools that tests start keep what they have downloaded or compiled: the variable, and its folder below ~/.cache.
_CACHES = {"PIP_CACHE_DIR": "pip", "CCACHE_DIR": "ccache"}


def isolated(environment: Mapping[str, str], home: str) -> dict[str, str]:
    """`environment` with the empty folder `home` as home, so that no file in the account's own decides a test.

    Two things of the account stay: where pip and ccache keep files and which index pip uses, and Python packages that were
    installed with `pip install --user`.
    """
    kept = {name: value for name, value in environment.items() if name in _OF_TESTS or not _FOREIGN.match(name)}
    account = pathlib.Path(environment.get("HOME") or "/")
    caches = pathlib.Path(environment.get("XDG_CACHE_HOME") or account / ".cache")
    settings = pathlib.Path(environment.get("XDG_CONFIG_HOME") or account / ".config")
    for name, folder in _CACHES.items():
        if os.path.isdir(caches / folder):
            kept.setdefault(name, str(caches / folder))
    for file in (settings / "pip" / "pip.conf", account / ".pip" / "pip.conf"):
        if os.path.isfile(file):
            kept.setdefault("PIP_CONFIG_FILE", str(file))
    return {**kept, "HOME": home, "PYTHONUSERBASE": site.getuserbase(), "LC_ALL": "C.UTF-8"}
