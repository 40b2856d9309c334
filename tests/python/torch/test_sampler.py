"""python/runjob/torch/elastic/sampler.py: who gets which samples, and how training goes on in the middle of an epoch."""

import pytest
import torch

import runjob.torch as hvd


def _epochs():
    hvd.init()
    plain = hvd.elastic.ElasticSampler(range(7), shuffle=False)
    shuffled = hvd.elastic.ElasticSampler(range(7), seed=3)
    first = list(shuffled)
    shuffled.set_epoch(1)
    return list(plain), len(plain), first, list(shuffled), list(shuffled)


def test_all_ranks_together_get_every_sample(call_ranks):
    results = call_ranks(_epochs, 2)
    assert [result[:2] for result in results] == [([0, 2, 4, 6], 4), ([1, 3, 5, 0], 4)]
    for epoch in (2, 3):
        assert {index for result in results for index in result[epoch]} == set(range(7))
    assert results[0][2] != results[0][3], "each epoch has an order of its own"
    assert results[0][3] == results[0][4], "which it keeps"


def _continued():
    hvd.init()
    sampler = hvd.elastic.ElasticSampler(range(20), seed=1)
    sampler.set_epoch(5)
    loader = torch.utils.data.DataLoader(range(20), batch_size=3, sampler=sampler)
    seen = []
    for batch_idx, batch in enumerate(loader):
        seen += batch.tolist()
        sampler.record_batch(batch_idx, len(batch))
        if batch_idx == 1:
            break
    state = sampler.state_dict()
    again = hvd.elastic.ElasticSampler(range(20), seed=1)
    again.load_state_dict(state)
    sampler.reset()
    return seen, state, list(again), list(again) == list(sampler), len(again)


def test_an_epoch_goes_on_where_it_was_left(call_ranks):
    results = call_ranks(_continued, 2)
    assert [result[1] for result in results] == [{"epoch": 5, "processed_num": 12}] * 2
    assert [result[3:] for result in results] == [(True, 4)] * 2
    everything = [index for result in results for index in result[0] + result[2]]
    assert sorted(everything) == list(range(20)), "nothing twice, nothing left out"


def _few():
    hvd.init()
    sampler = hvd.elastic.ElasticSampler(range(1), shuffle=False)
    indices = list(sampler)
    sampler.record_batch(0, 1)
    sampler.reset()
    return indices, sampler.processed_num, list(sampler), len(sampler)


def test_fewer_samples_than_ranks_and_none(call_ranks):
    assert call_ranks(_few, 3) == [([0], 1, [], 0)] * 3


def test_it_needs_the_job():
    with pytest.raises(ValueError, match="call init"):
        hvd.elastic.ElasticSampler(range(3))
