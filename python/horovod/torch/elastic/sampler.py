"""horovod.torch.elastic.sampler."""

from runjob.torch.elastic.sampler import ElasticSampler

__all__ = ["ElasticSampler"]
