"""Runs commands on the host that it is started on, one after another, and reports what each took.

Reads lines of JSON, each a command's words; writes for each one {"seconds", "cpu_seconds", "status", "errors"}. The CPU time
is that of the command and of all that it has started here, also of what outlived it.
"""

import ctypes
import json
import os
import resource
import signal
import subprocess
import sys
import tempfile
import time

PR_SET_CHILD_SUBREAPER = 36
LINGERING_SECONDS = 30


def cpu_seconds():
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def reap_the_rest():
    """Waits for what the command has left behind, so that its time is not counted as the next one's."""
    signal.alarm(LINGERING_SECONDS)
    try:
        while True:
            os.wait()
    except ChildProcessError:
        signal.alarm(0)


def measure(command):
    before = cpu_seconds()
    with tempfile.TemporaryFile() as errors:
        started = time.perf_counter()
        with subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=errors) as process:
            process.wait()
        seconds = time.perf_counter() - started
        reap_the_rest()
        errors.seek(0)
        text = errors.read().decode(errors="replace")
    return {"seconds": seconds, "cpu_seconds": cpu_seconds() - before, "status": process.returncode, "errors": text}


def main():
    ctypes.CDLL(None).prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
    for line in sys.stdin:
        print(json.dumps(measure(json.loads(line))), flush=True)


if __name__ == "__main__":
    main()
