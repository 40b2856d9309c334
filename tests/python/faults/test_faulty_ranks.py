"""What becomes of a job on this host when a rank crashes or stops in a collective, or lacks something."""

import contextlib
import os
import re
import resource
import signal
import subprocess
import sys
import time

import jobs
import loops
import pytest

ENVIRONMENT = {**os.environ, **loops.VARIABLES}


def ranks_of(job):
    """By rank: the pid of its process."""
    found = {}
    for pid in job.alive():
        with open(f"/proc/{pid}/environ", "rb") as file:
            words = dict(word.split(b"=", 1) for word in file.read().split(b"\0") if b"=" in word)
        if b"RUNJOB_RANK" in words:
            found[int(words[b"RUNJOB_RANK"])] = pid
    return found


def running(*options, code=loops.FOREVER, **more):
    return jobs.Marked("-np", "2", "--grace-period", "1", *options, *loops.command(code), env=loops.VARIABLES, **more)


def test_a_crash_in_a_collective_is_named_with_the_stack():
    with running(code="import faulthandler; faulthandler.enable()\n" + loops.FOREVER) as job:
        job.wait_for_lines(2)
        os.kill(ranks_of(job)[1], signal.SIGSEGV)
        status, _, errors = job.finish()
        assert status == 139
        assert "runjob: error: rank 1 on localhost (pid " in errors and "was killed by signal 11 (SIGSEGV)" in errors
        assert "Fatal Python error: Segmentation fault" in errors
        assert job.alive() == []


def test_a_rank_that_is_stopped_in_a_collective_is_named_when_time_is_up():
    """In the middle of a transfer it is the backend's time, between two of them the stall check's."""
    limits = ["--gloo-timeout-seconds", "3", "--stall-check-warning-time-seconds", "1", "--stall-check-shutdown-time-seconds", "3"]
    with running(*limits) as job:
        job.wait_for_lines(2)
        os.kill(ranks_of(job)[1], signal.SIGSTOP)
        status, _, errors = job.finish()
        assert status == 1, errors
        assert re.search(r"rank 1\b", errors)
        job.wait_until_gone()


def test_ranks_that_stood_still_for_longer_than_they_may_wait_go_on(tmp_path):
    """As after Ctrl-Z and fg: rank 0 waits for rank 1, stands still, and goes on a little before it."""
    end = tmp_path / "end"
    code = loops.BEGINNING + """
values = numpy.ones(1 << 22, numpy.float32)
step = 0
wanted = [False]
while not wanted[0]:
    hvd.allreduce(values, name="large")
    step += 1
    if step % 20 == 0:
        wanted = hvd.allreduce(numpy.array([float(os.path.exists(sys.argv[1]))]), name="end", op=hvd.Sum)
    if step == 20:
        print("ready", flush=True)
hvd.shutdown()
"""
    with jobs.Marked("-np", "2", "--gloo-timeout-seconds", "2", *loops.command(code, end), env=loops.VARIABLES) as job:
        job.wait_for_lines(2)
        ranks = ranks_of(job)
        for number, pause in [(signal.SIGSTOP, 0.1), (signal.SIGCONT, 0.3)] * 2:
            for rank in (1, 0) if number == signal.SIGSTOP else (0, 1):
                with contextlib.suppress(ProcessLookupError):  # the status shows it
                    os.kill(ranks[rank], number)
                time.sleep(pause)
            if number == signal.SIGSTOP:
                time.sleep(2.5)
        end.touch()
        status, _, errors = job.finish()
        assert status == 0, errors


def test_a_rank_that_closes_all_its_descriptors_ends_well():
    code = "import os, time; os.closerange(0, 1000); time.sleep(0.5)"
    with jobs.Marked("-np", "2", *jobs.python(code)) as job:
        assert job.finish() == (0, "", "")
        assert job.alive() == []


def test_sighup_gives_129():
    code = "import time; print('ready', flush=True); time.sleep(600)"
    with running(code=code, preexec_fn=lambda: signal.signal(signal.SIGHUP, signal.SIG_DFL)) as job:  # whatever this one's nohup does
        job.wait_for_lines(2)
        job.process.send_signal(signal.SIGHUP)
        assert job.finish()[0] == 129
        assert job.alive() == []


@pytest.mark.parametrize("limit, size", [(resource.RLIMIT_FSIZE, 0), (resource.RLIMIT_AS, 1 << 30)])
def test_a_job_runs_without_large_files_or_much_memory(limit, size):
    """Without room for a segment the ranks use TCP, and say so."""
    code = loops.BEGINNING + "print(hvd.allreduce(numpy.ones(100000), op=hvd.Sum)[7], flush=True)"
    done = jobs.run("-np", "2", *loops.command(code), env=ENVIRONMENT, preexec_fn=lambda: resource.setrlimit(limit, (size, size)))
    assert done.returncode == 0, done.stderr
    assert done.stdout.count(":2.0\n") == 2
    if limit == resource.RLIMIT_FSIZE:
        assert "ranks use TCP although they are on one host" in done.stderr


