"""horovod.keras.callbacks."""

from runjob.keras import callbacks as _implementation
from runjob.keras.callbacks import *  # noqa: F403
from runjob.keras.callbacks import __all__ as __all__


class BestModelCheckpoint(_implementation.BestModelCheckpoint):  # type: ignore[no-redef]
    """runjob.keras.callbacks.BestModelCheckpoint. Horovod has the arguments up to `save_freq`."""

    def __init__(
        self, monitor: str = "val_loss", verbose: int = 0, mode: str = "auto", save_freq: str = "epoch", save_weights_only: bool = False
    ) -> None:
        super().__init__(monitor, verbose, save_weights_only, mode, save_freq)
