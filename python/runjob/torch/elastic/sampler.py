"""A sampler that knows which samples of an epoch have been processed, so that training can continue in the middle of
it, also on other ranks.
"""

from __future__ import annotations

import itertools
import random
from collections.abc import Iterator, Mapping, Sized
from typing import Any

import torch.utils.data

from ... import job


class ElasticSampler(torch.utils.data.Sampler[int]):
    """Divides the indices of a dataset among the ranks. Each epoch has another order, without the samples that were
    processed in it.

    dataset  anything with a length.
    shuffle  whether each epoch has its own order, the same on all ranks. The order follows from `seed` and the epoch.
    seed     the same on all ranks.

    All ranks get the same number of indices: if the rest cannot be divided, its first indices come twice. Call
    record_batch() after each batch; otherwise no sample is known to be processed. state_dict() goes into a checkpoint,
    and load_state_dict() continues from there.

    In another generation of an elastic job the rest is divided again when the sampler is next iterated, whether or not
    it is a part of the state. As a part of it (TorchState(sampler=sampler)) it also returns to the commit after a loss.

    Attributes  epoch; processed_num, how many samples all ranks together have processed in it; num_replicas and rank, as of the last
                reset(); remaining_indices, of all ranks; num_samples, how many of them this rank gets.
    Errors      NotInitializedError before init().
    """

    def __init__(self, dataset: Sized, shuffle: bool = True, seed: int = 0) -> None:
        self.dataset = dataset
        self.shuffle = shuffle
        self.seed = seed
        self.epoch = 0
        self.processed_num = 0
        self.reset()

    def set_epoch(self, epoch: int) -> None:
        """Begins an epoch in which no sample has been processed. To be called when an epoch has ended, and not when one
        is continued.
        """
        self.epoch = epoch
        self.processed_num = 0
        self.reset()

    def record_batch(self, batch_idx: int, batch_size: int) -> None:
        """Counts a batch of `batch_size` samples on each rank as processed. The remaining indices change only with
        reset().

        batch_size  len(batch). For the last, shorter batch the size of the others may be given: an epoch has no more
        samples than the dataset.
        """
        self.processed_num = min(self.processed_num + batch_size * self.num_replicas, len(self.dataset))

    def state_dict(self) -> dict[str, Any]:
        """`epoch` and `processed_num`: the same on all ranks."""
        return {"epoch": self.epoch, "processed_num": self.processed_num}

    def load_state_dict(self, state_dict: Mapping[str, Any]) -> None:
        """Continues where state_dict() was taken, with the present ranks."""
        self.epoch = state_dict["epoch"]
        self.processed_num = state_dict["processed_num"]
        self.reset()

    def reset(self) -> None:
        """Divides the samples that have not been processed among the present ranks."""
        self.num_replicas, self.rank = job.size(), job.rank()
        self._generation = job.generation()
        indices = list(range(len(self.dataset)))
        if self.shuffle:
            random.Random(f"{self.seed} {self.epoch}").shuffle(indices)
        self.remaining_indices = indices[self.processed_num :]
        self.num_samples = -(-len(self.remaining_indices) // self.num_replicas)
        self.total_size = self.num_samples * self.num_replicas

    def __iter__(self) -> Iterator[int]:
        """This rank's indices: every num_replicas-th of the rest, from its own place on."""
        self._follow_generation()
        padded = itertools.cycle(self.remaining_indices)
        return itertools.islice(padded, self.rank, self.total_size, self.num_replicas)

    def __len__(self) -> int:
        self._follow_generation()
        return self.num_samples

    def _follow_generation(self) -> None:
        if self._generation != job.generation() and job.is_initialized():
            self.reset()
