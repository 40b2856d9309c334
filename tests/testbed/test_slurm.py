"""The SLURM cluster of the testbed: its commands work, tasks of different nodes are on different hosts, and nothing is left."""

import os
import pathlib
import signal
import subprocess

import pytest
from testbed import HOME, eventually
from testbed.slurm import Slurm


@pytest.fixture(scope="module")
def slurm():
    with Slurm(nodes=3, cpus=4) as slurm:
        yield slurm


def test_srun_starts_tasks_on_the_hosts(slurm):
    done = slurm.run(["srun", "-N3", "-n4", "sh", "-c", "echo $SLURM_PROCID $(hostname) $(id -un)"])
    assert done.returncode == 0, done.stderr
    assert sorted(done.stdout.splitlines()) == ["0 s1 user", "1 s1 user", "2 s2 user", "3 s3 user"]


def test_tasks_of_different_nodes_share_no_namespace(slurm):
    for kind in ("net", "pid", "ipc", "mnt"):
        done = slurm.run(["srun", "-N3", "readlink", f"/proc/self/ns/{kind}"])
        assert len(set(done.stdout.split())) == 3, kind


def test_salloc_gives_an_allocation_to_a_command_at_the_head(slurm):
    script = "hostname; echo $SLURM_JOB_NODELIST $SLURM_TASKS_PER_NODE; srun hostname"
    done = slurm.run(["salloc", "-w", "s1,s2", "-n5", "sh", "-c", script])
    assert done.returncode == 0, done.stderr
    head, allocation, *tasks = done.stdout.splitlines()
    assert (head, allocation) == ("head", "s[1-2] 4,1")
    assert sorted(tasks) == ["s1"] * 4 + ["s2"]


def test_sbatch_runs_a_script_and_keeps_its_status(slurm):
    slurm.head.write(f"{HOME}/job.sh", "#!/bin/sh\n#SBATCH --nodelist=s1,s2\nhostname\nsrun hostname\nexit 3\n")
    job = slurm.run(["sbatch", "--parsable", "--output=job.out", "job.sh"], check=True).stdout.strip()
    eventually(lambda: job not in slurm.jobs(), "the job has ended")
    first, *tasks = slurm.head.path(f"{HOME}/job.out").read_text().split()
    assert first == "s1" and sorted(tasks) == ["s1", "s2"]
    assert "ExitCode=3:0" in slurm.run(["scontrol", "show", "job", job]).stdout


def test_scancel_ends_a_job_and_its_processes(slurm):
    task = "trap 'echo told; exit 0' TERM; echo ready; sleep 600 & wait"
    slurm.head.write(f"{HOME}/long.sh", f'#!/bin/sh\nMARK=cancelled exec srun -o out.%j.%t sh -c "{task}"\n')
    job = slurm.run(["sbatch", "--parsable", "-w", "s1,s2", "long.sh"], check=True).stdout.strip()
    outputs = [slurm.head.path(f"{HOME}/out.{job}.{number}") for number in (0, 1)]
    eventually(lambda: all(path.exists() and "ready" in path.read_text() for path in outputs), "both tasks run")
    assert slurm.jobs() == [job]
    assert all(node.processes(mark="MARK=cancelled") for node in slurm.nodes[:2])
    slurm.run(["scancel", job], check=True)
    eventually(lambda: not slurm.jobs(), "the job has ended")
    eventually(lambda: not any(node.processes() for node in slurm.nodes), "none of its processes is left")
    assert all("told" in path.read_text() for path in outputs)


def test_the_status_of_a_task_that_a_signal_ended_is_reported(slurm):
    assert slurm.run(["srun", "sh", "-c", "exit 7"]).returncode == 7
    assert slurm.run(["srun", "sh", "-c", "kill -9 $$"]).returncode == 128 + signal.SIGKILL


@pytest.mark.parametrize("kind, variable", [("pmi2", "PMI_RANK"), ("pmix", "PMIX_RANK")])
def test_mpi_programs_find_their_rank(slurm, kind, variable):
    if kind not in slurm.run(["srun", "--mpi=list"]).stdout.split():
        pytest.skip(f"this SLURM has no plugin {kind}")
    done = slurm.run(["srun", "-N2", "-n3", f"--mpi={kind}", "printenv", variable])
    assert sorted(done.stdout.split()) == ["0", "1", "2"], done.stderr


def test_a_task_outlives_a_cut_of_its_nodes_network(slurm):
    command = ["srun", "-w", "s3", "sh", "-c", "echo ready; cat"]
    with slurm.head.popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as srun:
        assert srun.stdout.readline() == "ready\n"
        slurm.nodes[2].cut_network()
        srun.stdin.write("meanwhile\n")
        srun.stdin.flush()
        slurm.nodes[2].restore_network()
        assert srun.stdout.readline() == "meanwhile\n"
        srun.stdin.close()
    assert srun.returncode == 0


def test_nothing_of_the_machine_is_touched_and_nothing_left(root, unchanged):
    namespaces = set()

    def state():
        folders = ("/etc/slurm", "/etc/munge", "/run", "/var/spool", "/var/log", "/var/lib/munge")
        return {folder: sorted(os.listdir(folder)) for folder in folders if os.path.isdir(folder)}

    def use(check):
        with Slurm(nodes=2) as one, Slurm(nodes=1) as other:
            namespaces.update(os.readlink(f"/proc/{host.init_pid}/ns/pid") for host in (*one.nodes, one.head, *other.nodes, other.head))
            assert one.run(["srun", "-N2", "hostname"]).returncode == 0
            assert other.run(["srun", "hostname"]).stdout == "s1\n"
            check()

    unchanged(state, use)
    assert not [entry for entry in filter(str.isdigit, os.listdir("/proc")) if namespace_of(entry) in namespaces]


def namespace_of(pid):
    try:
        return os.readlink(pathlib.Path("/proc", pid, "ns/pid"))
    except OSError:
        return None
