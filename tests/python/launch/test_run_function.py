"""runjob.run(): a function on real ranks, its results, and how it fails."""

import os
import pathlib
import signal
import subprocess
import sys
import textwrap
import threading
import time

import pytest

import ranks
import runjob

pytest.importorskip("cloudpickle")


@pytest.fixture(autouse=True)
def launcher(monkeypatch):
    monkeypatch.setenv("RUNJOB_BIN", str(ranks.LAUNCHER))
    monkeypatch.setenv("OMP_NUM_THREADS", "1")


def script(code, *arguments, **options):
    """A Python process with our packages that runs `code`."""
    return subprocess.Popen(
        [sys.executable, "-c", textwrap.dedent(code), *map(str, arguments)], env=ranks.environment(RUNJOB_BIN=str(ranks.LAUNCHER)),
        text=True, stdout=subprocess.PIPE, stderr=subprocess.PIPE, **options,
    )  # fmt: skip


def marked(mark):
    """Processes that have `mark` in their environment."""
    found = []
    for entry in pathlib.Path("/proc").iterdir():
        try:
            if entry.name.isdigit() and mark.encode() in (entry / "environ").read_bytes():
                found.append(int(entry.name))
        except OSError:
            continue
    return found


def wait_until_gone(mark):
    while marked(mark):
        time.sleep(0.01)


def test_results_come_in_rank_order():
    def place(first, *, word):
        import runjob.basics as basics

        basics.init()
        return first, word, basics.rank(), basics.size()

    assert runjob.run(place, (7,), {"word": "w"}, np=3) == [(7, "w", rank, 3) for rank in range(3)]


def train(lost):
    import runjob.elastic
    import runjob.numpy as rj

    rj.init()
    state = runjob.elastic.ObjectState(step=0)

    @runjob.elastic.run
    def steps(state):
        while state.step < 300 and (rj.size() < 3 or state.step < 10):
            if state.step == 5 and os.environ["RUNJOB_PROCESS_NUMBER"] == lost:
                os.kill(os.getpid(), signal.SIGKILL)
            time.sleep(0.02)
            state.step += 1
            state.commit()

    steps(state)
    return os.environ["RUNJOB_PROCESS_NUMBER"], rj.rank(), rj.size()


def test_an_elastic_job_has_the_results_of_its_last_generation(capfd):
    # Which of the survivors is rank 0 depends on which of them made the newest commit before it learned of the loss.
    shrunk = runjob.run(train, ("1",), np=3, min_num_proc=2, options=["--rank-restarts", "0"])
    assert [place for _, *place in shrunk] == [[0, 2], [1, 2]] and {number for number, *_ in shrunk} == {"0", "2"}
    assert "2 ranks (generation 1)" in capfd.readouterr().err
    grown = runjob.run(train, ("0",), np=3, min_num_proc=2, max_num_proc=3)
    assert [place for _, *place in grown] == [[0, 3], [1, 3], [2, 3]] and {number for number, *_ in grown} == {"1", "2", "3"}
    assert grown[2][0] == "3"


def test_errors_of_an_elastic_job_are_those_of_its_last_generation():
    def fail():
        import runjob.elastic
        import runjob.numpy as rj

        rj.init()
        runjob.elastic.run(lambda state: 1 / 0)(runjob.elastic.ObjectState())

    with pytest.raises(runjob.RankError, match="(?s)the elastic job cannot go on.*raised ZeroDivisionError: division by zero"):
        runjob.run(fail, np=1, min_num_proc=1, options=["--rank-restarts", "0"])
    with pytest.raises(ValueError, match="3 is over the 2 ranks"):
        runjob.run(train, np=2, min_num_proc=3)


def test_without_np_the_slots_say_how_many():
    assert runjob.run(lambda: os.environ["RUNJOB_RANK"], hosts="localhost:2") == ["0", "1"]
    assert runjob.run(lambda: os.environ["RUNJOB_SIZE"]) == ["1"]
    assert runjob.run(lambda: 1, hosts=["localhost:3"], np=2) == [1, 1]