@pytest.mark.parametrize("option, message", [
    ("--status-file", "cannot write the status file {path}: No space left on device"),
    ("--output-filename", "cannot write {path}/rank.0/stdout: No space left on device; the rest of this stream is not in the file"),
])  # fmt: skip
def test_a_full_disk_of_a_file_is_told_and_the_job_goes_on(tmp_path, option, message):
    if os.geteuid() != 0:
        pytest.skip("mounting a small file system needs root")
    subprocess.run(["mount", "-t", "tmpfs", "-o", "size=64k", "none", tmp_path], check=True)
    try:
        (tmp_path / "rest").write_bytes(b"x" * 40_000 if option == "--output-filename" else b"x" * 60_000)
        if option == "--status-file":
            with open(tmp_path / "rest", "ab", buffering=0) as file, contextlib.suppress(OSError):
                while file.write(b"x" * 512):
                    pass
        path = tmp_path / "out"
        code = "import sys; sys.stdout.write('x' * 60000 + chr(10)); sys.exit(3)"
        done = jobs.run("-np", "1", option, str(path), *jobs.python(code))
        assert done.returncode == 3
        assert message.format(path=path) in done.stderr
        assert done.stdout.count("x" * 60000) == 1
    finally:
        subprocess.run(["umount", "-l", tmp_path], check=True)


CLOCK = """
#define _GNU_SOURCE
#include <dlfcn.h>
#include <time.h>
#include <sys/time.h>
static long offset(void) {  // changes every third of a second of the real clock: an hour back, a day ahead
  struct timespec t;
  int (*real)(clockid_t, struct timespec *) = (int (*)(clockid_t, struct timespec *))dlsym(RTLD_NEXT, "clock_gettime");
  real(CLOCK_MONOTONIC, &t);
  return (t.tv_nsec / 333333333) % 2 == 0 ? -3600 : 86400;
}
int clock_gettime(clockid_t clock, struct timespec *t) {
  int (*real)(clockid_t, struct timespec *) = (int (*)(clockid_t, struct timespec *))dlsym(RTLD_NEXT, "clock_gettime");
  int result = real(clock, t);
  if (clock == CLOCK_REALTIME) t->tv_sec += offset();
  return result;
}
"""
NO_MEMFD = """
#include <errno.h>
int memfd_create(const char *name, unsigned flags) { (void)name; (void)flags; errno = ENOSYS; return -1; }
"""
NO_CLOSE_RANGE = """
#include <errno.h>
int close_range(unsigned first, unsigned last, int flags) { (void)first; (void)last; (void)flags; errno = ENOSYS; return -1; }
"""


def preloaded(tmp_path, source):
    """The environment of a job whose dynamically linked programs call functions of `source` instead of the system's."""
    (tmp_path / "preload.c").write_text(source)
    library = tmp_path / "preload.so"
    subprocess.run(["cc", "-shared", "-fPIC", "-o", library, tmp_path / "preload.c", "-ldl"], check=True)
    return {**ENVIRONMENT, "LD_PRELOAD": str(library)}


def test_a_wall_clock_that_jumps_changes_nothing(tmp_path):
    code = loops.BEGINNING + """
began = time.monotonic()
while True:
    if rank == 0:
        time.sleep(0.01)
    if hvd.allreduce(numpy.array([float(time.monotonic() - began > 2)]), op=hvd.Sum)[0] == 2:
        break
hvd.shutdown()
print("done", flush=True)
"""
    done = jobs.run("-np", "2", "--timeout", "60", "--prefix-output-with-timestamp", *loops.command(code), env=preloaded(tmp_path, CLOCK))
    assert (done.returncode, done.stdout.count("done"), done.stderr) == (0, 2, "")


def test_without_memfd_the_ranks_use_tcp(tmp_path):
    code = loops.BEGINNING + "print(hvd.allreduce(numpy.ones(100000), op=hvd.Sum)[7], flush=True)"
    done = jobs.run("-np", "2", *loops.command(code), env=preloaded(tmp_path, NO_MEMFD))
    assert done.returncode == 0, done.stderr
    assert done.stdout.count(":2.0\n") == 2
    assert "ranks use TCP although they are on one host" in done.stderr


def test_without_close_range_nothing_is_left_when_runjob_is_killed(tmp_path):
    # Two names of this host have an agent each, which must not keep the other one's channel open either.
    environment = preloaded(tmp_path, NO_CLOSE_RANGE)
    with jobs.Marked("-H", "localhost:1,127.0.0.1:1", "sh", "-c", "echo ready; sleep 600", env=environment) as job:
        job.wait_for_lines(2)
        job.process.kill()
        job.wait_until_gone()
