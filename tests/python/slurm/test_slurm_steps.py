"""`srun -n 4 runjob COMMAND`: SLURM starts the ranks, and they become one job."""

import re
import signal

import pytest
from running_job import SLEEP, STUBBORN
from slurm_jobs import KEY, PYTHON, ROOT, RUNJOB, Running, ours_on, output_of, python, state_of, submit, wait_for, wait_until_gone, wait_until_idle
from testbed import HOME, eventually

SHOW = """
import os, socket
print(*[os.environ[n] for n in ('RUNJOB_RANK', 'RUNJOB_SIZE', 'LOCAL_RANK', 'LOCAL_WORLD_SIZE', 'HOROVOD_CROSS_RANK', 'HOROVOD_CROSS_SIZE')],
      os.environ['RUNJOB_HOSTNAME'] == socket.gethostname())
"""
# Adds numbers up over all ranks, with the C interface.
SUM = f"""
import ctypes, os, sys
library = ctypes.CDLL({str(ROOT / "build/release/lib/librunjob.so")!r})
library.runjob_error_message.restype = ctypes.c_char_p
def check(code):
    if code != 0:
        sys.exit(library.runjob_error_message().decode())
check(library.runjob_init())
values = (ctypes.c_double * 1000)(*[int(os.environ["RANK"]) + 1] * 1000)
shape = (ctypes.c_int64 * 1)(1000)
handle = ctypes.c_int64()
check(library.runjob_allreduce_async(b"x", values, values, shape, 1, 8, 1,  # float64, sum
     ctypes.c_double(1), ctypes.c_double(1), 0, ctypes.byref(handle)))
check(library.runjob_wait(handle, ctypes.c_double(-1)))
print("sum", values[0], values[999])
check(library.runjob_shutdown())
"""
SAVES = """
import signal, sys, time
def save(*_):
    print('saved')
    sys.exit(0)
signal.signal(signal.SIGTERM, save)
print('ready')
while True: time.sleep(0.1)
"""


@pytest.fixture(autouse=True)
def idle_nodes(slurm):
    """SLURM then gives the first ones to a job."""
    wait_until_idle(slurm)


def srun(slurm, options, *arguments, **more):
    return slurm.run(["srun", "--quiet", *options.split(), RUNJOB, *map(str, arguments)], **more)


@pytest.mark.parametrize("options, expected", [
    ("-N2 --ntasks-per-node=2", ["0 4 0 2 0 2 True", "1 4 1 2 0 2 True", "2 4 0 2 1 2 True", "3 4 1 2 1 2 True"]),
    ("-N2 --ntasks-per-node=2 -m cyclic", ["0 4 0 2 0 2 True", "1 4 0 2 1 2 True", "2 4 1 2 0 2 True", "3 4 1 2 1 2 True"]),
    ("-N1 -n3", ["0 3 0 3 0 1 True", "1 3 1 3 0 1 True", "2 3 2 3 0 1 True"]),
])
def test_each_task_is_a_rank(slurm, options, expected):
    done = srun(slurm, options, *python(SHOW))
    assert (done.returncode, done.stderr) == (0, "")
    assert sorted(done.stdout.splitlines()) == expected
    wait_until_gone(slurm)


def test_the_ranks_compute_together_over_two_nodes(slurm):
    done = srun(slurm, "-N2 --ntasks-per-node=2", *python(SUM))
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.splitlines() == ["sum 10.0 10.0"] * 4


def test_options_and_variables_reach_every_rank(slurm):
    value = "a\nb 'c' " + "x" * 100_000
    code = "import os; print(os.environ['A'], os.getcwd(), os.environ['OMP_NUM_THREADS'], hash(os.environ['B']) == hash(%r))" % value
    done = srun(slurm, "-N2 -n2 -c2", "-x", "A=1", "--wdir", "/", "-np", 2, *python(code), variables={"B": value})
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout == "1 / 2 True\n" * 2


