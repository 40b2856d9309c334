"""runjob.numpy: what the matrix has not: handles, arrays that are not changed, compression, objects, sets of ranks, mistakes."""

import numpy
import pytest

import cases
import runjob.numpy as hvd


def _run():
    hvd.init()
    return cases.run(CASES)


def numbers_and_lists():
    mean = hvd.allreduce(float(hvd.rank()))
    return mean.shape, mean.item(), hvd.allreduce([1, 2], op=hvd.Sum).tolist(), type(mean).__name__


def arguments_stay_what_they_were():
    array = numpy.arange(3.0)
    hvd.allreduce(array, op=hvd.Sum)
    hvd.broadcast(array * hvd.rank(), 1)
    hvd.allreduce(array, compression=hvd.Compression.fp16, prescale_factor=2.0)
    return array.tolist()


def handles():
    array = numpy.ones(3, dtype=numpy.float32)
    handle = hvd.allreduce_async_(array, op=hvd.Sum, name="h")
    output = hvd.synchronize(handle)
    done = output is array
    others = [hvd.broadcast_async(array, 0), hvd.allgather_async(array), hvd.reducescatter_async(array, op=hvd.Max)]
    shapes = [hvd.synchronize(other).shape for other in others]
    received, splits = hvd.synchronize(hvd.alltoall_async(numpy.arange(2), [1, 1]))
    try:
        hvd.poll(handle)
    except ValueError as error:
        return done, output.tolist(), shapes, received.tolist(), splits.dtype.name, "is unknown" in str(error)


def scaled():
    array = numpy.full((2, 2), hvd.rank() + 1.0)
    return (
        hvd.allreduce(array, op=hvd.Sum, prescale_factor=0.5, postscale_factor=10).tolist(),
        hvd.reducescatter(array, op=hvd.Sum, prescale_factor=2.0).tolist(),
        hvd.allreduce(numpy.array([-3, 4]) * hvd.rank()).tolist(),
    )


def compressed():
    array = numpy.full(3, 1.001 + hvd.rank())
    sums = [hvd.allreduce(array, op=hvd.Sum, compression=each) for each in (hvd.Compression.fp16, hvd.Compression.bf16)]
    parts = [hvd.reducescatter(array, op=hvd.Sum, compression=each) for each in (hvd.Compression.fp16, hvd.Compression.bf16)]
    group = hvd.grouped_allreduce([array, numpy.arange(2)], op=hvd.Sum, compression=hvd.Compression.fp16)
    exact = 3.002
    near = all(abs(each - exact).max() < 0.02 and (each != exact).all() for each in (*sums, *parts, group[0]))
    return near, {each.dtype.name for each in (*sums, *parts, group[0])}, group[1].tolist()


def objects():
    told = hvd.broadcast_object({"a": [1, (2,)]} if hvd.rank() == 1 else None, root_rank=1)
    return told, hvd.allgather_object("x" * (hvd.rank() * 3)), hvd.allgather_object(numpy.arange(hvd.rank())) [1].tolist()


def in_symmetric_memory():
    array = hvd.empty_symmetric((3, 5), dtype=numpy.float32)
    array.fill(hvd.rank() + 1)
    hvd.allreduce_(array, op=hvd.Sum)
    hvd.allreduce_(array[1:2], op=hvd.Sum)
    return array[:, 0].tolist(), hvd.empty_symmetric(0).shape, hvd.empty_symmetric((), dtype="int8").shape


def results_are_our_own():
    gathered = hvd.allgather(numpy.ones((hvd.rank() + 1, 2)))  # the guess of the room is wrong on both
    gathered += 1
    few = hvd.allgather(numpy.ones(1000 * hvd.rank()))
    return gathered.sum(), gathered.flags.owndata, few.shape, few.flags.owndata


def mismatch_names_the_ranks():
    try:
        hvd.allreduce(numpy.ones(2 + hvd.rank()), name="grad")
    except hvd.HorovodInternalError as error:
        return type(error).__name__, "grad" in str(error) and "rank 1" in str(error)


def refused():
    found = []
    for attempt in (
        lambda: hvd.allreduce(numpy.ones(2, dtype=complex)),
        lambda: hvd.allreduce_(numpy.ones((2, 2)).T),
        lambda: hvd.grouped_allreduce(numpy.ones((2, 2))),
        lambda: hvd.grouped_allreduce([]),
        lambda: hvd.allgather(1.0),
        lambda: hvd.alltoall(numpy.ones(2), [0.5, 1.5]),
        lambda: hvd.broadcast(numpy.ones(2), 5),
        lambda: hvd.allreduce(numpy.ones(2, dtype=bool)),
    ):
        try:
            attempt()
            found.append(None)
        except ValueError:
            found.append("ValueError")
    return found


def waiting():
    hvd.barrier()
    return hvd.join() in (0, 1)


CASES = {
    numbers_and_lists: ((), 0.5, [2, 4], "ndarray"),
    arguments_stay_what_they_were: [0.0, 1.0, 2.0],
    handles: (True, [2.0] * 3, [(3,), (6,), None], None, "int32", True),
    scaled: None,
    compressed: (True, {"float64"}, [0, 2]),
    objects: ({"a": [1, (2,)]}, ["", "xxx"], [0]),
    in_symmetric_memory: ([3.0, 6.0, 3.0], (0,), ()),
    results_are_our_own: (12.0, True, (1000,), True),
    mismatch_names_the_ranks: ("MismatchError", True),
    refused: ["ValueError"] * 8,
    waiting: True,
}
#: What differs between the ranks.
OF_RANK = {
    handles: lambda rank: (True, [2.0] * 3, [(3,), (6,), (2 - rank,)], [rank, rank], "int32", True),
    scaled: lambda rank: ([[15.0, 15.0]] * 2, [[6.0, 6.0]], [-1, 2]),
}

outcomes = cases.fixture(_run)


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.__name__)
def test_on_two_ranks(outcomes, case):
    for rank, found in enumerate(outcomes):
        expected = OF_RANK[case](rank) if case in OF_RANK else CASES[case]
        assert found[case.__name__] == expected, found[case.__name__]


def _in_a_set():
    mine = hvd.ProcessSet([0, 2])
    hvd.init(process_sets=[mine])
    if not mine.included():
        try:
            hvd.allreduce(1.0, process_set=mine)
        except ValueError as error:
            return "rank 1" in str(error)
    return hvd.allreduce([float(hvd.rank())], process_set=mine).tolist(), hvd.allgather_object(hvd.rank(), process_set=mine)


def test_sets_of_ranks(call_ranks):
    assert call_ranks(_in_a_set, 3) == [([1.0], [0, 2]), True, ([1.0], [0, 2])]


def test_it_needs_no_pytorch(run_python):
    done = run_python("import sys, runjob.numpy; assert not {'torch', 'tensorflow', 'jax'} & set(sys.modules)")
    assert done.returncode == 0, done.stderr


def test_calls_before_init_say_so():
    for attempt in (hvd.rank, lambda: hvd.allreduce(1.0), lambda: hvd.allgather([1.0]), lambda: hvd.empty_symmetric(3), hvd.barrier):
        with pytest.raises(ValueError, match="init"):
            attempt()


def test_bfloat16_without_ml_dtypes_says_what_to_install(run_python):
    done = run_python(
        "import sys; sys.modules['ml_dtypes'] = None\n"
        "import runjob.numpy as hvd; hvd.init(); hvd.reducescatter([1.0], compression=hvd.Compression.bf16)"
    )
    assert "UnavailableError: Compression.bf16 of reducescatter needs" in done.stderr and "install the package ml_dtypes" in done.stderr