def test_closures_lambdas_and_classes_of_the_caller_are_sent():
    factor = 3

    class Point:
        def __init__(self, x):
            self.x = x

    points = runjob.run(lambda point: Point(point.x * factor), (Point(2),), np=2)
    assert [point.x for point in points] == [6, 6]
    assert all(isinstance(point, Point) for point in points)


def test_a_function_of_main_and_a_module_beside_the_script(tmp_path):
    (tmp_path / "beside.py").write_text("WORD = 'beside'\n")
    (tmp_path / "script.py").write_text(
        "import runjob, beside\n"
        "def named(): return beside.WORD\n"
        "if __name__ == '__main__': print(runjob.run(named, np=2))\n"
    )
    done = subprocess.run(
        [sys.executable, tmp_path / "script.py"], env=ranks.environment(RUNJOB_BIN=str(ranks.LAUNCHER)),
        cwd="/", capture_output=True, text=True, timeout=60,
    )  # fmt: skip
    assert (done.returncode, done.stdout) == (0, "['beside', 'beside']\n"), done.stderr


def test_ranks_import_nothing_from_another_users_folder_in_which_the_caller_stands(root, tmp_path):
    """The caller's script lies elsewhere, so that its own path does not have the folder."""
    theirs, ours = tmp_path / "theirs", tmp_path / "script.py"
    theirs.mkdir()
    os.chown(theirs, 65534, 65534)
    plant = "for name in runjob io cloudpickle torch; do mkdir $name; echo 'print(\"the other user\")' > $name/__init__.py; done"
    subprocess.run(["setpriv", "--reuid=65534", "--regid=65534", "--clear-groups", "sh", "-c", plant], cwd=theirs, check=True)
    ours.write_text("import os, runjob\nif __name__ == '__main__': print(runjob.run(os.getcwd, np=2))\n")
    done = subprocess.run(
        [sys.executable, ours], env=ranks.environment(RUNJOB_BIN=str(ranks.LAUNCHER)),
        cwd=theirs, capture_output=True, text=True, timeout=60,
    )  # fmt: skip
    assert (done.returncode, done.stdout) == (0, f"{[str(theirs)] * 2}\n"), done.stderr


