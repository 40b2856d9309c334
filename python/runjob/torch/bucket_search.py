"""Finds the size of buckets with which a step is fastest, from the times of steps alone.

There are at most eight sizes, so each of them is tried and no model is needed. The default is the first one of each
round. A round gives each of its sizes a sample in turn, so that a machine that becomes slower does so for all of them.
A size is faster than the default if it is by 2% in every round.

round 1  all sizes, a sample each
round 2  the default and the three fastest sizes that are faster than it, two samples each
round 3  the default and the fastest of these, two samples each

The search ends when no size is left that can win, or when the samples that are left do not suffice for the next round.
It then has the default, or the fastest of the sizes that were faster in all rounds.
"""

from __future__ import annotations

import statistics
from collections.abc import Generator
from typing import NamedTuple

from ..bucket_settings import Autotune

MIB = 1 << 20
_SIZES = [MIB << power for power in range(8)]
#: By so much a size must be faster than the default. Less lies within the variation of samples.
_GAIN = 0.02
#: Of each round: the number of sizes beside the default, and of samples for each.
_ROUNDS = ((len(_SIZES), 1), (3, 2), (1, 2))


class Sample(NamedTuple):
    """The median time of the steps with one size. `counts` is False for a sample of the warm-up."""

    bucket_bytes: int
    milliseconds: float
    counts: bool


class BucketSearch:
    """The search as a function of the times that it is given.

    default       the size in bytes that stays unless another one is faster.
    all_bytes     the gradients of a step. Sizes from there on are left out: they make one bucket, as the default does
                  if it is that large.
    bucket_bytes  the size to use now. It changes in add_step() only.
    others        the other sizes to try.
    is_over       True when `bucket_bytes` stays, which it does from the beginning if there are no other sizes, or too
                  few samples for the first round.
    """

    def __init__(self, default: int, all_bytes: int, limits: Autotune) -> None:
        self.default = default
        self._limits = limits
        self.others = [size for size in _SIZES if size != default and size < all_bytes and size <= limits.most_bucket_bytes]
        self._times: list[float] = []
        self._samples: dict[int, list[float]] = {}
        self._warmups_left = limits.warmup_samples
        self._samples_left = limits.most_samples
        self._search = self._rounds()
        self.bucket_bytes = next(self._search)  # the default, which also serves the warm-up
        self.is_over = not self.others or self._samples_left <= len(self.others)

    def add_step(self, milliseconds: float) -> Sample | None:
        """Takes the time of a step with the present size. Returns the sample if the step was its last one."""
        if self.is_over:
            return None
        self._times.append(milliseconds)
        if len(self._times) < self._limits.steps_per_sample:
            return None
        sample = Sample(self.bucket_bytes, statistics.median(self._times), self._warmups_left == 0)
        self._times.clear()
        if not sample.counts:
            self._warmups_left -= 1
            return sample
        self._samples.setdefault(sample.bucket_bytes, []).append(sample.milliseconds)
        self._samples_left -= 1
        try:
            self.bucket_bytes = self._search.send(sample.milliseconds)
        except StopIteration as end:
            self.bucket_bytes, self.is_over = end.value, True
        return sample

    def median(self, bucket_bytes: int) -> float:
        """The median of all samples of a size, in milliseconds."""
        return statistics.median(self._samples[bucket_bytes])

    def most_steps_left(self) -> int:
        """The largest number of steps until the end, with the ones that are left out after each change."""
        if self.is_over:
            return 0
        others, needed = len(self.others), 0
        for most, samples in _ROUNDS:
            others = min(others, most)
            needed += (others + 1) * samples
        taken = sum(map(len, self._samples.values()))
        samples = max(0, min(needed - taken, self._samples_left))
        warmup = self._warmups_left * self._limits.steps_per_sample
        return warmup + samples * (self._limits.steps_per_sample + 1) - len(self._times)

    def _rounds(self) -> Generator[int, float, int]:
        """Yields the sizes to try, and is sent the time of each. Returns the size that stays."""
        others = self.others
        for most, samples in _ROUNDS:
            sizes = [self.default, *others[:most]]
            if self._samples and (len(sizes) == 1 or len(sizes) * samples > self._samples_left):
                break
            times: dict[int, list[float]] = {size: [] for size in sizes}
            for _ in range(samples):
                for size in sizes:
                    times[size].append((yield size))
            medians = {size: statistics.median(each) for size, each in times.items()}
            limit = medians.pop(self.default) * (1 - _GAIN)
            others = sorted((size for size, time in medians.items() if time <= limit), key=medians.__getitem__)
        return others[0] if others else self.default
