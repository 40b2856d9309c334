"""runjob inside of a SLURM allocation: it reads the allocation, starts its agents with one srun, and leaves nothing behind."""

import re
import shlex
import signal

import pytest
from running_job import SLEEP
from slurm_jobs import KEY, PYTHON, ROOT, RUNJOB, Running, output_of, python, salloc, state_of, submit, wait_for, wait_until_gone, wait_until_idle
from testbed import HOME, HostSpec
from testbed.slurm import Slurm

SHOW = "import os, socket; print(*[os.environ['RUNJOB_' + n] for n in ('RANK', 'LOCAL_RANK', 'CROSS_RANK', 'HOSTNAME')], socket.gethostname())"


# Which hosts, how many ranks


def test_ranks_fill_the_allocation(slurm):
    done = salloc(slurm, "-N2 -n5", *python(SHOW))
    assert (done.returncode, done.stderr) == (0, "")
    lines = sorted(line.partition("<stdout>:")[2] for line in done.stdout.splitlines())
    assert lines == ["0 0 0 s1 s1", "1 1 0 s1 s1", "2 2 0 s1 s1", "3 3 0 s1 s1", "4 0 1 s2 s2"]


def test_fewer_ranks_need_fewer_nodes(slurm):
    done = salloc(slurm, "-N3 -n6", "-np", 4, *python(SHOW))
    assert done.returncode == 0, done.stderr
    assert sorted(line.split()[-1] for line in done.stdout.splitlines()) == ["s1"] * 4
    done = salloc(slurm, "-N3 --ntasks-per-node=2", "-np", 3, *python(SHOW))
    assert sorted(line.split()[-1] for line in done.stdout.splitlines()) == ["s1", "s1", "s2"]


def test_more_ranks_than_tasks_are_refused(slurm):
    done = salloc(slurm, "-N2 -n3", "-np", 4, "true")
    assert done.returncode == 2
    assert "runjob: error: 4 ranks do not fit into 3 slots on 2 hosts (s1:2, s2:1)" in done.stderr


def test_hosts_that_are_named_win(slurm):
    done = salloc(slurm, "-N2 -n2", "-H", "localhost:3", *python(SHOW))
    assert done.returncode == 0, done.stderr
    assert [line.split()[-1] for line in done.stdout.splitlines()] == ["head"] * 3


def test_an_allocation_that_makes_no_sense_is_named(slurm):
    done = salloc(slurm, "-N1", "true", variables={"SLURM_JOB_ID": "1", "SLURM_JOB_NODELIST": "s[1"})
    assert done.returncode == 0  # salloc sets its own
    done = slurm.run([RUNJOB, "true"], variables={"SLURM_JOB_ID": "1", "SLURM_JOB_NODELIST": "s[1"})
    assert done.returncode == 2
    assert done.stderr == "runjob: error: SLURM_JOB_NODELIST: column 4: expected ',' or ']' in the range, found the end\n"


def test_ranks_of_a_batch_job(slurm):
    job = submit(slurm, "-N2 --ntasks-per-node=2", shlex.join([RUNJOB, *python(SHOW)]) + "\nexit $?")
    wait_for(slurm, job)
    lines = sorted(line.partition("<stdout>:")[2] for line in output_of(slurm, job).splitlines())
    assert lines == ["0 0 0 s1 s1", "1 1 0 s1 s1", "2 0 1 s2 s2", "3 1 1 s2 s2"]
    assert state_of(slurm, job)["ExitCode"] == "0:0"


def test_inside_of_a_step_the_whole_allocation_is_used(slurm):
    wait_until_idle(slurm)
    done = slurm.run(["salloc", "--quiet", "-N2", "-n4", "srun", "-N1", "-n1", RUNJOB, "-np", "4", *python(SHOW)])
    assert done.returncode == 0, done.stderr
    assert sorted(line.split()[-1] for line in done.stdout.splitlines()) == ["s1", "s1", "s1", "s2"]


def test_the_plan_is_shown_instead_of_the_job(slurm):
    done = salloc(slurm, "-N2 -n3", "--dry-run", "true")
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout == (
        "3 ranks on 2 hosts, mapped by slot, bound to none:\n"
        "  s1: ranks 0, 1 in 2 slots (by srun)\n"
        "  s2: rank 2 in 1 slot (by srun)\n"
        f"each runs: true\nin: {HOME}\n"
    )


def test_the_map_is_shown_before_the_job(slurm):
    done = salloc(slurm, "-N2 -n3", "--display-map", "--map-by", "node", *python("print('runs')"))
    assert done.returncode == 0
    assert done.stderr == (
        "3 ranks on 2 hosts, mapped by node, bound to none:\n"
        "  s1: ranks 0, 2 in 2 slots (by srun)\n"
        "  s2: rank 1 in 1 slot (by srun)\n"
    )
    assert sorted(done.stdout.splitlines()) == [f"[{rank}]<stdout>:runs" for rank in range(3)]


def test_there_is_no_cache_to_clean(slurm):
    done = salloc(slurm, "-N1", "--clean-cache")
    assert (done.returncode, done.stdout) == (0, "")
    assert done.stderr == (
        "runjob: warning: nothing to clean: runjob keeps nothing on the nodes of a SLURM allocation; name hosts with -H to clean them over SSH\n"
    )


