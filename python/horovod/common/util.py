"""horovod.common.util: what scripts ask of it."""

from runjob.backends import ccl_built, ddl_built, gloo_built, mpi_built, nccl_built

__all__ = ["ccl_built", "ddl_built", "gloo_built", "mpi_built", "nccl_built"]
