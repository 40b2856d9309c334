"""Random schedules of an elastic job with real processes on the hosts of a testbed: ranks are killed, hosts are lost and come back, and the job
is made larger and smaller, at random times. Networks are interrupted meanwhile, and processes stopped."""

import os
import random
import re
import signal
import tempfile
import time
import uuid

from disturbances import Disturbances, was_signalled
from remote_jobs import ROOT, RUNJOB, Running
from testbed import OutOfTime, eventually

RANK = ROOT / "build" / "release" / "bin" / "elastic_rank"
HOSTS = 4
MOST_LOSSES = 4  # in a short time: five failures in a row without a commit end a job


class Schedule:
    """One job and what happens to it. All that is random is drawn from the seed, except which process a number meets.

    is_disturbed  also interrupts networks and stops processes
    """

    def __init__(self, bed, seed, is_disturbed=False):
        self._bed = bed
        self._is_disturbed = is_disturbed
        self._random = random.Random(seed)
        self._events = []  # for a failure's message
        self._victims = []  # (host, process) that have been killed, or whose agent has
        self._job = None
        self._id = ""
        self._fewest = 1

    def run(self, seconds=0.0):
        """Three to eight events, some close to each other; or events for so many seconds. Returns the job's standard error."""
        stop = ROOT / "build" / f"stop.{uuid.uuid4()}"  # where all hosts see it
        try:
            return self._run(stop, seconds)
        finally:
            stop.unlink(missing_ok=True)

    def _run(self, stop, seconds):
        # What a job's only rank has committed is lost with it, and five losses in a row without a commit that is left end a job.
        self._fewest = 3 if seconds else 1
        most = self._random.randint(3, 7)
        ranks = self._random.randint(2, most)
        options = ["-H", "s1:2,s2:2,s3:2,s4:2", "-np", ranks, "--min-np", 1, "--max-np", most, "--rank-restarts", 100]
        options += ["--spares", self._random.randint(0, min(2, 8 - ranks)), "--blacklist-cooldown-range", 1, 2, "--grace-period", 1]
        pause = self._random.choice((0, 500, 3000))
        state_bytes = self._random.choice((4096, 3 << 20))  # the second is sent in a process set
        with tempfile.TemporaryFile("w+") as self._output, tempfile.TemporaryFile("w+") as self._errors:
            return self._run_job([*options, RANK, stop, pause, state_bytes], ranks, stop, seconds)

    def _run_job(self, command, ranks, stop, seconds):
        streams = {"stdout": self._output, "stderr": self._errors}  # no pipes, which nobody reads meanwhile
        disturbances = Disturbances(self._random, self._events.append)
        with Running(self._bed, *command, **streams) as self._job, disturbances:
            self._id = self._wait_for_start(ranks)
            kinds = self._kinds(disturbances)
            for _ in range(self._random.randint(3, 8) if not seconds else 0):
                self._pause((0, 0.01, 0.05, 0.2))
                kinds.pop(self._random.randrange(len(kinds)))()
            until = time.monotonic() + seconds
            while time.monotonic() < until:
                self._pause((0.5, 1, 4))
                eventually(self._has_begun, "the newest generation trains", limit=120)  # five without a commit would end the job
                self._random.choice(kinds)()
            disturbances.wait()
            # Members that are dead before there is the file cannot take part in the last step.
            eventually(lambda: not any(self._is_there(*each) for each in self._victims), "those that were killed are gone")
            stop.touch()
            self._check(self._job.process.wait(timeout=120))
            self._job.wait_until_gone(*self._bed.hosts, self._bed.head)
            return _text(self._errors)

    def _kinds(self, disturbances):
        """What may happen, the likely as often as it is likely."""
        kinds = [self._kill_rank] * MOST_LOSSES + [self._lose_host] * 2 + [self._resize] * 3 + [self._remove, self._add] * 2
        if not self._is_disturbed:
            return kinds

        def interrupt():
            disturbances.interrupt(self._random.choice([*self._bed.hosts, self._bed.head]))

        def isolate():
            disturbances.isolate(self._random.choice(self._bed.hosts[1:]))

        def stop():
            there = [(host, process) for host in self._bed.hosts for process in [*self._ranks(host), *self._job.named(host, "runjob-agent")]]
            if there:
                disturbances.stop(*self._random.choice(there))

        return [*kinds, *[interrupt] * 5, isolate, *[stop] * 3]

    def _pause(self, seconds):
        time.sleep(self._random.choice(seconds) * self._random.random())

    def _wait_for_start(self, ranks):
        try:
            eventually(lambda: _text(self._output).count("generation 0") == ranks, "all ranks have begun")
        except OutOfTime as error:
            raise OutOfTime(f"{error}\n{self._report()}") from error
        return next(process.environment["RUNJOB_JOB_ID"] for host in self._bed.hosts for process in self._ranks(host))

    def _has_begun(self):
        formed = re.findall(r"generation (\d+): \d+ rank", _text(self._errors))
        return f"generation {formed[-1] if formed else 0}: rank 0 of" in _text(self._output)

    def _ranks(self, host):
        return [process for process in self._job.on(host) if process.name == RANK.name]

    def _is_there(self, host, pid):
        return any(process.pid == pid for process in host.processes())

    def _kill_rank(self):
        there = [(host, process) for host in self._bed.hosts for process in self._ranks(host)]
        if not there:
            return
        host, process = self._random.choice(there)
        if was_signalled(process, signal.SIGKILL):
            self._events.append(f"kill {process.pid} on {host.name}")
            self._victims.append((host, process.pid))

    def _lose_host(self):
        host = self._random.choice(self._bed.hosts[1:])
        ranks = self._ranks(host)
        if any(was_signalled(agent, signal.SIGKILL) for agent in self._job.named(host, "runjob-agent")):
            self._events.append(f"lose {host.name}")
            self._victims += [(host, process.pid) for process in ranks]

    def _ask(self, *request):
        done = self._bed.head.run([RUNJOB, "resize", self._id, *map(str, request)])
        self._events.append(f"{' '.join(map(str, request))}: {done.stdout or done.stderr}".strip())
        assert done.returncode == 0 or "slots" in done.stderr or "is no host" in done.stderr, self._report()

    def _resize(self):
        self._ask("-np", self._random.randint(self._fewest, 8))

    def _remove(self):
        self._ask("--remove", self._random.choice(("s2", "s3", "s4")))

    def _add(self):
        self._ask("--add", f"{self._random.choice(('s2', 's3', 's4'))}:{self._random.randint(1, 3)}")

    def _report(self):
        return "\n".join([*self._events, _text(self._output), _text(self._errors)])

    def _check(self, status):
        """Each rank has compared its state with that of its number of steps."""
        assert status == 0, self._report()
        ends = re.findall(r"end: rank (\d+) of (\d+), process \d+: (\d+) steps", _text(self._output))
        assert len(ends) >= 1 and len({end[1:] for end in ends}) == 1, self._report()
        assert sorted(int(rank) for rank, _, _ in ends) == list(range(int(ends[0][1]))), self._report()
        assert int(ends[0][2]) > 0, self._report()


def _text(file):
    """All that a job has written so far. Its own place in the file stays."""
    return os.pread(file.fileno(), 1 << 30, 0).decode()
