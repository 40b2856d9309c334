"""What runjob draws on a terminal, seen through a pseudo-terminal: rows that are redrawn, and nothing of them in the end."""

import os
import pty
import re
import select
import signal
import subprocess

import pytest
from jobs import RUNJOB, TIMEOUT, python, run
from testbed import OutOfTime, with_enough_time

from test_rendezvous import CLIENT


class Terminal:
    """A job whose standard output and error are a terminal."""

    def __init__(self, *arguments, **environment):
        self.master, slave = pty.openpty()
        names = {"TERM": "xterm", "NO_COLOR": "1", **environment}
        self.process = subprocess.Popen(
            [RUNJOB, *arguments], stdin=subprocess.DEVNULL, stdout=slave, stderr=slave, env={**os.environ, **names}
        )
        os.close(slave)
        self.text = ""

    def __enter__(self):
        return self

    def __exit__(self, *_):
        if self.process.poll() is None:
            self.process.kill()
        self.process.wait()
        os.close(self.master)

    def read_until(self, text):
        while text not in self.text:
            if not select.select([self.master], [], [], TIMEOUT)[0]:
                raise OutOfTime(f"{text!r} has not appeared within {TIMEOUT} s: {self.text!r}")
            self.text += os.read(self.master, 65536).decode()

    def finish(self):
        """All that was written."""
        try:
            while chunk := os.read(self.master, 65536):
                self.text += chunk.decode()
        except OSError:
            pass  # the other side is closed
        assert self.process.wait(TIMEOUT) is not None
        return self.text


def shown(text):
    """The lines that remain on a screen. Knows what runjob draws with; anything else is a failure."""
    lines, row, column = [""], 0, 0
    for token in re.findall(r"\x1b\[[?0-9;]*[A-Za-z]|.", text, re.DOTALL):
        if token == "\n":
            row += 1
            lines += [""] * (row + 1 - len(lines))
        elif token == "\r":
            column = 0
        elif token.startswith("\x1b"):
            if token.endswith("A"):
                row -= int(token[2:-1])
                assert row >= 0
            elif token.endswith("J"):
                lines[row:] = [lines[row][:column]]
            else:
                assert token in ("\x1b[?7l", "\x1b[?7h") or token.endswith("m"), token
        else:
            lines[row] = lines[row].ljust(column)[:column] + token + lines[row][column + 1 :]
            column += 1
    return [line for line in lines if line]


BAR = """
import os, sys
for i in range(0, 101, 20):
    sys.stderr.write(f'\\rbar {i}%' if sys.argv[1] == 'before' else f'bar {i}%\\r')
    sys.stderr.flush()
    print('line', i, flush=True)
sys.stderr.write('\\n')
"""


@pytest.mark.parametrize("return_comes", ["before", "after"])
def test_progress_bars_leave_their_last_state(return_comes):
    with Terminal("-np", "2", *python(BAR), return_comes) as terminal:
        lines = shown(terminal.finish())
        assert terminal.process.returncode == 0
    for rank in range(2):
        assert [line for line in lines if line.startswith(f"[{rank}]<stdout>:")] == [
            f"[{rank}]<stdout>:line {i}" for i in range(0, 101, 20)
        ]
        assert [line for line in lines if line.startswith(f"[{rank}]<stderr>:")] == [f"[{rank}]<stderr>:bar 100%"]


def test_a_bar_that_was_not_ended_stays_as_a_line():
    with Terminal("-np", "1", "printf", "50%%\\r") as terminal:
        assert shown(terminal.finish()) == ["[0]<stdout>:50%"]


def test_colours_by_rank_unless_no_color():
    with Terminal("-np", "2", "echo", "x", NO_COLOR="") as terminal:
        text = terminal.finish()
        assert sorted(text.split("\r\n")[:2]) == ["\x1b[33m[1]<stdout>:\x1b[0mx", "\x1b[36m[0]<stdout>:\x1b[0mx"]
    with Terminal("-np", "1", "echo", "x", NO_COLOR="1") as terminal:
        assert terminal.finish() == "[0]<stdout>:x\r\n"


def test_a_dumb_terminal_gets_lines_as_a_file_but_no_sequences():
    with Terminal("-np", "1", "printf", "50%%\\r\\033[A\\n", TERM="dumb", NO_COLOR="") as terminal:
        assert terminal.finish() == "[0]<stdout>:50%\r[0]<stdout>:\r\n"


def test_a_single_rank_without_tags_draws_as_it_likes():
    with Terminal("-np", "2", "--tag-output=none", "--output-ranks", "1", "printf", "\\033[2J\\033[5;5Hx\\r\\n", NO_COLOR="") as terminal:
        assert terminal.finish() == "\x1b[2J\x1b[5;5Hx\r\r\n"


# Rank 1 calls init() only when the test says so.
LATE = CLIENT + """
signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGUSR1])
if rank == 1:
    print('waits', flush=True)
    signal.sigwait([signal.SIGUSR1])
join()
ask('POST', '/v1/barrier/all')
print('joined', flush=True)
"""


def test_a_slow_start_says_who_is_waited_for_and_takes_it_back():
    with Terminal("-np", "2", "-x", "OMP_NUM_THREADS=1", *python("import signal\n" + LATE)) as terminal:
        terminal.read_until("runjob: init: 1 of 2 ranks, waiting for rank 1 on localhost (")
        terminal.process.send_signal(signal.SIGUSR1)
        lines = shown(terminal.finish())
        assert terminal.process.returncode == 0
    assert sorted(lines) == ["[0]<stdout>:joined", "[1]<stdout>:joined", "[1]<stdout>:waits"]


def test_without_a_terminal_only_verbose_says_so():
    code = "import signal\n" + LATE
    quiet = run("-np", "2", "--timeout", "2", "-x", "OMP_NUM_THREADS=1", *python(code))
    assert (quiet.returncode, quiet.stderr) == (124, "runjob: error: the job did not end within the 2 s of --timeout; stopped 2 ranks; --stack-traces-on-timeout shows where the ranks are\n")
    waiting = "runjob: init: 1 of 2 ranks, waiting for rank 1 on localhost ("

    def attempt(limit):
        errors = run("-np", "2", "--timeout", str(limit), "--verbose", "-x", "OMP_NUM_THREADS=1", *python(code)).stderr
        return errors if waiting in errors else None

    assert with_enough_time(attempt, "the launcher names the rank that it waits for", (2, 10, 40)).count(waiting) == 1


def test_messages_stand_above_the_rows(monkeypatch):
    """The note about threads comes while a bar is shown."""
    monkeypatch.delenv("OMP_NUM_THREADS", raising=False)
    code = CLIENT + "sys.stderr.write('bar\\r'); sys.stderr.flush(); join(); print('joined', flush=True)"
    with Terminal("-np", "2", "--verbose", *python(code)) as terminal:
        lines = shown(terminal.finish())
    assert sorted(lines)[:4] == ["[0]<stderr>:bar", "[0]<stdout>:joined", "[1]<stderr>:bar", "[1]<stdout>:joined"]
    assert sum(line.startswith("runjob: OMP_NUM_THREADS was not set and is ") for line in lines) == 1