def test_variables_from_a_file_reach_every_rank(slurm):
    file = f"{HOME}/variables"

    def with_file(text, *arguments, **more):
        for node in slurm.nodes:  # where each task reads its own
            node.write(file, text, 0o600)
        return srun(slurm, "-N2 -n2", "--env-file", file, *arguments, **more)

    code = "import os; print(os.environ['A'], os.environ.get('B'))"
    done = with_file("# of this job\nA=one two\nB\n", *python(code), variables={"B": "from here"})
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout == "one two from here\n" * 2
    done = with_file("A=1\nRUNJOB_RANK=7\n", "true")
    assert done.returncode == 2
    assert f"runjob: error: {file}: line 2: RUNJOB_RANK is set by runjob for each rank; leave it out" in done.stderr


def test_what_srun_does_is_said_once(slurm):
    done = srun(slurm, "-N2 -n2", "--display-map", "true")
    assert done.returncode == 0
    assert done.stderr == "runjob: warning: --display-map has no effect where srun has started the ranks; srun has options of its own\n"


def test_another_number_of_ranks_is_refused(slurm):
    done = srun(slurm, "-N1 -n2", "-np", 4, "true")
    assert done.returncode == 2
    assert "-np: srun has started runjob 2 times, each of which is one rank; leave the number out" in done.stderr


def test_hosts_that_are_named_make_jobs_of_their_own(slurm):
    done = srun(slurm, "-N2 -n2", "-H", "localhost:2", *python("import os; print(os.environ['RUNJOB_RANK'])"))
    assert done.returncode == 0, done.stderr
    assert sorted(done.stdout.splitlines()) == ["[0]<stdout>:0"] * 2 + ["[1]<stdout>:1"] * 2


def test_a_dry_run_starts_nothing(slurm):
    done = srun(slurm, "-N2 -n2", "--dry-run", "false")
    assert done.returncode == 0
    assert "rank 1 of 2, which SLURM has started on s2\nit runs: false\nin: " in done.stdout


# What is open, and to whom


def test_nobody_else_learns_the_key_or_gets_in(slurm):
    with Running(slurm, "srun", "--quiet", "-N2", "-n2", RUNJOB, *python(SLEEP)) as job:
        job.wait_for_lines(2)
        hosts = [*slurm.nodes, slurm.head]
        ports = {host.name: [each for each in host.listening_sockets() if each.program.startswith("runjob")] for host in hosts}
        (listener,) = ports.pop("s1")
        assert ports == {"s2": [], "s3": [], "head": []}
        for host in hosts:
            for process in host.processes():
                assert not KEY.search(" ".join([*process.command, *process.environment.values()])), process
        code = f"import urllib.request; urllib.request.urlopen('http://{slurm.nodes[0].address}:{listener.port}/v1/status', timeout=10)"
        done = slurm.nodes[1].run([PYTHON, "-c", code])
        assert "HTTP Error 401" in done.stderr
        (rank,) = [process for process in slurm.nodes[0].processes() if process.name.startswith("python")]
        assert re.fullmatch(r"/proc/\d+/fd/\d+", rank.environment["RUNJOB_JOB_KEY_FILE"])  # which other users cannot open
        job.process.send_signal(signal.SIGTERM)
        job.finish()
        wait_until_gone(slurm)


# Looks for the key, as text and as bytes, in all memory of the programs that a core dump would have.
SCAN = """
import glob, os, re
processes = [int(each) for each in os.listdir('/proc') if each.isdigit() and int(each) != os.getpid()]
programs = {pid: open(f'/proc/{pid}/comm').read().strip() for pid in processes}
programs = {pid: name for pid, name in programs.items() if name.startswith(('runjob', 'python'))}
files = [file for pid in programs for file in glob.glob(f'/proc/{pid}/fd/*') if 'runjob-key' in os.readlink(file)]
key = open(files[0]).read().strip()
for pid, name in programs.items():
    copies, memory = 0, open(f'/proc/{pid}/mem', 'rb', 0)
    for area in re.split('\\n(?=[0-9a-f]+-)', open(f'/proc/{pid}/smaps').read()):
        begin, end, rights = re.match('([0-9a-f]+)-([0-9a-f]+) (\\S+)', area).groups()
        if 'w' not in rights or re.search('^VmFlags:.* dd', area, re.MULTILINE): continue
        memory.seek(int(begin, 16))
        data = memory.read(int(end, 16) - int(begin, 16))
        copies += data.count(key.encode()) + data.count(bytes.fromhex(key))
    print(name, copies)
"""


