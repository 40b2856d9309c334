"""Where results of allgather, alltoall and reducescatter lie: in a tensor made beforehand when they fit, else in a copy."""

import torch

import runjob.torch as hvd
from runjob.torch.operations import calls


def _record_rooms():
    rooms, make = [], calls._room

    def recording(*arguments):
        rooms.append(make(*arguments))
        return rooms[-1]

    calls._room = recording
    return rooms


def _is_there(output, room):
    return output.untyped_storage().data_ptr() == room.untyped_storage().data_ptr()


def _sizes_known():
    hvd.init()
    rooms = _record_rooms()
    rank, size = hvd.rank(), hvd.size()
    used = []
    for rows in (size, 7, 600):
        output = hvd.reducescatter(torch.arange(3.0 * rows).reshape(rows, 3), op=hvd.Sum)
        first = sum(rows // size + (other < rows % size) for other in range(rank))
        assert torch.equal(output, size * torch.arange(3.0 * rows).reshape(rows, 3)[first : first + output.shape[0]])
        used.append(_is_there(output, rooms.pop()))
        output = hvd.alltoall(torch.full((size, rows), float(rank)))
        assert torch.equal(output, torch.arange(float(size)).unsqueeze(1).expand(size, rows))
        used.append(_is_there(output, rooms.pop()))
        output = hvd.synchronize(hvd.allgather_async(torch.full((rows, 2), rank)))
        assert output.tolist() == [[other, other] for other in range(size) for _ in range(rows)]
        used.append(_is_there(output, rooms.pop()))
    return used


def test_a_result_of_the_expected_size_is_not_copied(call_ranks):
    assert call_ranks(_sizes_known, 2) == [[True] * 9] * 2


def _allgather_of(rows):
    """Of rows[rank] rows each: whether the room was used, and whether the result holds more memory than twice its own."""
    hvd.init()
    rooms = _record_rooms()
    gathered = hvd.allgather(torch.full((rows[hvd.rank()], 2), hvd.rank()))
    assert gathered.tolist() == [[rank, rank] for rank, count in enumerate(rows) for _ in range(count)]
    assert gathered.shape == (sum(rows), 2) and gathered.is_contiguous()
    return _is_there(gathered, rooms.pop()), gathered.untyped_storage().nbytes() > 2 * gathered.nbytes


def test_uneven_rows_that_are_more_than_expected_are_copied_and_fewer_are_not(call_ranks):
    assert call_ranks(_allgather_of, 2, [1, 3]) == [(False, False), (True, False)]


def test_a_result_does_not_hold_on_to_a_room_that_is_much_too_large(call_ranks):
    assert call_ranks(_allgather_of, 3, [0, 6, 1]) == [(False, False)] * 3


def test_nothing_needs_no_room(call_ranks):
    assert all(not too_large for _, too_large in call_ranks(_allgather_of, 2, [0, 0]))


def _gathered_with_gradients():
    hvd.init()
    x = torch.ones(1 + 2 * hvd.rank(), requires_grad=True)
    gathered = hvd.allgather(x)
    gathered.mul_(3.0)
    gathered.sum().backward()
    return gathered.tolist(), x.grad.tolist()


def test_a_result_may_be_changed_in_place_under_autograd(call_ranks):
    assert call_ranks(_gathered_with_gradients, 2) == [([3.0] * 4, [3.0]), ([3.0] * 4, [3.0] * 3)]


def _uneven_alltoall():
    """Without splits, rank 0 brings 2 rows and rank 1 brings 6: each gets one and three."""
    hvd.init()
    rooms = _record_rooms()
    output = hvd.alltoall(torch.full((2 + 4 * hvd.rank(),), hvd.rank()))
    used = _is_there(output, rooms.pop())
    _, received = hvd.alltoall(torch.ones(2), splits=[1, 1])
    return output.tolist(), used, len(rooms), received.tolist()


def test_alltoall_guesses_that_all_ranks_bring_as_many_rows(call_ranks):
    assert call_ranks(_uneven_alltoall, 2) == [([0, 1, 1, 1], False, 0, [1, 1]), ([0, 1, 1, 1], True, 0, [1, 1])]


def test_a_guess_beyond_memory_is_no_error():
    assert calls._room(torch.ones(1), lambda rows: rows << 60) is None
    assert calls._room(torch.tensor(1.0), lambda rows: rows) is None