def test_results_as_json_and_no_pickle_of_an_exception():
    assert runjob.run(lambda: {"loss": [0.5, None]}, np=2, results="json") == [{"loss": [0.5, None]}] * 2
    with pytest.raises(runjob.RankError, match="rank 0 on localhost raised ZeroDivisionError: ") as info:
        runjob.run(lambda: 1 // 0, np=1, results="json")
    assert info.value.exception is None and "1 // 0" in info.value.traceback
    with pytest.raises(runjob.RankError, match="the result of rank 0, a set, cannot be sent to the caller as json"):
        runjob.run(lambda: {1}, np=1, results="json")
    with pytest.raises(ValueError, match="results='yaml': the ranks' results are sent as 'pickle' or as 'json'"):
        runjob.run(print, results="yaml")


def test_output_goes_to_the_callers_streams_as_it_comes(capsys):
    def talk():
        print("standard")
        print("gr\u00fc\u00df dich", file=sys.stderr)

    runjob.run(talk, np=2)
    captured = capsys.readouterr()
    assert sorted(captured.out.splitlines()) == ["[0]<stdout>:standard", "[1]<stdout>:standard"]
    assert sorted(captured.err.splitlines()) == ["[0]<stderr>:grüß dich", "[1]<stderr>:grüß dich"]
    runjob.run(lambda: print("plain"), np=1, tag_output="none")
    assert capsys.readouterr().out == "plain\n"


def test_variables_reach_every_rank_and_no_command_line(capsys):
    def look():
        lines = [path.read_bytes() for path in pathlib.Path("/proc").glob("[0-9]*/cmdline") if path.exists()]
        return os.environ["SECRET_WORD"], any(b"open sesame" in line for line in lines)

    assert runjob.run(look, np=2, env={"SECRET_WORD": "open sesame"}) == [("open sesame", False)] * 2


def test_a_caller_may_have_closed_its_standard_streams():
    """The descriptors that it opens afterwards then have the numbers 0 and 2."""
    code = """
        import os, sys
        import runjob
        os.close(0); os.close(2)
        print(runjob.run(lambda: os.environ["RUNJOB_RANK"], np=2))
    """
    with script(code) as caller:
        assert caller.communicate(timeout=120)[0] == "['0', '1']\n"


def test_large_arguments_and_results(tmp_path):
    data = os.urandom(1 << 20) * 100

    def turn_around(data):
        return data[::-1]

    (result,) = runjob.run(turn_around, (data,), np=1)
    assert result == data[::-1]
    assert runjob.run(lambda: bytes(50 << 20), np=2) == [bytes(50 << 20)] * 2


def test_an_exception_names_rank_and_host_and_has_the_remote_traceback():
    class OwnError(Exception):
        pass

    def fail():
        if os.environ["RUNJOB_RANK"] == "1":
            raise OwnError("nothing in the cellar")

    with pytest.raises(runjob.RankError, match="rank 1 on localhost raised .*OwnError: nothing in the cellar") as info:
        runjob.run(fail, np=2)
    error = info.value
    assert (error.rank, error.host, error.exit_status) == (1, "localhost", 1)
    assert isinstance(error.exception, OwnError)
    assert 'raise OwnError("nothing in the cellar")' in error.traceback and ", in fail\n" in error.traceback
    assert "run_rank.py" not in error.traceback and "runpy" not in error.traceback
    assert error.traceback.strip() in str(error)


def test_the_first_failure_is_raised_and_not_what_it_did_to_others():
    def fail_while_others_wait():
        from runjob import basics, job
        from runjob._library import library
        import ctypes

        basics.init()
        if basics.rank() == 1:
            raise LookupError("no such sample")
        handle = ctypes.c_int64()
        job.check(library().runjob_barrier_async(b"b", 0, ctypes.byref(handle)))
        job.wait(handle.value)

    with pytest.raises(runjob.RankError, match="rank 1 on localhost raised LookupError: no such sample") as info:
        runjob.run(fail_while_others_wait, np=3)
    assert isinstance(info.value.exception, LookupError)


def test_a_killed_rank_is_named_with_its_signal():
    def die():
        if os.environ["RUNJOB_RANK"] == "1":
            print("last words", file=sys.stderr, flush=True)
            os.kill(os.getpid(), signal.SIGKILL)
        signal.pause()

    with pytest.raises(runjob.RunError, match=r"rank 1 on localhost \(pid \d+\) was killed by signal 9 \(SIGKILL\)") as info:
        runjob.run(die, np=2)
    assert (info.value.rank, info.value.host, info.value.exit_status) == (1, "localhost", 137)
    assert "last words" in str(info.value)
    assert not isinstance(info.value, runjob.RankError)


@pytest.mark.parametrize("leave", [lambda: sys.exit(0), lambda: os._exit(0)])
def test_a_rank_that_leaves_without_a_result_is_an_error(leave):
    with pytest.raises(runjob.RunError, match="rank 0 on localhost ended with status 0 and without a result") as info:
        runjob.run(leave, np=2)
    assert (info.value.rank, info.value.exit_status) == (0, 1)


def test_leaving_with_a_status_is_an_error_with_that_status():
    with pytest.raises(runjob.RunError, match=r"rank 0 on localhost \(pid \d+\) exited with status 5") as info:
        runjob.run(lambda: sys.exit(5), np=1)
    assert info.value.exit_status == 5


def test_a_result_that_cannot_be_pickled_is_an_error_of_its_rank():
    with pytest.raises(runjob.RankError, match="the result of rank 0, a generator, cannot be sent to the caller"):
        runjob.run(lambda: (number for number in range(3)), np=1)


def test_arguments_that_cannot_be_pickled_start_nothing():
    with pytest.raises(TypeError, match="pickle"):
        runjob.run(print, (threading.Lock(),), np=1)


def test_mistakes_of_the_caller_are_errors_before_anything_runs():
    with pytest.raises(TypeError, match="takes a function to call, not 5"):
        runjob.run(5)
    with pytest.raises(TypeError, match="args='abc' is one value"):
        runjob.run(print, "abc")
    with pytest.raises(TypeError, match="values of variables are strings"):
        runjob.run(print, env={"A": 1})
    with pytest.raises(ValueError, match="5 ranks do not fit into 2 slots"):
        runjob.run(print, np=5, hosts="localhost:2")
    with pytest.raises(ValueError, match="unknown option --verbos3"):
        runjob.run(print, options=["--verbos3"])


def test_a_time_limit_is_told():
    with pytest.raises(runjob.RunError, match="did not end within the 0.5 s of --timeout") as info:
        runjob.run(signal.pause, np=1, timeout=0.5)
    assert info.value.exit_status == 124


def test_ctrl_c_ends_the_job_and_leaves_nothing(tmp_path):
    mark = f"RUN_FUNCTION_TEST={tmp_path.name}"
    process = script(
        """
        import os, signal, sys, runjob
        def wait():
            print("ready")
            signal.pause()
        try:
            runjob.run(wait, np=2, env=dict([sys.argv[1].split("=")]))
        except KeyboardInterrupt:
            print("interrupted")
        """,
        mark,
    )
    with process:
        assert sorted(process.stdout.readline() for _ in range(2)) == ["[0]<stdout>:ready\n", "[1]<stdout>:ready\n"]
        assert marked(mark)
        process.send_signal(signal.SIGINT)
        output, errors = process.communicate(timeout=60)
    assert (output, errors) == ("interrupted\n", "")
    assert process.returncode == 0
    assert not marked(mark)


def test_a_killed_caller_leaves_nothing(tmp_path):
    mark = f"RUN_FUNCTION_TEST={tmp_path.name}"
    with script(
        "import runjob, signal, sys\n"
        "runjob.run(lambda: (print('ready'), signal.pause()), np=2, env=dict([sys.argv[1].split('=')]))\n",
        mark,
    ) as process:
        process.stdout.readline()
        process.kill()
    wait_until_gone(mark)


def test_a_stream_that_cannot_be_written_ends_the_job(monkeypatch):
    class Full:
        def write(self, text):
            raise OSError(28, "No space left on device")

        def flush(self):
            pass

    monkeypatch.setattr(sys, "stdout", Full())
    with pytest.raises(OSError, match="No space left"):
        runjob.run(lambda: (print("text"), signal.pause()), np=1)


def test_without_cloudpickle_it_is_named():
    process = script("import sys; sys.modules['cloudpickle'] = None\nimport runjob; runjob.run(print)")
    errors = process.communicate(timeout=60)[1]
    assert "ImportError: run() sends functions with cloudpickle, which is not installed: " in errors


def test_another_version_of_python_is_told(monkeypatch):
    import runjob.launch.run_function as run_function

    monkeypatch.setattr(run_function.platform, "python_version_tuple", lambda: ("3", "1", "4"))
    with pytest.raises(runjob.RankError, match=r"this rank runs Python 3.\d+ .* and the caller Python 3.1: .* equal versions"):
        runjob.run(print, np=1)


def test_jobs_may_run_in_threads_and_one_after_another():
    from concurrent.futures import ThreadPoolExecutor

    with ThreadPoolExecutor(2) as pool:
        jobs = [pool.submit(runjob.run, lambda number=number: number, np=1) for number in range(2)]
        assert [job.result() for job in jobs] == [[0], [1]]