def test_no_core_dump_of_a_rank_would_have_the_key(slurm):
    """That of the runjob beside it would: libmunge leaves a copy in its memory."""
    with Running(slurm, "srun", "--quiet", "-N2", "-n2", RUNJOB, *python(SLEEP)) as job:
        job.wait_for_lines(2)
        for node in slurm.nodes[:2]:
            done = node.run([PYTHON, "-c", SCAN], user="root")
            lines = done.stdout.splitlines()
            assert done.returncode == 0 and any(line.startswith("runjob ") for line in lines), done
            assert [line for line in lines if not line.startswith("runjob ")].count("python3 0") == 1, done.stdout
        job.process.send_signal(signal.SIGTERM)
        job.finish()
        wait_until_gone(slurm)


@pytest.mark.parametrize("mpi", ["pmi2", "pmix"])
def test_with_pmi_the_port_cannot_be_guessed(slurm, mpi):
    """One task comes late; meanwhile task 0 listens on a port of which SLURM tells the others."""
    wait = "import os, sys, time\nwhile os.environ['SLURM_PROCID'] == '1' and not os.path.exists('go-pmi'): time.sleep(0.05)\nos.execv(sys.argv[1], sys.argv[1:])"
    with Running(slurm, "srun", "--quiet", f"--mpi={mpi}", "-N2", "-n2", PYTHON, "-c", wait, RUNJOB, *python(SHOW)) as job:
        listening = lambda: [each.port for each in slurm.nodes[0].listening_sockets() if each.program.startswith("runjob")]
        eventually(listening, "task 0 listens")
        (port,) = listening()
        assert port > 32_767  # the ports that follow from the step are below
        slurm.head.write(f"{HOME}/go-pmi", "")
        status, output, errors = job.finish()
    slurm.head.path(f"{HOME}/go-pmi").unlink(missing_ok=True)
    assert (status, errors) == (0, "")
    assert sorted(output.splitlines()) == ["0 2 0 1 0 2 True", "1 2 0 1 1 2 True"]


def test_ranks_are_clients_of_pmix_too(slurm):
    """As MPI_Init() in a rank needs it: runjob has left PMIx by then."""
    code = """
import ctypes, os
pmix = ctypes.CDLL('libpmix.so.2')
me = ctypes.create_string_buffer(260)
print(pmix.PMIx_Init(me, None, 0), me.value.decode() == os.environ['PMIX_NAMESPACE'], int.from_bytes(me.raw[256:], 'little'), pmix.PMIx_Finalize(None, 0))
"""
    done = srun(slurm, "--mpi=pmix -N2 -n3", *python(code))
    assert (done.returncode, done.stderr) == (0, "")
    assert sorted(done.stdout.splitlines()) == [f"0 True {rank} 0" for rank in range(3)]


