"""Standard input goes to rank 0 and to no other."""

import os
import pty
import sys

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


def test_rank_that_does_not_read():
    done = run("-np", "1", "true", input="z" * 5_000_000)
    assert done.returncode == 0


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
