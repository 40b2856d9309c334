"""horovod.torch.elastic.sampler."""

from runjob.torch import rank, size
from runjob.torch.elastic.sampler import ElasticSampler

__all__ = ["ElasticSampler", "rank", "size"]
