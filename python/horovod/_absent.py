"""Modules of Horovod that runjob does not have: their import fails with a text that names the replacement."""

from __future__ import annotations

import importlib.abc
import sys
from typing import Any

#: By module: its purpose, and the replacement to use instead.
ABSENT = {
    "horovod.mxnet": (
        "the binding for Apache MXNet",
        "use horovod.torch, horovod.tensorflow or horovod.keras, or runjob.numpy, which takes NumPy arrays",
    ),
    "horovod.spark": (
        "Horovod inside of Spark jobs",
        "write the data into files with Spark, and start the training with horovod.run(function, hosts=...) or `runjob -H hosts`",
    ),
    "horovod.ray": (
        "Horovod inside of Ray actors",
        "start the training with horovod.run(function, hosts=...) or `runjob -H hosts`",
    ),
    "horovod.data": (
        "data loaders with a thread of their own",
        "use torch.utils.data.DataLoader(num_workers=1) or more workers, or tf.data's prefetch()",
    ),
    "horovod.tensorflow.data": (
        "the set-up of TensorFlow's data service",
        "use tf.data.experimental.service itself, or give each rank its part with dataset.shard(hvd.size(), hvd.rank())",
    ),
}


class _Explainer(importlib.abc.MetaPathFinder):
    """The last finder: Python asks it for the modules that no other finder knows."""

    def find_spec(self, fullname: str, path: Any = None, target: Any = None) -> None:
        """Returns None. Errors  ModuleNotFoundError for a module of ABSENT that is imported, not only searched for."""
        if fullname not in ABSENT:
            return
        callers = _functions_of_importlib()
        if "_find_and_load_unlocked" in callers:  # importlib.util.find_spec() asks the same finders, and must return None
            purpose, replacement = ABSENT[fullname]
            raise ModuleNotFoundError(
                f"{fullname}, {purpose}, is not in this version of runjob: {replacement}. docs/migration.md lists all differences",
                # `from horovod import spark` replaces an error that has the name of the module by one without its text.
                name=None if "_handle_fromlist" in callers else fullname,
            )


def _functions_of_importlib() -> list[str]:
    """The names of importlib's functions that have led to the finder, the last one first."""
    found, frame = [], sys._getframe(2)
    while frame is not None and frame.f_code.co_filename.startswith("<frozen importlib"):
        found.append(frame.f_code.co_name)
        frame = frame.f_back  # type: ignore[assignment]
    return found


def explain() -> None:
    """Adds the finder. A second call does nothing."""
    if not any(isinstance(finder, _Explainer) for finder in sys.meta_path):
        sys.meta_path.append(_Explainer())
