"""Starts real jobs in a SLURM cluster of the testbed, and looks at what they leave on its nodes."""

from __future__ import annotations

import contextlib
import re
import uuid

from running_job import ROOT, RUNJOB, RunningJob
from testbed import HOME, eventually

PYTHON = "/usr/bin/python3"
#: The key of a job.
KEY = re.compile(r"(?<![0-9a-f])[0-9a-f]{64}(?![0-9a-f])")


def python(code):
    """A rank's command line that runs `code`."""
    return [PYTHON, "-u", "-c", code]


def wait_until_idle(slurm):
    """So that the next job gets the first nodes: SLURM cleans up for a moment after the last one."""
    eventually(lambda: slurm.states() == {"idle"}, "every node is idle")


def salloc(slurm, options, *arguments, **more):
    """Runs a job from the head, inside of an allocation."""
    wait_until_idle(slurm)
    return slurm.run(["salloc", "--quiet", *options.split(), RUNJOB, *map(str, arguments)], **more)


def submit(slurm, options, script):
    """The id of a batch job. Its output is then output_of() it."""
    wait_until_idle(slurm)
    slurm.head.write(f"{HOME}/{(name := f'job-{uuid.uuid4().hex}.sh')}", f"#!/bin/bash\n{script}\n")
    arguments = ["sbatch", "--parsable", "--output=%j.out", *options.split(), name]
    return slurm.run(arguments, check=True).stdout.strip()


def output_of(slurm, job):
    path = slurm.head.path(f"{HOME}/{job}.out")
    return path.read_text() if path.exists() else ""


def wait_for(slurm, job):
    eventually(lambda: job not in slurm.jobs(), f"job {job} has ended: {output_of(slurm, job)}")


def state_of(slurm, job):
    """What SLURM keeps of it: {"JobState": "FAILED", "ExitCode": "3:0", ...}"""
    text = slurm.run(["scontrol", "show", "job", job], check=True).stdout
    return dict(word.split("=", 1) for word in text.split() if "=" in word)


def ours_on(host):
    """Our processes there, of any job."""
    return [process for process in host.processes() if process.name.startswith("runjob") or process.has_mark("JOB_TEST_MARK=1")]


def wait_until_gone(slurm):
    hosts = [*slurm.nodes, slurm.head]
    eventually(lambda: not any(ours_on(host) for host in hosts), "nothing of the job is left anywhere")


class Running(RunningJob):
    """A program at the head whose ranks carry a mark, also where SLURM starts them."""

    def __init__(self, slurm, *command, **options):
        wait_until_idle(slurm)
        self.slurm = slurm
        options.setdefault("stdout", -1)
        options.setdefault("stderr", -1)
        variables = {**options.pop("variables", {}), "JOB_TEST_MARK": "1"}
        self.process = slurm.head.popen([str(word) for word in command], variables=variables, text=True, **options)

    def kill_the_rest(self):
        for job in self.slurm.jobs():
            self.slurm.run(["scancel", "--signal=KILL", "--full", job])
            self.slurm.run(["scancel", job])
        for host in [*self.slurm.nodes, self.slurm.head]:
            for process in ours_on(host):
                with contextlib.suppress(ProcessLookupError):
                    process.kill()
        eventually(lambda: not self.slurm.jobs(), "the queue is empty")

    def launcher(self):
        """The process of runjob itself."""
        (found,) = [process for process in self.slurm.head.processes() if process.name == "runjob"]
        return found