# What the ranks get


def test_standard_input_and_values_arrive(slurm):
    value = "a\nb 'c' \"d\" $(e)" + "x" * 100_000
    code = "import os, sys; print(len(os.environ['VALUE']), hash(os.environ['VALUE']) == hash(%r), repr(sys.stdin.read()))" % value
    done = salloc(slurm, "-N2 -n2", *python(code), variables={"VALUE": value}, input="line\n")
    assert done.returncode == 0, done.stderr
    assert sorted(done.stdout.splitlines()) == [f"[0]<stdout>:{len(value)} True 'line\\n'", f"[1]<stdout>:{len(value)} True ''"]


GPUS = "import os; print(os.environ['RUNJOB_HOSTNAME'], os.environ.get('CUDA_VISIBLE_DEVICES'))"


@pytest.mark.parametrize(
    "asked, options, expected",
    [
        ("-n4", (), ["s1 None", "s1 None", "s2 None", "s2 None"]),
        ("-n4 --gpus-per-node=2", (), ["s1 0,1", "s1 0,1", "s2 0,1", "s2 0,1"]),
        ("-n4 --gpus-per-node=2", ("--gpus-per-rank", "1"), ["s1 0", "s1 1", "s2 0", "s2 1"]),
        ("-n2 --gres=gpu:1", (), ["s1 0", "s2 0"]),
    ],
)
def test_ranks_see_the_gpus_that_slurm_has_given_to_the_job(slurm, asked, options, expected):
    done = salloc(slurm, f"-N2 --ntasks-per-node={len(expected) // 2} {asked}", *options, *python(GPUS))
    assert (done.returncode, done.stderr) == (0, "")
    assert sorted(line.partition("<stdout>:")[2] for line in done.stdout.splitlines()) == expected


def test_gpus_that_slurm_counts_by_task_are_warned_of(slurm):
    done = salloc(slurm, "-N2 -n2 --gpus-per-task=1", *python(GPUS))
    assert done.returncode == 0
    assert done.stderr == (
        "runjob: warning: the GPUs of this job were asked for with --gpus-per-task; for runjob's one task on each node SLURM may "
        "hold some of them back; ask with --gpus-per-node or --gres\n"
    )


COLLECTIVE = f"""
import ctypes, os, sys
sys.path[:0] = [{str(ROOT / "python")!r}, {str(ROOT / "tests/python")!r}]
from runjob import basics
from older_functions import library
FLOAT64, SUM = 8, 1
basics.init()
values = (ctypes.c_double * 1000)(*[basics.rank() + 1] * 1000)
handle = ctypes.c_int64()
shape = (ctypes.c_int64 * 1)(1000)
opened = library()
assert opened.runjob_allreduce_async(b"values", values, values, shape, 1, FLOAT64, SUM, 1.0, 1.0, 0, ctypes.byref(handle)) == 0
assert opened.runjob_wait(handle, 60.0) == 0
opened.runjob_release(handle)
print(os.environ["RUNJOB_ADDRESS"], basics.size(), set(values))
"""


@pytest.mark.parametrize("options, prefix", [((), "10.77.0."), (("--network-interfaces", "ib0"), "10.78.0.")])
def test_a_collective_over_two_nodes_and_the_chosen_network(slurm, options, prefix):
    done = salloc(slurm, "-N2 --ntasks-per-node=2", *options, *python(COLLECTIVE), variables={"OMP_NUM_THREADS": "1"})
    assert (done.returncode, done.stderr) == (0, "")
    expected = [f"[{rank}]<stdout>:{prefix}{1 + rank // 2} 4 {{10.0}}" for rank in range(4)]
    assert sorted(done.stdout.splitlines()) == expected


def test_what_belongs_to_the_head_stays_there(slurm):
    variables = {"DISPLAY": ":0", "SSH_AUTH_SOCK": "/tmp/agent", "XDG_RUNTIME_DIR": "/run/user/1", "TMPDIR": "/tmp/of-head", "HOSTNAME": "head", "CUDA_VISIBLE_DEVICES": "7"}
    code = f"import os; print({{n: os.environ.get(n) for n in {list(variables)}}})"
    done = salloc(slurm, "-N1 -n1", *python(code), variables=variables)
    expected = dict.fromkeys(variables) | {"TMPDIR": "/tmp"}  # SLURM sets that
    assert done.stdout == f"[0]<stdout>:{expected}\n", done.stderr


def test_nothing_of_the_step_that_started_the_agents_is_seen(slurm):
    code = "import os; print(sorted(n for n in os.environ if n.startswith(('SLURM_STEP', 'SLURM_PROC', 'SLURM_LOCAL', 'PMI', 'SLURM_SRUN'))))"
    done = salloc(slurm, "-N2 -n2", *python(code))
    assert sorted(done.stdout.splitlines()) == ["[0]<stdout>:[]", "[1]<stdout>:[]"]


