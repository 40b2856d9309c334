"""The search for the size of buckets in a job: rank 0 measures the steps of one optimizer, decides, and reports.

Its size is that of all optimizers over all ranks. They agree on it as they agree on new parameters. The first optimizer
that can be tuned is measured, and the others follow.

Threads  that which steps.
"""

from __future__ import annotations

import sys
import time
import weakref

from .. import job
from .._library import library
from ..bucket_settings import Autotune, bucket_settings
from ..exceptions import Error
from .bucket_search import MIB, BucketSearch, Sample

_autotuner: tuple[int, Autotuner | None] = (-1, None)


def autotuner() -> Autotuner | None:
    """The search of the job that this process is in; None on other ranks than 0, and if nothing is to be tuned."""
    global _autotuner
    if _autotuner[0] != job.generation():
        settings = bucket_settings()
        _autotuner = (job.generation(), settings.autotune and Autotuner(settings.bucket_bytes, settings.autotune))
    return _autotuner[1]


class Autotuner:
    """bucket_bytes  the size that the optimizers are to use."""

    def __init__(self, default: int, limits: Autotune) -> None:
        self.bucket_bytes = default
        self._default = default
        self._limits = limits
        self._search: BucketSearch | None = None
        self._measured: weakref.ref[object] | None = None
        self._step_bytes = 0
        self._present = -1  # the size with which the last step was made
        self._last = 0.0
        self._writes = True

    def add_optimizer(self, gradients: object, bytes_in_buckets: int, has_groups: bool) -> None:
        """Takes an optimizer whose ranks have agreed on its buckets. It is measured if none is.

        gradients  lent. When it is deleted, the search begins again with the next one.
        """
        if self._search is not None and (self._search.is_over or (self._measured is not None and self._measured() is not None)):
            return
        if has_groups:
            _remark("--autotune has tuned nothing: groups= has set the buckets of the optimizer")
            return
        search = BucketSearch(self._default, bytes_in_buckets, self._limits)
        if not search.others:
            most = self._limits.most_bucket_bytes / MIB
            _remark(
                f"--autotune has tuned nothing: there is no other size to try, since the optimizer has gradients of {bytes_in_buckets / MIB:.3g} "
                f"MiB for buckets, and --fusion-threshold-mb allows buckets of {most:g} MiB"
            )
        elif search.is_over:
            _remark(
                f"--autotune has tuned nothing: --autotune-bayes-opt-max-samples {self._limits.most_samples} is less than the number of sizes, "
                f"{len(search.others) + 1}; give at least that"
            )
        else:
            self._search, self._measured = search, weakref.ref(gradients)
            self._step_bytes = bytes_in_buckets
            self._present = -1
            self.bucket_bytes = self._default

    def end_step(self, gradients: object, bucket_bytes: int) -> None:
        """Notes that an optimizer has made a step, whose gradients were reduced in buckets of this size at its end."""
        search = self._search
        if search is None or search.is_over or self._measured is None or self._measured() is not gradients:
            return
        now = time.perf_counter()
        milliseconds, self._last = (now - self._last) * 1000, now
        if bucket_bytes != self._present:  # in this step the ranks have agreed on the size
            self._present = bucket_bytes
            return
        if bucket_bytes != search.bucket_bytes:
            return
        sample = search.add_step(milliseconds)
        self.bucket_bytes = search.bucket_bytes
        if sample is not None and sample.counts:
            self._log(sample)
        if search.is_over:
            self._report(search)
        else:
            _remark(
                f"--autotune has not ended: the job was too short by up to {search.most_steps_left()} steps; fewer steps do with a smaller "
                "--autotune-steps-per-sample"
            )

    def _log(self, sample: Sample) -> None:
        code = library().runjob_autotune_sample(sample.bucket_bytes, sample.milliseconds, self._step_bytes)
        try:
            job.check(code)
        except Error as failure:
            if self._writes:
                print(f"runjob: warning: the log of --autotune is incomplete: {failure}", file=sys.stderr, flush=True)
            self._writes = False

    def _report(self, search: BucketSearch) -> None:
        size, default = search.bucket_bytes, search.default
        ours, before = search.median(size), search.median(default)
        self._log(Sample(size, ours, True))
        text = f"buckets of {size / MIB:g} MiB stay, with {ours:.4g} ms a step"
        if size != default:
            text += f" instead of {before:.4g} ms with the default of {default / MIB:g} MiB"
        else:
            text += "; no other size is 2% faster than the default"
        kept = f"--bucket-mb {size // MIB}" if size % MIB == 0 else "a job without --autotune"
        print(f"runjob: --autotune: {text}; {kept} keeps this size", file=sys.stderr, flush=True)
        _remark(None)


def _remark(text: str | None) -> None:
    library().runjob_autotune_remark(None if text is None else text.encode())
