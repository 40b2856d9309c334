"""How large the buckets are to be in which gradients are reduced, as the job's options say."""

from __future__ import annotations

import functools
import json
from typing import NamedTuple

from . import job
from ._library import library
from .exceptions import NotInitializedError


class Autotune(NamedTuple):
    """The limits of the search for the best size: samples before it begins, steps of a sample, the most samples of the
    search itself, and the largest size in bytes.
    """

    warmup_samples: int
    steps_per_sample: int
    most_samples: int
    most_bucket_bytes: int


class BucketSettings(NamedTuple):
    """bucket_bytes  a bucket of this size takes no further gradient; the same on all ranks. 0: each gradient alone.
    autotune      None, unless this is rank 0 and the best size is to be found.
    """

    bucket_bytes: int
    autotune: Autotune | None


def bucket_settings() -> BucketSettings:
    """The settings of the job that this process is in. Errors  NotInitializedError."""
    return _settings_of(job.generation())


@functools.lru_cache(maxsize=1)
def _settings_of(generation: int) -> BucketSettings:
    text = library().runjob_bucket_settings_json()
    if text is None:
        raise NotInitializedError("runjob has not been initialized; call init() first")
    settings = json.loads(text)
    search = settings["autotune"]
    return BucketSettings(settings["bucket_bytes"], search and Autotune(**search))