def test_much_output_arrives_whole(slurm):
    # One write() a line, unlike print(): the launcher shows the beginning of a line whose end does not come soon.
    code = "import os; [os.write(1, f\"{os.environ['RUNJOB_RANK']} {i} {'x' * 80}\\n\".encode()) for i in range(20000)]"
    done = salloc(slurm, "-N3 -n3", *python(code))
    assert done.returncode == 0, done.stderr
    for rank in range(3):
        lines = [line for line in done.stdout.splitlines() if line.startswith(f"[{rank}]")]
        assert lines == [f"[{rank}]<stdout>:{rank} {i} {'x' * 80}" for i in range(20000)]


def test_a_working_directory_that_is_not_on_a_node_is_an_error(slurm):
    slurm.head.path("/tmp/only-at-the-head").mkdir(exist_ok=True)
    done = salloc(slurm, "-N1", "true", cwd="/tmp/only-at-the-head")
    assert done.returncode == 125
    assert "runjob: error: s1: cannot change to the working directory /tmp/only-at-the-head for rank 0: No such file or directory" in done.stderr


# What is open, and to whom


def test_one_step_one_port_and_no_key_to_be_seen(slurm):
    with Running(slurm, "salloc", "-N3", "-n6", RUNJOB, *python(SLEEP)) as job:
        job.wait_for_lines(6)
        assert slurm.run(["squeue", "--steps", "--noheader", "--format=%j %A"]).stdout.split() == ["runjob", "3"]
        hosts = [*slurm.nodes, slurm.head]
        ports = {host.name: [each for each in host.listening_sockets() if each.program.startswith("runjob")] for host in hosts}
        (listener,) = ports.pop("head")
        assert ports == {"s1": [], "s2": [], "s3": []}
        for host in hosts:
            for process in host.processes():
                text = " ".join([*process.command, *process.environment.values()])
                assert not KEY.search(text), process
        check_that_strangers_change_nothing(slurm, listener.port)
        job.launcher().kill(signal.SIGTERM)
        assert job.finish()[0] == 143
    wait_until_gone(slurm)


def check_that_strangers_change_nothing(slurm, port):
    garbage = f"""
import socket
for data in (b'', b'x' * 100000, b'runjob-agent-1\\n', b'runjob-agent-1\\n\\x00\\x32' + b'y' * 50, b'GET / HTTP/1.1\\r\\n\\r\\n'):
    with socket.create_connection(('head', {port})) as connection:
        try:
            connection.sendall(data)
            connection.shutdown(socket.SHUT_WR)
            print(len(connection.recv(100)))
        except OSError:  # it was cut off meanwhile
            print(0)
"""
    done = slurm.nodes[0].run([PYTHON, "-c", garbage.replace("'head'", repr(slurm.head.address))])
    assert (done.stdout, done.stderr) == ("0\n" * 5, "")


# What cannot start


def test_an_agent_that_is_missing_on_a_node_is_named_with_a_remedy():
    agent = RUNJOB.rpartition("/")[0] + "/runjob-agent"
    with Slurm(nodes=2, cpus=1, specs=[HostSpec(), HostSpec(hide=(agent,))]) as slurm:
        done = salloc(slurm, "-N2 -n2", "true")
        assert done.returncode == 125
        assert re.search(r"runjob: error: s2: .*execve\(\).*; runjob must be at the same path on every node", done.stderr)
        wait_until_gone(slurm)


def test_a_firewall_between_a_node_and_the_head_is_named():
    """srun has ports of its own there, as where administrators open some: none of those that the kernel gives to runjob."""
    closed = "tcp dport { 10000-61000, 61101-65535 } tcp flags & (syn|ack) == syn reject with tcp reset"
    rules = f"add table inet t\nadd chain inet t o {{ type filter hook output priority 0; }}\nadd rule inet t o {closed}\n"
    with Slurm(nodes=2, cpus=1, config="SrunPortRange=61001-61100\n") as slurm:
        slurm.nodes[1].run(["nft", "-f", "-"], user="root", input=rules, check=True)
        done = salloc(slurm, "-N2 -n2", "true")
        assert done.returncode == 125
        (error,) = done.stderr.splitlines()
        assert error.startswith("runjob: error: s2: cannot reach runjob: "), error
        assert f"{slurm.head.address} port " in error and "Connection refused" in error
        assert error.endswith("; does a firewall keep the nodes from it?")
        wait_until_gone(slurm)


def test_srun_that_is_missing_is_named(slurm):
    done = slurm.run(["/usr/bin/salloc", "--quiet", "-N1", RUNJOB, "true"], variables={"PATH": "/nowhere"})
    assert done.returncode == 125
    assert "cannot start srun: No such file or directory; are SLURM's commands installed here? If not, name the hosts with -H" in done.stderr


def test_what_srun_says_is_the_reason(slurm):
    variables = {"SLURM_JOB_ID": "999999", "SLURM_JOB_NODELIST": "s1", "SLURM_TASKS_PER_NODE": "1"}
    done = slurm.run([RUNJOB, "true"], variables=variables)
    assert done.returncode == 125
    assert re.search(r"runjob: error: s1: srun: error: .*[Ii]nvalid job id", done.stderr), done.stderr
