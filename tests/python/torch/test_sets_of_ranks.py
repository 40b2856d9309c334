"""process_set= of every function of runjob.torch, against NumPy."""

import numpy as np
import pytest
import torch

import runjob.torch as hvd

SIZE = 4
SETS = ([1, 3], [0, 1, 2], [2])


def _values(rank, rows=6):
    return torch.arange(rows * 2, dtype=torch.float64).reshape(rows, 2) * (rank + 1)


def _check(actual, expected):
    np.testing.assert_allclose(np.asarray(actual), np.asarray(expected))


def _operations():
    hvd.init(process_sets="dynamic")
    rank = hvd.rank()
    for ranks in SETS:
        some = hvd.add_process_set(ranks)
        if rank not in ranks:
            for call in (hvd.allreduce, hvd.allgather, hvd.alltoall, hvd.reducescatter):
                with pytest.raises(ValueError, match=f"rank {rank} on .* is not in process set {some.process_set_id}"):
                    call(torch.ones(6), process_set=some)
            continue
        index, size = ranks.index(rank), len(ranks)
        own, all_of = _values(rank), np.stack([_values(each).numpy() for each in ranks])
        _check(hvd.allreduce(own, process_set=some), all_of.mean(axis=0))
        _check(hvd.allreduce(own, op=hvd.Sum, name="sum", process_set=some), all_of.sum(axis=0))
        _check(hvd.allreduce_(own.clone(), op=hvd.Max, process_set=some), all_of.max(axis=0))
        _check(hvd.synchronize(hvd.allreduce_async(own, op=hvd.Min, process_set=some)), all_of.min(axis=0))
        _check(hvd.allgather(own[: index + 1], process_set=some), np.concatenate([all_of[i, : i + 1] for i in range(size)]))
        _check(hvd.broadcast(own, ranks[-1], process_set=some), all_of[-1])
        _check(hvd.broadcast_(own.clone(), ranks[0], process_set=some), all_of[0])
        parts = np.split(all_of, size, axis=1)
        _check(hvd.alltoall(own, process_set=some), np.concatenate(parts[index]))
        splits = [6] + [0] * (size - 1)
        received, counts = hvd.alltoall(own, splits=splits, process_set=some)
        _check(received, np.concatenate(all_of) if index == 0 else np.empty((0, 2)))
        assert counts.tolist() == [6 if index == 0 else 0] * size
        _check(hvd.reducescatter(own, op=hvd.Sum, process_set=some), np.array_split(all_of.sum(axis=0), size)[index])
        for actual, factor in zip(hvd.grouped_allreduce([own, 2 * own], op=hvd.Sum, process_set=some), (1, 2)):
            _check(actual, factor * all_of.sum(axis=0))
        _check(hvd.grouped_allgather([own], process_set=some)[0], np.concatenate(all_of))
        _check(hvd.grouped_reducescatter([own], op=hvd.Sum, process_set=some)[0], np.array_split(all_of.sum(axis=0), size)[index])
        hvd.barrier(process_set=some)
        if size > 1:
            outside = next(each for each in range(SIZE) if each not in ranks)
            with pytest.raises(ValueError, match=f"root rank {outside} is not in process set"):
                hvd.broadcast(own, outside, process_set=some)
    hvd.shutdown()
    return True


def test_every_operation_runs_among_the_ranks_of_its_set(call_ranks):
    assert call_ranks(_operations, SIZE) == [True] * SIZE


def _gradients():
    some = hvd.ProcessSet([1, 2])
    hvd.init(process_sets=[some])
    found = None
    if some.included():
        def gradient_of(function):
            x = torch.full((4,), float(hvd.rank()), requires_grad=True)
            function(x).sum().backward()
            return x.grad.tolist()

        found = {
            "allreduce": gradient_of(lambda x: hvd.allreduce(x, op=hvd.Sum, process_set=some)),
            "allgather": gradient_of(lambda x: hvd.allgather(x, process_set=some)),
            "broadcast": gradient_of(lambda x: hvd.broadcast(x, 2, process_set=some)),
            "alltoall": gradient_of(lambda x: hvd.alltoall(x, process_set=some)),
            "reducescatter": gradient_of(lambda x: hvd.reducescatter(x, op=hvd.Sum, process_set=some)),
            "grouped": gradient_of(lambda x: hvd.grouped_reducescatter([x], op=hvd.Sum, process_set=some)[0]),
            "grouped allgather": gradient_of(lambda x: hvd.grouped_allgather([x], process_set=some)[0]),
        }
    hvd.shutdown()
    return found


def test_gradients_go_back_through_the_set(call_ranks):
    outside, first, second = call_ranks(_gradients, 3)
    assert outside is None
    common = {
        "allreduce": [2.0] * 4, "allgather": [1.0] * 4, "alltoall": [1.0] * 4, "reducescatter": [2.0] * 4, "grouped": [2.0] * 4,
        "grouped allgather": [1.0] * 4,
    }  # fmt: skip
    assert first == {**common, "broadcast": [0.0] * 4}
    assert second == {**common, "broadcast": [1.0] * 4}


def _objects():
    hvd.init(process_sets="dynamic")
    some = hvd.add_process_set([0, 2])
    if not some.included():
        return None
    gathered = hvd.allgather_object({"rank": hvd.rank()}, process_set=some)
    sent = hvd.broadcast_object(f"of {hvd.rank()}", root_rank=2, process_set=some)
    model = torch.nn.Linear(3, 2)
    torch.nn.init.constant_(model.weight, hvd.rank())
    hvd.broadcast_parameters(model.state_dict(), 2, process_set=some)
    optimizer = torch.optim.Adam(model.parameters(), lr=0.1 * (hvd.rank() + 1))
    hvd.broadcast_optimizer_state(optimizer, 2, process_set=some)
    return gathered, sent, model.weight[0, 0].item(), round(optimizer.param_groups[0]["lr"], 6)


