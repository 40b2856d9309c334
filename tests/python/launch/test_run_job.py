"""python/runjob/launch/run_job.py: any program in the launcher's place, what it prints, and its end."""

import contextlib
import io
import json
import os
import pickle
import struct
import sys

import pytest

from runjob.launch.run_errors import RunError
from runjob.launch.run_job import Job


def launcher(code):
    """A command that has the socket as `s`."""
    start = "import os, socket, sys; s = socket.socket(fileno=int(sys.argv[1]))\n"
    return lambda function, caller: [sys.executable, "-c", start + code, str(caller)]


def result(value):
    record = lambda rank, block: struct.pack("<iI", rank, len(block)) + block  # noqa: E731
    end = json.dumps({"ranks": [{"rank": 0, "host": "h", "outcome": "ok"}], "first_failed_rank": None, "message": ""})
    return record(0, b"V" + pickle.dumps(value)) + record(0, b".") + record(-1, end.encode())


@pytest.fixture
def run(tmp_path):
    def start(code, stdout=None, stderr=None):
        with open(os.devnull, "rb") as function:
            with Job(launcher(code), dict(os.environ), function.fileno(), stdout or io.StringIO(), stderr) as job:
                return job.finish()

    return start


def test_what_it_prints_up_to_its_end_is_shown_also_in_the_middle_of_a_letter(run):
    out, err = io.StringIO(), io.StringIO()
    code = f"""
os.write(1, b'caf\\xc3'); s.sendall({result(5)!r}); os.write(1, b'\\xa9 end'); os.write(2, b'\\xff bad')
"""
    assert run(code, out, err) == [5]
    assert (out.getvalue(), err.getvalue()) == ("café end", "\ufffd bad")


def test_a_letter_that_a_stream_cannot_have_is_replaced(run):
    """As when Python's own output is a file of another encoding, or PYTHONIOENCODING names one."""
    out = io.TextIOWrapper(io.BytesIO(), encoding="latin-1")
    assert run(f"os.write(1, 'caf\u00e9 \u2588 50%\\n'.encode()); s.sendall({result(5)!r})", out) == [5]
    assert out.buffer.getvalue() == b"caf\xe9 ? 50%\n"


def shown_on(screen):
    """All that a terminal has shown; the program's end of it is closed."""
    parts = []
    with contextlib.suppress(OSError):  # a terminal whose other end is closed gives EIO
        while part := screen.read(100):
            parts.append(part)
    return b"".join(parts)


def test_a_terminal_obeys_nothing_that_a_rank_prints(run):
    """Half of the sequence comes later: the launcher writes what it has."""
    code = f"""
os.write(1, b'a\\x1b]52;c;YQ'); s.sendall({result(5)!r}); os.write(1, b'==\\x07b\\x1b[31mred\\x1b[0m\\x1b[2J')
"""
    main, terminal = os.openpty()
    with os.fdopen(main, "rb", buffering=0) as screen:
        with os.fdopen(terminal, "w") as stdout:
            assert run(code, stdout) == [5]
        assert shown_on(screen) == b"ab\x1b[31mred\x1b[0m"
    file = io.StringIO()
    assert run(code, file) == [5]
    assert file.getvalue() == "a\x1b]52;c;YQ==\x07b\x1b[31mred\x1b[0m\x1b[2J"


def test_streams_may_be_missing(run):
    assert run(f"print('x'); s.sendall({result(None)!r})") == [None]


def test_its_own_error_is_raised(run):
    with pytest.raises(ValueError, match="^-np: no\nand more$"):
        run("sys.stderr.write('[0]<stderr>:a rank\\nrunjob: error: -np: no\\nand more\\n'); sys.exit(2)", stderr=io.StringIO())
    with pytest.raises(RunError, match="status 3 and without a word"):
        run("sys.exit(3)")


def test_a_process_that_keeps_its_output_open_holds_nobody_up(run):
    out = io.StringIO()
    code = f"""
if os.fork() == 0:
    s.close(); os.execvp('sleep', ['sleep', '5'])
print('over', flush=True); s.sendall({result(1)!r})
"""
    assert run(code, out) == [1]
    assert out.getvalue() == "over\n"


def test_the_function_can_be_read_and_nothing_else_of_ours_is_open(run):
    code = f"""
open_ones = set(os.listdir('/proc/self/fd')) - {{'0', '1', '2', str(s.fileno())}}
print(sorted(os.readlink('/proc/self/fd/' + each) for each in open_ones if os.path.exists('/proc/self/fd/' + each)))
s.sendall({result(1)!r})
"""
    out = io.StringIO()
    run(code, out)
    assert out.getvalue() == f"[{os.devnull!r}]\n"
