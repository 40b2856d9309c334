"""Elastic training with PyTorch, with the names of horovod.torch.elastic:

    state = hvd.elastic.TorchState(model=model, optimizer=optimizer, batch=0)

    @hvd.elastic.run
    def train(state):
        while state.batch < 1000:
            ...
            state.batch += 1
            state.commit()
"""

from ...elastic import run
from . import state
from .sampler import ElasticSampler
from .state import TorchState

__all__ = ["ElasticSampler", "TorchState", "run", "state"]
