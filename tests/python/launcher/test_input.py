"""Standard input goes to rank 0 and to no other."""

import os
import pty
import re
import subprocess
import sys

import pytest
from jobs import RUNJOB, by_rank, python, run

ECHO = "import os, sys; data = sys.stdin.read(); print(os.environ['RUNJOB_RANK'], len(data), data[:5])"


def test_rank_0_reads_and_the_others_see_the_end():
    done = run("-np", "3", *python(ECHO), input="hello")
    assert by_rank(done.stdout) == {0: ["0 5 hello"], 1: ["1 0 "], 2: ["2 0 "]}


def test_much_input():
    done = run("-np", "2", *python(ECHO), input="z" * 5_000_000)
    assert by_rank(done.stdout)[0] == ["0 5000000 zzzzz"]


def test_input_from_a_file(tmp_path):
    path = tmp_path / "input"
    path.write_text("f" * 1_000_000)
    with open(path) as file:
        done = run("-np", "1", *python(ECHO), stdin=file)
    assert by_rank(done.stdout)[0] == ["0 1000000 fffff"]


LOST = re.compile(
    r"runjob: warning: rank 0 has read nothing of its standard input: the (\d+) bytes that runjob took for it are lost; if they were "
    r"for others, as in a loop \(while read \.\.\.\), start runjob with --stdin none or with </dev/null\n"
)


@pytest.mark.parametrize("size", [5, 5_000_000])
def test_rank_that_does_not_read_is_named_with_the_remedy(size):
    """The small input has ended by then. The large one does not fit into the pipe: the rank waits until it is full."""
    full = "import fcntl, struct, termios\nwhile struct.unpack('i', fcntl.ioctl(0, termios.FIONREAD, b'xxxx'))[0] < 5: pass"
    done = run("-np", "2", *python(f"import os\nif os.environ['RANK'] == '0':\n    exec({full!r})"), input="z" * size)
    assert done.returncode == 0
    (taken,) = LOST.fullmatch(done.stderr).groups()
    assert 5 <= int(taken) <= size


@pytest.mark.parametrize("code", ["import sys; sys.stdin.readline()", "import os; os.read(0, 1)", "import subprocess; subprocess.run(['cat'])"])
def test_rank_that_reads_a_part_has_had_its_input(code):
    done = run("-np", "1", *python(code), input="line\n" * 100_000)
    assert (done.returncode, done.stderr) == (0, "")


def test_no_rank_has_the_input_with_stdin_none():
    done = run("-np", "2", "--stdin", "none", *python(ECHO), input="hello")
    assert by_rank(done.stdout) == {0: ["0 0 "], 1: ["1 0 "]}
    assert done.stderr == ""


def test_a_loop_that_reads_a_list_goes_on_with_stdin_none(tmp_path):
    """As with ssh and mpirun, a job in a loop takes the rest of the list, unless it is told not to."""
    (tmp_path / "list").write_text("one\ntwo\nthree\n")
    reads = "import fcntl, struct, termios\nwhile not struct.unpack('i', fcntl.ioctl(0, termios.FIONREAD, b'xxxx'))[0]: pass"

    def turns(options, code):
        loop = f'while read -r line; do echo "$line"; {RUNJOB} -np 1 {options} {sys.executable} -c "$CODE"; done < list'
        environment = {**os.environ, "CODE": code}
        return subprocess.run(["bash", "-c", loop], cwd=tmp_path, env=environment, capture_output=True, text=True, timeout=120, check=True)

    taken = turns("", reads)
    assert taken.stdout == "one\n"
    assert LOST.fullmatch(taken.stderr).group(1) == str(len("two\nthree\n"))
    for options in ("--stdin none", "--stdin=none", "-stdin none"):
        kept = turns(options, "")
        assert (kept.stdout, kept.stderr) == ("one\ntwo\nthree\n", "")


def test_breakpoint_works_in_rank_0(tmp_path):
    """The debugger's prompt has no end of line, and is shown all the same; the other rank does not read."""
    script = tmp_path / "debugged.py"
    script.write_text("import os\nanswer = 41\nif os.environ['RANK'] == '0':\n    breakpoint()\nprint('answer', answer)\n")
    done = run("-np", "2", sys.executable, script, input="answer += 1\ncontinue\n")
    assert done.returncode == 0, done.stderr
    assert by_rank(done.stdout)[0][-1].endswith("answer 42")
    assert by_rank(done.stdout)[1] == ["answer 41"]


def test_keyboard_interrupt_on_a_terminal():
    """Ctrl-C typed on the controlling terminal: ranks are in their own sessions, so it comes through us."""
    pid, master = pty.fork()
    if pid == 0:
        os.environ["NO_COLOR"] = "1"
        os.execv(RUNJOB, [RUNJOB, "-np", "1", sys.executable, "-c",
                          "import time\ntry:\n    print('ready', flush=True)\n    time.sleep(60)\n"
                          "except KeyboardInterrupt:\n    print('stopped', flush=True)"])
    text = b""
    while b"ready" not in text:
        text += os.read(master, 1000)
    os.write(master, b"\x03")
    try:
        while chunk := os.read(master, 1000):
            text += chunk
    except OSError:
        pass   # the terminal's other side is closed
    _, status = os.waitpid(pid, 0)
    os.close(master)
    assert os.waitstatus_to_exitcode(status) == 130
    assert b"[0]<stdout>:stopped" in text


def test_background_job_is_not_stopped_by_its_terminal():
    """In the background of a terminal we do not read from it, which would stop us (SIGTTIN)."""
    script = f"import subprocess, os, signal; signal.signal(signal.SIGTTIN, signal.SIG_DFL)\n" \
             f"p = subprocess.Popen([{RUNJOB!r}, '-np', '1', 'sh', '-c', 'sleep 0.2; echo done'], process_group=0)\n" \
             f"_, s = os.waitpid(p.pid, os.WUNTRACED); print('stopped' if os.WIFSTOPPED(s) else 'ended', flush=True)"
    pid, master = pty.fork()
    if pid == 0:
        os.environ["NO_COLOR"] = "1"
        os.execv(sys.executable, [sys.executable, "-c", script])
    text = b""
    os.write(master, b"typed ahead\n")
    while b"ended" not in text and b"stopped" not in text:
        text += os.read(master, 1000)
    os.close(master)
    os.waitpid(pid, 0)
    assert b"ended" in text and b"[0]<stdout>:done" in text
