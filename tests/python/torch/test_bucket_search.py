"""python/runjob/torch/bucket_search.py: which size the search finds for given times of steps, and after how many steps."""

import random

import pytest

from runjob.bucket_settings import Autotune
from runjob.torch.bucket_search import MIB, BucketSearch

DEFAULT = 16
LIMITS = Autotune(warmup_samples=3, steps_per_sample=10, most_samples=20, most_bucket_bytes=128 * MIB)


def _search(times, limits=LIMITS, all_mib=1000, default=DEFAULT):
    """The search, its samples, and the number of steps that it took. times: a function of the size in MiB and of the
    number of the step. As in a job, the step after a change of the size is not measured.
    """
    search = BucketSearch(default * MIB, all_mib * MIB, limits)
    samples, steps = [], 0
    while not search.is_over:
        assert steps < 10_000
        size = search.bucket_bytes
        left = search.most_steps_left()
        sample = search.add_step(times(size // MIB, steps))
        steps += 1
        assert search.most_steps_left() < left
        if search.bucket_bytes != size:
            steps += 1
        if sample is not None and sample.counts:
            samples.append((sample.bucket_bytes // MIB, sample.milliseconds))
    return search, samples, steps


@pytest.mark.parametrize("best", [1, 2, 4, 8, 32, 64, 128])
def test_a_size_that_is_faster_in_all_rounds_stays(best):
    search, samples, steps = _search(lambda size, step: 90.0 if size == best else 100.0)
    assert search.bucket_bytes == best * MIB
    assert (search.median(best * MIB), search.median(DEFAULT * MIB)) == (90.0, 100.0)
    assert [size for size, _ in samples] == [16, 1, 2, 4, 8, 32, 64, 128, *[16, best] * 4]
    assert steps <= 260


def test_the_first_round_has_all_sizes_then_the_best_three_then_the_best():
    speeds = {1: 80.0, 2: 70.0, 4: 75.0, 8: 85.0}
    search, samples, steps = _search(lambda size, step: speeds.get(size, 100.0))
    assert [size for size, _ in samples] == [16, 1, 2, 4, 8, 32, 64, 128, *[16, 2, 4, 1] * 2, *[16, 2] * 2]
    assert search.bucket_bytes == 2 * MIB
    assert 240 < steps <= 260


def test_the_default_stays_unless_another_size_is_faster_by_two_percent_in_every_round():
    search, samples, _ = _search(lambda size, step: 98.5 if size == 4 else 100.0)
    assert (search.bucket_bytes, len(samples)) == (DEFAULT * MIB, 8)  # none can win after the first round
    lucky_once, samples, _ = _search(lambda size, step: 50.0 if size == 4 and step < 100 else 100.0)
    assert (lucky_once.bucket_bytes, len(samples)) == (DEFAULT * MIB, 12)
    lucky_twice, samples, _ = _search(lambda size, step: 50.0 if size == 4 and step < 170 else 100.0)
    assert (lucky_twice.bucket_bytes, len(samples)) == (DEFAULT * MIB, 16)


def test_noise_moves_the_default_rarely_and_a_clear_gain_is_found():
    def noisy(gain, seed):
        noise = random.Random(seed)
        spikes = lambda: 5.0 if noise.random() < 0.1 else 1.0  # noqa: E731
        return lambda size, step: (100.0 * (1 - gain) if size == 4 else 100.0) * noise.gauss(1.0, 0.05) * spikes()

    kept = sum(_search(noisy(0.0, seed))[0].bucket_bytes == DEFAULT * MIB for seed in range(100))
    found = sum(_search(noisy(0.15, seed))[0].bucket_bytes == 4 * MIB for seed in range(100))
    assert kept >= 95 and found >= 95


def test_a_machine_that_becomes_slower_does_not_decide():
    search, _, _ = _search(lambda size, step: 100.0 * (1 + step / 1000))
    assert search.bucket_bytes == DEFAULT * MIB


@pytest.mark.parametrize(
    "all_mib, most_mib, default, sizes",
    [
        (3, 128, 16, [16, 1, 2]),
        (1, 128, 16, []),  # all gradients fit into the smallest bucket
        (100, 4, 4, [4, 1, 2]),
        (100, 0, 0, []),
        (1000, 128, 10, [10, 1, 2, 4, 8, 16, 32, 64, 128]),
    ],
)
def test_sizes_that_make_no_difference_are_left_out(all_mib, most_mib, default, sizes):
    limits = LIMITS._replace(most_bucket_bytes=most_mib * MIB)
    search, samples, _ = _search(lambda size, step: 1.0, limits, all_mib, default)
    assert [size for size, _ in samples] == sizes
    assert search.bucket_bytes == default * MIB


def test_a_round_for_which_too_few_samples_are_left_is_left_out():
    times = lambda size, step: 90.0 if size == 4 else 100.0  # noqa: E731
    for most, expected, needed in ((7, DEFAULT, 0), (8, 4, 8), (11, 4, 8), (12, 4, 12), (15, 4, 12), (16, 4, 16), (99, 4, 16)):
        search, samples, _ = _search(times, LIMITS._replace(most_samples=most))
        assert (search.bucket_bytes, len(samples)) == (expected * MIB, needed)


def test_the_warm_up_counts_for_nothing():
    limits = LIMITS._replace(warmup_samples=1, steps_per_sample=4)
    search, samples, _ = _search(lambda size, step: 1.0 if step < 4 else 100.0, limits)
    assert dict(samples)[DEFAULT] == 100.0
    assert _search(lambda size, step: 2.0, limits._replace(warmup_samples=0, steps_per_sample=1))[2] == 8 + 8
