"""Elastic training: a function that continues with other ranks when ranks are lost or added, and the state from which
it continues.

    state = runjob.elastic.ObjectState(step=0, weights=numpy.zeros(1000))

    @runjob.elastic.run
    def train(state):
        while state.step < 1000:
            ...
            state.step += 1
            state.commit()

Every State has a commit: a copy that this process restores when a rank is lost. Commits are numbered, and all ranks
report the number of their newest one when the next generation forms. runjob.torch.elastic, runjob.tensorflow.elastic
and runjob.keras.elastic have the states of models.

Threads  the thread that runs the function.
"""

from .generation import commits, is_elastic, pending
from .loop import run
from .object_state import ObjectState
from .state import State

__all__ = ["ObjectState", "State", "commits", "is_elastic", "pending", "run"]
