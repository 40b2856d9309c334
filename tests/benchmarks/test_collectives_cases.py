"""What benchmarks/collectives is asked for, and the cases that it makes of that."""

import pytest

from benchmarks.collectives import arguments, cases

MIB = 1 << 20


def test_sizes_have_units():
    assert arguments.sizes("4,64K,1M,2G") == [4, 65536, MIB, 2 << 30]


@pytest.mark.parametrize("words", [["--sizes", "4k"], ["--sizes", "0"], ["--np", "2,x"], ["--np", "0"], ["--ops", "reduce"]])
def test_what_cannot_be_read_is_refused(words, capsys):
    with pytest.raises(SystemExit):
        arguments.parse(words)
    assert words[1].split(",")[-1] in capsys.readouterr().err


def test_every_combination_is_a_case_and_a_barrier_is_one():
    found = cases.choose([2, 4], ["allreduce", "barrier"], ["float32", "float16"], ["blocking", "many"], [4, 8])
    assert [(case.op, case.dtype, case.mode, case.sizes) for case in found if case.np == 4] == [
        ("allreduce", "float32", "blocking", (4, 8)),
        ("allreduce", "float32", "many", (4096,)),
        ("allreduce", "float16", "blocking", (4, 8)),
        ("allreduce", "float16", "many", (4096,)),
        ("barrier", "float32", "blocking", (0,)),
    ]


def test_the_words_of_a_program():
    case = cases.Case(2, "allreduce", "float32", "asynchronous", (4, 64 * MIB, 256 * MIB))
    assert case.words() == [
        "--op", "allreduce", "--dtype", "float32", "--mode", "asynchronous", "--bytes", f"4,{64 * MIB},{256 * MIB}",
        "--in-flight", "8,4,1",
    ]  # fmt: skip
    assert cases.Case(2, "allreduce", "float32", "many", (4096,)).words()[4:] == [
        "--mode", "asynchronous", "--bytes", "4096", "--in-flight", "1000",
    ]  # fmt: skip


def test_times_are_of_one_operation_and_of_all_small_tensors_together():
    assert cases.Case(2, "broadcast", "float32", "blocking", (4,)).unit_time(6, 2) == 3
    assert cases.Case(2, "allreduce", "float32", "many", (4096,)).unit_time(6000, 1000) == 6000
    assert cases.Case(2, "allreduce", "float32", "many", (4096,)).limit_sizes() == {4096: 4096000}


def test_sizes_that_do_not_fit_into_memory_are_left_out():
    case = cases.Case(8, "allgather", "float32", "blocking", (4, 256 * MIB))
    fitting, too_large = cases.fit(case, 16 << 30)
    assert (fitting.sizes, too_large) == ((4,), [256 * MIB])
    assert cases.fit(case, 64 << 30) == (case, [])
