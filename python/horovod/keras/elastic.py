"""horovod.keras.elastic."""

from typing import TYPE_CHECKING, Any

from runjob.keras import elastic as _implementation

if not TYPE_CHECKING:

    def __getattr__(name: str) -> Any:
        return getattr(_implementation, name)  # names of later versions explain themselves
