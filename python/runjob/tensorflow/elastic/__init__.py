"""Elastic training with TensorFlow, with the names of horovod.tensorflow.elastic:

    state = hvd.elastic.TensorFlowKerasState(model, optimizer, batch=0)

    @hvd.elastic.run
    def train(state):
        while state.batch < 1000:
            ...
            state.batch += 1
            state.commit()
"""

from .failures import run
from .state import TensorFlowKerasState, TensorFlowState

__all__ = ["TensorFlowKerasState", "TensorFlowState", "run"]