def test_garbage_before_the_start_harms_nobody(slurm):
    """One task comes late; meanwhile others talk to the port on which task 0 gathers them."""
    wait = "import os, sys, time\nwhile os.environ['SLURM_PROCID'] == '1' and not os.path.exists('go'): time.sleep(0.05)\nos.execv(sys.argv[1], sys.argv[1:])"
    with Running(slurm, "srun", "--quiet", "-N2", "-n2", PYTHON, "-c", wait, RUNJOB, *python(SHOW)) as job:
        listening = lambda: [each.port for each in slurm.nodes[0].listening_sockets() if each.program.startswith("runjob")]
        eventually(listening, "task 0 listens")
        garbage = f"""
import socket
for data in (b'', b'x' * 300000, b'MUNGE:abc:\\n', b'GET / HTTP/1.1\\r\\n\\r\\n'):
    with socket.create_connection(({slurm.nodes[0].address!r}, {listening()[0]})) as connection:
        try:
            connection.sendall(data)
            connection.shutdown(socket.SHUT_WR)
            while connection.recv(100) not in (b'', b'runjob step 2\\n'): pass
        except OSError:
            pass
print('done')
"""
        done = slurm.nodes[2].run([PYTHON, "-c", garbage])
        assert (done.stdout, done.stderr) == ("done\n", "")
        slurm.head.write(f"{HOME}/go", "")
        status, output, errors = job.finish()
    slurm.head.path(f"{HOME}/go").unlink(missing_ok=True)
    assert status == 0, errors
    assert len(output.splitlines()) == 2
    assert "runjob: warning: refused a connection from" in errors


# How jobs end


def test_the_first_failure_ends_the_others(slurm):
    code = "import os, sys, time\nif os.environ['RANK'] == '3': sys.exit(7)\ntime.sleep(600)"
    done = srun(slurm, "-N2 --ntasks-per-node=2", *python(code))
    assert done.returncode == 7
    # A rank that had not begun when rank 3 failed was not stopped.
    assert len(re.findall(r"runjob: error: rank 3 on s2 \(pid \d+\) exited with status 7(; stopped \d other ranks?)?\n", done.stderr)) == 1, done.stderr
    wait_until_gone(slurm)


def test_a_rank_that_ignores_sigterm_is_killed_after_the_grace_period(slurm):
    code = f"import os, sys\nif os.environ['RANK'] == '0': sys.exit(3)\n{STUBBORN}"
    done = srun(slurm, "-N2 -n2", "--grace-period", "1", *python(code))
    assert done.returncode == 3
    wait_until_gone(slurm)


def test_with_continue_on_failure_the_others_go_on(slurm):
    code = "import os, sys, time\nif os.environ['RANK'] == '1': sys.exit(7)\ntime.sleep(1)\nprint('went on')"
    done = srun(slurm, "-N2 -n2", "--continue-on-failure", *python(code))
    assert done.returncode == 7
    assert done.stdout == "went on\n"


def test_a_killed_rank_is_named(slurm):
    code = "import os, signal, time\nif os.environ['RANK'] == '1': os.kill(os.getpid(), signal.SIGKILL)\ntime.sleep(600)"
    done = srun(slurm, "-N2 -n2", *python(code))
    assert done.returncode == 137
    assert re.search(r"runjob: error: rank 1 on s2 \(pid \d+\) was killed by signal 9 \(SIGKILL\)", done.stderr)
    wait_until_gone(slurm)


def test_a_command_that_does_not_exist(slurm):
    done = srun(slurm, "-N2 -n2", "no-such-program")
    assert done.returncode == 127
    assert "cannot start 'no-such-program' for rank" in done.stderr


def test_a_task_that_vanishes_ends_the_job(slurm):
    with Running(slurm, "srun", "--quiet", "-N2", "-n2", RUNJOB, *python(SLEEP)) as job:
        job.wait_for_lines(2)
        (task,) = [process for process in slurm.nodes[1].processes() if process.name == "runjob"]
        task.kill()
        status, _, errors = job.finish()
        assert status == 137  # the highest of all tasks', as srun has it
        assert "task 1 has sent nothing for 20 s" in errors
    wait_until_gone(slurm)


def test_scancel_gives_the_ranks_their_grace_period_and_is_no_failure(slurm):
    job = submit(slurm, "-N2 -n2", "exec srun " + " ".join(map(repr, [RUNJOB, PYTHON, "-u", "saves.py"])))
    slurm.head.write(f"{HOME}/saves.py", SAVES)
    eventually(lambda: output_of(slurm, job).count("ready") == 2, "both ranks run")
    slurm.run(["scancel", job], check=True)
    wait_for(slurm, job)
    assert output_of(slurm, job).count("saved") == 2
    assert "runjob: error" not in output_of(slurm, job)
    wait_until_gone(slurm)


