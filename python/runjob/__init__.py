"""runjob: one program on many hosts, with fast collectives.

Import the module of your framework: `import runjob.torch as hvd`. This package itself imports no framework.
"""

from .exceptions import Error, HorovodInternalError, HostsUpdatedInterrupt

__version__ = "0.1.0"

__all__ = ["Error", "HorovodInternalError", "HostsUpdatedInterrupt", "__version__"]
