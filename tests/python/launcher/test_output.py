"""What the ranks write arrives line by line, unchanged, complete, and reaches its files."""

import datetime
import hashlib
import os
import pty
import re
import resource
import select
import signal
import subprocess
import tempfile

import pytest
from jobs import RUNJOB, TIMEOUT, by_rank, command, python, run


def test_prefix_of_both_streams():
    done = run("-np", "2", "sh", "-c", "echo out$RUNJOB_RANK; echo err$RUNJOB_RANK >&2")
    assert sorted(done.stdout.splitlines()) == ["[0]<stdout>:out0", "[1]<stdout>:out1"]
    assert sorted(done.stderr.splitlines()) == ["[0]<stderr>:err0", "[1]<stderr>:err1"]


def test_last_line_without_newline():
    done = run("-np", "1", "printf", "one\\ntwo")
    assert done.stdout == "[0]<stdout>:one\n[0]<stdout>:two"


def test_timestamp_before_the_prefix():
    done = run("-np", "1", "--prefix-output-with-timestamp", "echo", "x")
    assert re.fullmatch(r"[A-Z][a-z]{2} [A-Z][a-z]{2} [ \d]\d \d\d:\d\d:\d\d \d{4}\[0\]<stdout>:x\n", done.stdout)


@pytest.mark.parametrize(
    "option, expected",
    [
        ([], r"\[0\]<stdout>:x"),
        (["-tag-output"], r"\[0\]<stdout>:x"),
        (["--tag-output=host,rank"], r"\[0 localhost\]:x"),
        (["--tag-output=none"], "x"),
        (["--tag-output=time,rank,stream"], r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{6}[+-]\d\d:\d\d \[0\]<stdout>:x"),
        (["--tag-output=time"], r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{6}[+-]\d\d:\d\d x"),
        (["--tag-output=none", "-prefix-timestamp"], r"\w{3} \w{3} [ \d]\d \d\d:\d\d:\d\d \d{4}:x"),
    ],
)
def test_tags(option, expected):
    assert re.fullmatch(expected + "\n", run("-np", "1", *option, "echo", "x").stdout)


def test_times_are_those_of_the_source():
    """What a slow reader sees late was written, and is dated, earlier."""
    code = "import datetime\nprint(datetime.datetime.now().astimezone().isoformat(timespec='microseconds'), flush=True)"
    with subprocess.Popen(command("-np", "1", "--tag-output=time", *python(code)), stdout=subprocess.PIPE, text=True,
                          stdin=subprocess.DEVNULL) as process:
        assert process.wait(TIMEOUT) == 0
        before = datetime.datetime.now().astimezone()
        dated, written = map(datetime.datetime.fromisoformat, process.stdout.read().split())
    assert written <= dated <= before


def test_output_ranks(tmp_path):
    done = run("-np", "4", "--continue-on-failure", "--output-ranks", "0,2-3", "--output-filename", str(tmp_path), "sh", "-c",
               "echo out; [ $RANK != 1 ] || { echo why >&2; exit 3; }")
    assert done.returncode == 3
    assert by_rank(done.stdout) == {rank: ["out"] for rank in (0, 2, 3)}
    assert "[1]<stderr>:" not in done.stderr
    assert done.stderr.endswith("the last lines of its stderr:\n    why\n")
    assert (tmp_path / "rank.1" / "stdout").read_text() == "out\n"


def test_progress_bars_in_a_file_share_a_line_until_another_rank_writes():
    code = """
import os, sys
rank = os.environ['RANK']
def wait(name):
    while not os.path.exists(sys.argv[1] + name): pass
def done(name): open(sys.argv[1] + name, 'w').close()
if rank == '0':
    sys.stdout.write('10%\\r20%\\r'); sys.stdout.flush(); done('/1'); wait('/2'); sys.stdout.write('30%\\r\\n')
else:
    wait('/1'); print('line', flush=True); done('/2')
"""
    with tempfile.TemporaryDirectory() as folder:
        done = subprocess.run(command("-np", "2", *python(code), folder), stdout=subprocess.PIPE, timeout=TIMEOUT, stdin=subprocess.DEVNULL)
    assert done.returncode == 0
    lines = done.stdout.split(b"\n")
    # The two ranks' pipes are read one after the other, so rank 1's line may come last.
    bar = b"[0]<stdout>:10%\r[0]<stdout>:20%\r"
    assert lines in ([bar, b"[1]<stdout>:line", b"[0]<stdout>:30%\r", b""], [bar + b"[0]<stdout>:30%\r", b"[1]<stdout>:line", b""],
                     [b"[1]<stdout>:line", bar + b"[0]<stdout>:30%\r", b""])


def test_both_streams_in_one_pipe_never_mix():
    code = "import sys\nfor i in range(500):\n    for s in sys.stdout, sys.stderr:\n        s.write('half'); s.flush(); s.write(' line\\n'); s.flush()"
    done = subprocess.run(command("-np", "2", *python(code)), stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                          timeout=TIMEOUT, stdin=subprocess.DEVNULL)
    assert by_rank(done.stdout) == by_rank(done.stdout, "stderr") == {rank: ["half line"] * 500 for rank in range(2)}


def test_lines_of_many_ranks_never_mix():
    code = """
import os, sys
rank, line = int(os.environ['RUNJOB_RANK']), 'x' * 200
for i in range(2000):
    for piece in (f'{rank}:{i}:', line[:100], line[100:], '\\n'):
        sys.stdout.write(piece)
        if i % 7 == 0: sys.stdout.flush()
"""
    done = run("-np", "4", *python(code))
    lines = by_rank(done.stdout)
    for rank in range(4):
        assert lines[rank] == [f"{rank}:{i}:" + "x" * 200 for i in range(2000)]


def test_every_byte_arrives():
    """Bytes that are no text, in several ranks at once, compared by hash."""
    code = """
import os, random, sys
data = random.Random(int(os.environ['RUNJOB_RANK'])).randbytes(3_000_000).replace(b'\\r', b'r')
sys.stdout.buffer.write(data)
"""
    done = subprocess.run(command("-np", "2", *python(code)), stdout=subprocess.PIPE, stdin=subprocess.DEVNULL, timeout=TIMEOUT)
    import random

    expected = {rank: random.Random(rank).randbytes(3_000_000).replace(b"\r", b"r") for rank in range(2)}
    received = {0: bytearray(), 1: bytearray()}
    for line in done.stdout.split(b"\n"):
        match = re.match(rb"\[([01])\]<stdout>:", line)
        if match:
            received[int(match[1])] += line[match.end():] + b"\n"
    for rank in range(2):
        # A line longer than what is held, or unfinished for long, may come in parts; none of random data is.
        assert hashlib.sha256(received[rank][: len(expected[rank])]).digest() == hashlib.sha256(expected[rank]).digest()


def test_slow_reader_loses_nothing():
    """The reader takes 64 KiB now and then: ranks are slowed down, memory stays bounded, all lines arrive."""
    # print() would write a line in pieces, between which a busy machine may show what there is.
    code = "import sys\nfor i in range(200_000): sys.stdout.write(f'{i} ' + 'y' * 50 + chr(10))"
    process = subprocess.Popen(command("-np", "2", *python(code)), stdout=subprocess.PIPE, stdin=subprocess.DEVNULL)
    text = bytearray()
    while True:
        chunk = os.read(process.stdout.fileno(), 65536)
        if not chunk:
            break
        text += chunk
        if len(text) == len(chunk):   # after the first chunk the ranks must be able to run into the full pipe
            select.select([], [], [], 0.5)
    process.stdout.close()
    assert process.wait(TIMEOUT) == 0
    lines = by_rank(text.decode())
    for rank in range(2):
        assert lines[rank] == [f"{i} {'y' * 50}" for i in range(200_000)]


@pytest.mark.parametrize("ranks,names", [(1, ["rank.0"]), (11, [f"rank.{i:02}" for i in range(11)])])
def test_output_files(tmp_path, ranks, names):
    directory = tmp_path / "new" / "logs"
    done = run("-np", str(ranks), "--output-filename", str(directory), "sh", "-c", "printf 'a\\rb\\nlast'; echo e$RANK >&2")
    assert done.returncode == 0
    assert sorted(path.name for path in directory.iterdir()) == names
    for rank, name in enumerate(names):
        assert (directory / name / "stdout").read_bytes() == b"a\rb\nlast"
        assert (directory / name / "stderr").read_text() == f"e{rank}\n"
    assert "[0]<stdout>:b\n" in done.stdout


def test_the_output_files_of_an_earlier_job_are_kept(tmp_path):
    for text in ("first", "second"):
        done = run("-np", "2" if text == "first" else "1", "--output-filename", str(tmp_path), "sh", "-c", f"echo {text}; echo errors >&2")
        assert done.returncode == 0
    assert sorted(path.name for path in tmp_path.iterdir()) == ["previous", "rank.0"]
    assert (tmp_path / "rank.0" / "stdout").read_text() == "second\n"
    (earlier,) = (tmp_path / "previous").iterdir()
    assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d-\d\d-\d\dZ", earlier.name)
    kept = {str(path.relative_to(earlier)): path.read_text() for path in earlier.rglob("std*")}
    assert kept == {f"rank.{rank}/{name}": text for rank in (0, 1) for name, text in (("stdout", "first\n"), ("stderr", "errors\n"))}


def test_output_directory_that_cannot_be_made(tmp_path):
    (tmp_path / "file").write_text("")
    done = run("-np", "1", "--output-filename", str(tmp_path / "file" / "x"), "true")
    assert done.returncode == 2
    assert done.stderr.count("\n") == 1
    assert "runjob: error: --output-filename: " in done.stderr and "is not a directory" in done.stderr


@pytest.mark.parametrize("options", [[], ["--min-np", "1"]])
def test_an_output_file_that_may_not_grow_is_an_error_and_the_job_goes_on(tmp_path, options):
    """With `ulimit -f`, whose signal ends the ranks, as without runjob, but not runjob."""
    limit = {"preexec_fn": lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (1000, 1000))}
    done = run("-np", "1", *options, "--tag-output=none", "--output-filename", tmp_path, *python("print('x' * 5000)"), **limit)
    assert (done.returncode, done.stdout) == (0, "x" * 5000 + "\n")
    file = tmp_path / "rank.0" / "stdout"
    assert done.stderr == f"runjob: error: cannot write {file}: File too large; the rest of this stream is not in the file\n"
    assert file.read_text() == "x" * 1000
    killed = run("-np", "1", "sh", "-c", "head -c 5000 /dev/zero > file; exit $?", cwd=tmp_path, **limit)
    assert killed.returncode == 128 + signal.SIGXFSZ


def test_prompt_is_shown_before_its_line_ends():
    process = subprocess.Popen(command("-np", "1", *python("print('got', input('name? '))")), stdin=subprocess.PIPE,
                               stdout=subprocess.PIPE)
    shown = b""
    while b"name? " not in shown:
        shown += os.read(process.stdout.fileno(), 100)
    output, _ = process.communicate(b"Ada\n", timeout=TIMEOUT)
    assert shown + output == b"[0]<stdout>:name? got Ada\n"


def test_terminal_gets_the_output_and_stays_blocking():
    """On a terminal all is written, and the terminal's flags, which our shell shares, are left alone."""
    import fcntl

    master, slave = pty.openpty()
    process = subprocess.Popen([RUNJOB, "-np", "2", "sh", "-c", "seq 500"], stdin=subprocess.DEVNULL, stdout=slave, stderr=slave,
                               env={**os.environ, "NO_COLOR": "1"})
    text = b""
    while text.count(b"\n") < 1000:
        text += os.read(master, 65536)
    assert process.wait(TIMEOUT) == 0
    assert not fcntl.fcntl(slave, fcntl.F_GETFL) & os.O_NONBLOCK
    os.close(slave)
    os.close(master)
    lines = by_rank(text.decode().replace("\r\n", "\n"))
    assert lines[0] == lines[1] == [str(i) for i in range(1, 501)]