def test_signals_reach_every_rank_once(slurm):
    code = """
import signal, sys, time
signal.signal(signal.SIGUSR1, lambda *_: print('signal'))
signal.signal(signal.SIGTERM, lambda *_: sys.exit(0))
print('ready')
while True:
    time.sleep(0.1)
"""
    slurm.head.write(f"{HOME}/signals.py", code)
    job = submit(slurm, "-N2 --ntasks-per-node=2", f"exec srun {RUNJOB} {PYTHON} -u signals.py")
    eventually(lambda: output_of(slurm, job).count("ready") == 4, "all ranks run")
    slurm.run(["scancel", "--signal=USR1", f"{job}.0"], check=True)
    eventually(lambda: output_of(slurm, job).count("signal\n") == 4, "all ranks have it")
    slurm.run(["scancel", job], check=True)
    wait_for(slurm, job)
    assert output_of(slurm, job).count("signal\n") == 4
    wait_until_gone(slurm)


def test_the_status_reaches_slurm(slurm):
    job = submit(slurm, "-N2 -n2", f"srun {RUNJOB} sh -c 'exit $((RUNJOB_RANK * 7))'")
    wait_for(slurm, job)
    state = state_of(slurm, job)
    assert (state["JobState"], state["ExitCode"]) == ("FAILED", "7:0")


def test_the_batch_script_is_right(slurm):
    script = ROOT / "packaging" / "slurm" / "ranks.sbatch"
    slurm.head.write(f"{HOME}/train.py", SHOW + "print(os.environ['OMP_NUM_THREADS'])")
    slurm.head.write(f"{HOME}/bin/python", f'#!/bin/sh\nexec {PYTHON} "$@"\n', mode=0o755)
    path = f"{HOME}/bin:{RUNJOB.rpartition('/')[0]}:/usr/bin:/bin"
    options = ["--parsable", "--output=%j.out", "--ntasks-per-node=2", "--cpus-per-task=2"]
    job = slurm.run(["sbatch", *options, str(script)], variables={"PATH": path}, check=True).stdout.strip()
    wait_for(slurm, job)
    lines = output_of(slurm, job).splitlines()
    assert sorted(lines) == ["0 4 0 2 0 2 True", "1 4 1 2 0 2 True", "2", "2", "2", "2", "2 4 0 2 1 2 True", "3 4 1 2 1 2 True"]
    assert state_of(slurm, job)["ExitCode"] == "0:0"


# What cannot start


def test_tasks_that_do_not_come_are_named(slurm):
    slurm.head.write(f"{HOME}/tasks.conf", f"0 {RUNJOB} --start-timeout 2 true\n1 /bin/true\n")
    done = slurm.run(["srun", "--quiet", "-N2", "-n2", "--multi-prog", "tasks.conf"])
    assert done.returncode == 125
    assert re.search(r"runjob: error: tasks 1 of step \d+\.0 have not come within the 2 s of --start-timeout", done.stderr)
    wait_until_gone(slurm)


def test_a_first_task_that_is_not_there_is_named(slurm):
    slurm.head.write(f"{HOME}/tasks.conf", f"0 /bin/true\n1 {RUNJOB} --start-timeout 1 true\n")
    done = slurm.run(["srun", "--quiet", "-N2", "-n2", "--multi-prog", "tasks.conf"])
    assert done.returncode == 125
    assert re.search(r"runjob: error: s2: task 0 of step \d+\.0 cannot be reached on s1 \([\d.]+\) within the 1 s of --start-timeout: Connection refused", done.stderr)


def test_a_rank_that_never_calls_init_is_named(slurm):
    code = "import os, time\nif os.environ['RANK'] == '1': time.sleep(600)\n" + SUM
    done = srun(slurm, "-N2 -n2", "--start-timeout", 2, *python(code))
    assert done.returncode == 125
    assert "rank 1 on s2 has not called init()" in done.stderr
    wait_until_gone(slurm)
