"""Scripts that tests run: when one does not end, neither it nor what it has started goes on."""

from __future__ import annotations

import os
import signal
import subprocess
from typing import Any


def run(command: list[Any], limit_seconds: float, **environment: str) -> subprocess.CompletedProcess[str]:
    """`command` with its output and status, in the environment of the test and `environment`.

    subprocess.TimeoutExpired after `limit_seconds`; the whole session of the command is killed then.
    """
    with subprocess.Popen(
        command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, start_new_session=True,
        env={**os.environ, **environment},
    ) as script:  # fmt: skip
        try:
            output, errors = script.communicate(timeout=limit_seconds)
        except BaseException:
            os.killpg(script.pid, signal.SIGKILL)
            raise
        return subprocess.CompletedProcess(command, script.returncode, output, errors)
