"""horovod.torch.elastic."""

from runjob.torch.elastic import ElasticSampler, TorchState, run

from . import sampler, state

__all__ = ["ElasticSampler", "TorchState", "run", "sampler", "state"]
