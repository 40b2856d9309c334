"""The import name `horovod`, served by runjob: scripts written for Horovod run unmodified. All code is in `runjob`."""

from ._owner import refuse_other_owners

__version__ = "0.28.1"  # of the Horovod that this stands in for

refuse_other_owners()