def test_objects_parameters_and_states_travel_within_the_set(call_ranks):
    expected = ([{"rank": 0}, {"rank": 2}], "of 2", 2.0, 0.3)
    assert call_ranks(_objects, 3) == [expected, None, expected]


def _unnamed():
    """Unnamed operations are counted for each set, so ranks may have done different numbers of them elsewhere."""
    hvd.init(process_sets="dynamic")
    sums = []
    for _ in range(3):
        pair, three = hvd.add_process_set([0, 1]), hvd.add_process_set([1, 2, 3])
        ones = torch.ones(2)
        if pair.included():
            sums += [hvd.allreduce(ones, op=hvd.Sum, process_set=pair)[0].item() for _ in range(70)]
            sums.append(hvd.synchronize(hvd.allreduce_async(ones, op=hvd.Sum, process_set=pair))[0].item())
        if three.included():
            sums.append(hvd.allreduce(ones, op=hvd.Sum, process_set=three)[0].item())
            sums.append(hvd.synchronize(hvd.allreduce_async(ones, op=hvd.Sum, process_set=three))[0].item())
        sums.append(hvd.allreduce(ones, op=hvd.Sum)[0].item())
        assert hvd.remove_process_set(three) and hvd.remove_process_set(pair)
    return sorted(set(sums))


def test_unnamed_operations_are_counted_for_each_set(call_ranks):
    assert call_ranks(_unnamed, SIZE) == [[2.0, 4.0], [2.0, 3.0, 4.0], [3.0, 4.0], [3.0, 4.0]]


def _train():
    some = hvd.ProcessSet([0, 2])
    hvd.init(process_sets=[some])
    torch.manual_seed(0)
    model = torch.nn.Linear(2, 1, bias=False)
    torch.nn.init.zeros_(model.weight)
    optimizer = hvd.DistributedOptimizer(
        torch.optim.SGD(model.parameters(), lr=1.0), named_parameters=model.named_parameters(), process_set=some
    )
    model(torch.full((1, 2), float(hvd.rank() ** 2 + 1))).sum().backward()
    optimizer.synchronize()
    with optimizer.skip_synchronize():
        optimizer.step()
    optimizer.step(lambda: torch.ones(1) * hvd.rank())
    return model.weight[0].tolist()


def test_the_optimizer_averages_over_the_set_and_a_rank_outside_keeps_its_gradients(call_ranks):
    assert call_ranks(_train, 3) == [[-6.0, -6.0], [-4.0, -4.0], [-6.0, -6.0]]


def _averages_of_bytes():
    """Of one or two ranks of four: the size of the set is the divisor."""
    hvd.init(process_sets=[pair := hvd.ProcessSet([1, 3])])
    if not pair.included():
        return None
    given = torch.tensor([200, 3], dtype=torch.uint8) + hvd.rank()
    part = hvd.reducescatter(given, op=hvd.Average, process_set=pair)
    return hvd.allreduce(given, process_set=pair).tolist(), part.tolist()


def test_averages_of_short_integers_in_a_set(call_ranks):
    assert call_ranks(_averages_of_bytes, 4) == [None, ([202, 5], [202]), None, ([202, 5], [5])]


def _numbered():
    """A ProcessSet that gets its number by hand, as scripts do that keep sets in a table."""
    hvd.init(process_sets=[hvd.ProcessSet([0, 1])])
    number = next(number for number, ranks in hvd.get_process_set_ids_and_ranks().items() if ranks == [0, 1])
    some = hvd.ProcessSet([0, 1])
    before = some.process_set_id
    some.process_set_id = number
    total = hvd.allreduce(torch.ones(1), op=hvd.Sum, process_set=some).item() if some.included() else None
    size = some.size()
    some.process_set_id = None
    return before, total, size, some.process_set_id


def test_the_number_of_a_set_can_be_set(call_ranks):
    assert call_ranks(_numbered, 3) == [(None, 2.0, 2, None)] * 2 + [(None, None, 2, None)]


def _numbers_of_optimizers():
    """Optimizers of a set are made on its ranks only; a later set gets the number of a removed one."""
    hvd.init(process_sets="dynamic")
    seen = []
    for ranks in ([0, 1], [1, 2]):
        some = hvd.add_process_set(ranks)
        for each in [some] * 2 * some.included() + [hvd.global_process_set]:
            weight = torch.zeros(1, requires_grad=True)
            optimizer = hvd.DistributedOptimizer(torch.optim.SGD([weight], lr=1.0), process_set=each)
            (weight * hvd.rank()).backward()
            optimizer.step()
            seen.append((weight.item(), optimizer._gradients.name[-1]))
        hvd.remove_process_set(some)
    return seen


def test_optimizers_of_a_set_do_not_count_among_those_of_all_ranks(call_ranks):
    first, second = [(-0.5, "0"), (-0.5, "1")], [(-1.5, "0"), (-1.5, "1")]
    expected = [[*first, (-1.0, "0"), (-1.0, "1")], [*first, (-1.0, "0"), *second, (-1.0, "1")], [(-1.0, "0"), *second, (-1.0, "1")]]
    assert call_ranks(_numbers_of_optimizers, 3) == expected
