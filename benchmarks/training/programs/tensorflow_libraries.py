"""What differs between scripts for runjob, Horovod, MultiWorkerMirroredStrategy and one process alone. Names of methods are what a script
does there."""

from __future__ import annotations

import contextlib
import importlib
import json
import os

import tensorflow as tf


class Alone:
    """Without any communication: what would be if it cost nothing."""

    share_of_loss = 1.0

    def __init__(self):
        self.rank = int(os.environ.get("RUNJOB_RANK", "0"))

    def scope(self):
        return contextlib.nullcontext()

    def dataset(self, batch):
        """The same batch for ever."""
        return tf.data.Dataset.from_tensors(batch).repeat()

    def optimizer(self, optimizer):
        return optimizer

    def callbacks(self):
        return []

    def tape(self, tape):
        return tape

    def run(self, step, arguments):
        return step(*arguments)

    def begin(self, variables):
        pass


class Horovod(Alone):
    """What a script for Horovod does, and one for runjob."""

    def __init__(self, package):
        self._loop = importlib.import_module(f"{package}.tensorflow")
        self._keras = importlib.import_module(f"{package}.tensorflow.keras")
        self._loop.init()
        self.rank = self._loop.rank()

    def optimizer(self, optimizer):
        return self._keras.DistributedOptimizer(optimizer)

    def callbacks(self):
        return [self._keras.callbacks.BroadcastGlobalVariablesCallback(0)]

    def tape(self, tape):
        return self._loop.DistributedGradientTape(tape)

    def begin(self, variables):
        self._loop.broadcast_variables(variables, root_rank=0)


class MultiWorkerMirrored(Alone):
    """tf.distribute.MultiWorkerMirroredStrategy, which takes the ranks' addresses from TF_CONFIG."""

    def __init__(self):
        super().__init__()
        workers = os.environ["WORKERS"].split(",")
        task = {"type": "worker", "index": self.rank}
        os.environ["TF_CONFIG"] = json.dumps({"cluster": {"worker": workers}, "task": task})
        ring = tf.distribute.experimental.CommunicationImplementation.RING
        options = tf.distribute.experimental.CommunicationOptions(implementation=ring)
        self._strategy = tf.distribute.MultiWorkerMirroredStrategy(communication_options=options)
        self.share_of_loss = 1.0 / len(workers)

    def scope(self):
        return self._strategy.scope()

    def dataset(self, batch):
        """Of this worker."""
        return self._strategy.distribute_datasets_from_function(lambda context: Alone.dataset(self, batch))

    def run(self, step, arguments):
        return self._strategy.run(step, args=arguments)


LIBRARIES = {
    "runjob": lambda: Horovod("runjob"),
    "horovod": lambda: Horovod("horovod"),
    "mwms": MultiWorkerMirrored,
    "alone": Alone,
}
