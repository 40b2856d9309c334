"""runjob-agent as srun starts it: what it makes of its standard input, and of who answers where it is sent. Needs no SLURM."""

import contextlib
import secrets
import socket
import subprocess
import threading
import time

import pytest
from slurm_jobs import RUNJOB

AGENT = RUNJOB.rpartition("/")[0] + "/runjob-agent"


def call(port, *addresses):
    return f"runjob-call 1 {port} {secrets.token_hex(32)} {' '.join(addresses)}\n"


def error_of(text):
    """What an agent says that is called so, and ends with."""
    done = subprocess.run([AGENT, "--called"], input=text, capture_output=True, text=True, timeout=60, env={}, check=False)
    assert done.returncode == 125 and done.stdout == ""
    assert done.stderr.startswith("runjob: error: agent: "), done.stderr
    return done.stderr[len("runjob: error: agent: ") : -1]


@contextlib.contextmanager
def listener(answer=None, delay=0.0):
    """The port of one that accepts, and sends `answer` to each connection `delay` seconds after it has heard something; None:
    never a word."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        accepted = []

        def serve():
            with contextlib.suppress(OSError):  # closed: the end
                while True:
                    connection, _ = server.accept()
                    accepted.append(connection)
                    if answer is not None:
                        connection.recv(1000)
                        time.sleep(delay)
                        connection.sendall(answer)
                        connection.close()

        thread = threading.Thread(target=serve)
        thread.start()
        try:
            yield server.getsockname()[1]
        finally:
            server.shutdown(socket.SHUT_RDWR)
            thread.join()
            for connection in accepted:
                connection.close()


@pytest.mark.parametrize("text", ["", "hello\n", "runjob-call 2 1 2 3\n"])
def test_what_is_no_call_is_refused(text):
    assert error_of(text) == "standard input holds no call of this version of runjob; runjob-agent is started by runjob, not by hand"


def test_every_address_that_fails_is_named():
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]  # which nobody has, from here on
    assert error_of(call(port, "127.0.0.1", "::1", "s1")) == (
        f"cannot reach runjob: 127.0.0.1 port {port}: Connection refused; ::1 port {port}: Connection refused; "
        f"s1 port {port}: not a numeric address; does a firewall keep the nodes from it?"
    )


@pytest.mark.parametrize(
    "answer, why",
    [
        (b"\0\x30" + b"x" * 48, "who answers there does not hold the job's key"),
        (b"\0\x31" + b"x" * 48, "who answers there does not hold the job's key"),
        (b"SSH-2.0", "it hung up"),
        (b"", "it hung up"),
        (None, "no answer in time"),
    ],
)
def test_who_does_not_hold_the_key_is_not_the_launcher(answer, why):
    with listener(answer) as port:
        error = error_of(call(port, "127.0.0.1"))
        assert error == f"cannot reach runjob: 127.0.0.1 port {port}: {why}; does a firewall keep the nodes from it?"


def test_an_answer_that_is_late_after_an_interruption_of_the_network_counts():
    with listener(b"\0\x30" + b"x" * 48, delay=4) as port:
        assert "who answers there does not hold the job's key" in error_of(call(port, "127.0.0.1"))
