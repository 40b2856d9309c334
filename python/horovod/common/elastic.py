"""horovod.common.elastic: none of it in this version; its names say so."""

from typing import TYPE_CHECKING

from runjob import later

#: What horovod.common.elastic has.
LATER = ("ObjectState", "State", "run_fn")

if not TYPE_CHECKING:
    __getattr__ = later.getattr_for(__name__, LATER)
