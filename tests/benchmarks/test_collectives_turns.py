"""How benchmarks/collectives runs programs, reads them, and goes on without those that fail."""

import argparse
import sys

import pytest

from benchmarks.collectives import cases, peers, turns

CASE = cases.Case(2, "allreduce", "float32", "blocking", (4, 8))
LINE = '{"bytes": %d, "operations": 1, "times_us": [%s]}'


def program(code):
    """A peer that is a line of Python."""
    return lambda name: peers.Peer(name, "native", lambda np: [sys.executable, "-c", code], ())


def measure(*found, rounds=2):
    said = []
    arguments = argparse.Namespace(rounds=rounds, budget_ms=1, timeout=60)
    return turns.CaseMeasurement(CASE, list(found), arguments, said.append).run(), said


@pytest.mark.parametrize("tag", ["", "[0]<stdout>:", "[1,0]<stdout>:", "[0] "])
def test_lines_are_read_with_the_tags_of_launchers_and_among_other_output(tag):
    assert turns.parse_lines(f"hello\n{tag}" + LINE % (4, "1, 2")) == [{"bytes": 4, "operations": 1, "times_us": [1, 2]}]


def test_the_last_words_of_a_program_are_those_that_name_the_error():
    assert turns.last_words("Traceback\nValueError: no bfloat16\nrank 0 ended with status 1\n") == "ValueError: no bfloat16"
    assert turns.last_words("one\ntwo\n") == "two"
    assert turns.last_words("") == "no error output"


def test_a_turn_has_times_reasons_and_the_library():
    lines = [{"library": "A   B"}, {"bytes": 4, "operations": 2, "times_us": [6]}, {"bytes": 8, "skipped": "why"}]
    assert turns.read_turn(program("")("a"), CASE, lines) == ("A B", {"a": {4: [3]}}, {8: "why"})


def test_limits_are_series_of_their_own_at_the_sizes_of_the_case():
    case = cases.Case(2, "allreduce", "float32", "many", (4096,))
    lines = [{"limit": "t_copy", "bytes": 4096000, "operations": 1, "times_us": [7]}]
    assert turns.read_turn(program("")(peers.LIMITS), case, lines)[1] == {"t_copy": {4096: [7]}}


def test_programs_take_turns_in_an_order_that_rotates(tmp_path):
    log = tmp_path / "log"

    def logging(name):
        return program(f"open({str(log)!r}, 'a').write({name!r}); print('{LINE % (4, '1')}')")(name)

    measured, said = measure(logging("a"), logging("b"), logging("c"), rounds=3)
    assert log.read_text() == "abcbcacab" and not said
    assert measured.results()["b"][4]["turns"] == [1, 1, 1]


def test_a_program_that_fails_is_left_out_with_its_own_words():
    good = program(f"print('{LINE % (4, '1')}')")("good")
    measured, said = measure(good, program("raise ValueError('no float16')")("bad"))
    assert list(measured.results()) == ["good"]
    assert measured.left_out == {"bad": "status 1: ValueError: no float16"}
    assert said == ["left out: bad, allreduce, float32, blocking, np 2: status 1: ValueError: no float16"]


def test_a_program_that_lacks_the_operation_is_left_out_with_its_reason():
    lacking = program("""print('{"bytes": 4, "skipped": "no alltoall"}')""")("lacking")
    assert measure(lacking)[0].left_out == {"lacking": "no alltoall"}


def test_a_program_that_runs_another_library_is_left_out_with_its_name():
    code = f"""print('{{"library": "Open MPI v5.0.11"}}'); print('{LINE % (4, '1')}')"""
    command = lambda np: [sys.executable, "-c", code]  # noqa: E731
    four, five = (peers.Peer(f"openmpi{n}", "native", command, (), reports=rf"Open MPI v{n}\.") for n in (4, 5))
    measured, _ = measure(four, five)
    assert (list(measured.results()), measured.libraries) == (["openmpi5"], {"openmpi5": "Open MPI v5.0.11"})
    assert measured.left_out == {"openmpi4": "it is another library, which calls itself 'Open MPI v5.0.11'"}


def test_settings_for_one_operation_are_measured_with_that_one_only():
    tuned = peers.Peer("tuned", "native", lambda np: ["/nowhere/tuned"], (), {}, ("broadcast",))
    measured, _ = measure(program(f"print('{LINE % (4, '1')}')")("plain"), tuned)
    assert (list(measured.results()), measured.left_out) == (["plain"], {})
    assert tuned.measures(cases.Case(2, "broadcast", "float32", "blocking", (4,)))


def test_limits_are_not_measured_where_there_are_no_bytes():
    limits = peers.Peer(peers.LIMITS, peers.LIMITS, lambda np: [], ())
    assert limits.measures(CASE) and not limits.measures(cases.Case(2, "barrier", "float32", "blocking", (0,)))


def test_messages_and_futures_are_those_of_torch_distributed():
    ours, theirs = (peers.Peer(name, interface, lambda np: [], ()) for name, interface in (("runjob", "native"), ("torch-gloo", peers.DISTRIBUTED)))
    for case in (cases.Case(2, cases.MESSAGES, "float32", "blocking", (4,)), cases.Case(2, "allreduce", "float32", "future", (4,))):
        assert theirs.measures(case) and not ours.measures(case)


def test_a_program_that_is_not_there_is_left_out():
    measured, _ = measure(peers.Peer("gone", "native", lambda np: ["/nowhere/gone"], ()))
    assert "No such file" in measured.left_out["gone"]


def test_a_program_that_hangs_is_ended_with_all_it_started():
    code = "import subprocess; subprocess.run(['sleep', 'infinity'])"
    with pytest.raises(turns.Failed, match="no result after 0.5 s"):
        turns.run_program([sys.executable, "-c", code], {}, 0.5)


def test_what_is_asked_for_and_not_there_has_its_reason():
    found = [program("")(name) for name in ("runjob", "torch-gloo", "mpich", peers.LIMITS)]
    absent = ["openmpi5: not there", "horovod: neither"]
    chosen, reasons = peers.select(found, absent, "mpich,openmpi5-segring,horovod-mpi,nothing")
    assert [peer.name for peer in chosen] == ["runjob", "mpich", peers.LIMITS]
    assert reasons == ["horovod: neither", "nothing: no such peer", "openmpi5: not there"]
    assert peers.select(found, absent, "all") == (found, absent)
