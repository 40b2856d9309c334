"""Where ranks run: CPUs, GPUs, and the map of them."""

import os
import subprocess

import pytest
from jobs import RUNJOB, TIMEOUT, by_rank, python, run

CPUS = sorted(os.sched_getaffinity(0))
AFFINITY = "import os; print(*sorted(os.sched_getaffinity(0)))"
GPUS = "import os; print(os.environ.get('CUDA_VISIBLE_DEVICES'))"


def affinities(*arguments, **options):
    done = run(*arguments, *python(AFFINITY), **options)
    assert done.returncode == 0, done.stderr
    return {rank: [int(cpu) for cpu in lines[0].split()] for rank, lines in by_rank(done.stdout).items()}, done.stderr


def cores():
    """The CPUs of each core that we may use."""
    def siblings(cpu):
        path = f"/sys/devices/system/cpu/cpu{cpu}/topology/thread_siblings_list"
        return open(path).read() if os.path.exists(path) else cpu

    groups = {}
    for cpu in CPUS:
        groups.setdefault(siblings(cpu), []).append(cpu)
    return list(groups.values())


def test_by_default_the_affinity_is_ours():
    assert affinities("-np", "2")[0] == {0: CPUS, 1: CPUS}


def test_bound_to_cores_the_ranks_share_none():
    count = len(cores())
    found, errors = affinities("-np", str(count), "--bind-to", "core", "--verbose")
    assert sorted(map(tuple, found.values())) == sorted(map(tuple, cores()))
    assert f"bound to CPUs {CPUS[0]}" in errors
    assert affinities("-np", "1", "-bind-to", "core")[0] == {0: CPUS}


@pytest.mark.skipif(len(cores()) < 2, reason="there is one core only")
def test_a_rank_gets_the_number_of_cores_that_map_by_names():
    first, second = (tuple(core) for core in cores()[:2])
    threads = python(f"{AFFINITY}; print(os.environ['OMP_NUM_THREADS'])")
    for each, ranks in ((1, 2), (2, 1)):
        done = run("-np", str(ranks), "--map-by", f"slot:PE={each}", *threads)
        assert done.returncode == 0, done.stderr
        places = {rank: tuple(int(cpu) for cpu in lines[0].split()) for rank, lines in by_rank(done.stdout).items()}
        assert places == ({0: first, 1: second} if each == 1 else {0: tuple(sorted(first + second))})
        assert {lines[1] for lines in by_rank(done.stdout).values()} == {str(each)}
    done = run("-np", str(len(cores())), "--map-by", "slot:PE=2", "true")
    assert done.returncode == 125
    assert f"{len(cores())} ranks cannot have 2 cores each (PE=2): " in done.stderr


@pytest.mark.parametrize("unit", ["numa", "socket"])
def test_bound_to_larger_units_more_ranks_share_them(unit):
    found, _ = affinities("-np", str(len(CPUS) + 1), "--bind-to", unit)
    assert sorted({cpu for cpus in found.values() for cpu in cpus}) == CPUS


def test_too_few_cores_are_an_error():
    ranks = len(cores()) + 1
    done = run("-np", str(ranks), "--bind-to", "core", "true")
    assert done.returncode == 125
    assert done.stderr.startswith(f"runjob: error: localhost: {ranks} ranks cannot have a core each: ")


@pytest.mark.skipif(len(CPUS) < 2, reason="there is one CPU only")
def test_a_narrow_affinity_is_told_when_ranks_share_it():
    only = CPUS[-1]
    narrow = {"preexec_fn": lambda: os.sched_setaffinity(0, {only})}
    found, errors = affinities("-np", "2", **narrow)
    assert found == {0: [only], 1: [only]}
    assert errors.startswith("runjob: warning: the 2 ranks on localhost share 1 of its ")
    assert affinities("-np", "1", **narrow)[1] == ""
    assert run("-np", "2", "--bind-to", "core", "true", **narrow).returncode == 125


def gpus(*arguments, **environment):
    done = run(*arguments, *python(GPUS), env={**os.environ, **environment})
    return done, {rank: lines[0] for rank, lines in by_rank(done.stdout).items()}


def test_gpus_per_rank_of_those_that_a_batch_system_gave():
    assert gpus("-np", "2", "--gpus-per-rank", "2", CUDA_VISIBLE_DEVICES="4,5,GPU-6,7")[1] == {0: "4,5", 1: "GPU-6,7"}
    assert gpus("-np", "2", CUDA_VISIBLE_DEVICES="4,5")[1] == {0: "4,5", 1: "4,5"}
    assert gpus("-np", "1", "--gpus-per-rank", "1", "-x", "CUDA_VISIBLE_DEVICES=9", CUDA_VISIBLE_DEVICES="4")[1] == {0: "9"}
    done, _ = gpus("-np", "2", "--gpus-per-rank", "2", CUDA_VISIBLE_DEVICES="4,5,6")
    assert (done.returncode, done.stderr) == (125, "runjob: error: localhost: 3 GPUs are too few for 2 ranks with 2 each\n")


def test_gpus_of_the_host_list(tmp_path):
    hosts = tmp_path / "hosts"
    hosts.write_text("localhost slots=2 gpus=6,4,2,0\n")
    assert gpus("-hostfile", str(hosts), CUDA_VISIBLE_DEVICES="1")[1] == {0: "6,4,2,0", 1: "6,4,2,0"}
    assert gpus("-hostfile", str(hosts), "--gpus-per-rank", "2", CUDA_VISIBLE_DEVICES="1")[1] == {0: "6,4", 1: "2,0"}


# Stands in for what NVIDIA's driver shows of two GPUs, in a mount namespace of the job's own. No GPU is asked.
GPU_HOST = """
mount --bind "$1/driver" /proc/driver && mount --bind "$1/devices" /sys/bus/pci/devices || exit 77
shift
exec "$@"
"""


def on_a_gpu_host(tree, *arguments, **environment):
    near = {"0000:17:00.0": (0, "GPU-5d5b", CPUS[0]), "0000:65:00.0": (1, "GPU-6e55", CPUS[-1])}
    for bus_id, (numa, uuid, cpu) in near.items():
        driver, device = tree / "driver/nvidia/gpus" / bus_id, tree / "devices" / bus_id
        driver.mkdir(parents=True, exist_ok=True)
        device.mkdir(parents=True, exist_ok=True)
        (driver / "information").write_text(f"Model: \t\t stand-in, not a GPU\nGPU UUID: \t {uuid}\nBus Location: \t {bus_id}\n")
        (device / "numa_node").write_text(f"{numa}\n")
        (device / "local_cpulist").write_text(f"{cpu}\n")
    words = ["unshare", "--mount", "sh", "-c", GPU_HOST, "sh", str(tree), RUNJOB, *arguments]
    environment = {**{name: value for name, value in os.environ.items() if name != "CUDA_VISIBLE_DEVICES"}, **environment}
    done = subprocess.run(words, capture_output=True, text=True, timeout=TIMEOUT, stdin=subprocess.DEVNULL, env=environment, check=False)
    if done.returncode == 77 or "unshare failed" in done.stderr:
        pytest.skip("this user may not mount")
    return done


def test_ranks_are_bound_near_their_gpus_over_a_stand_in_of_the_driver(tmp_path):
    done = on_a_gpu_host(tmp_path, "--bind-to", "gpu", "--display-map", *python(f"{AFFINITY}; {GPUS}"))
    assert done.returncode == 0, done.stderr
    assert by_rank(done.stdout) == {0: [str(CPUS[0]), "None"], 1: [str(CPUS[-1]), "None"]}  # a rank for each GPU
    shown = done.stderr.splitlines()
    assert shown[:2] == ["2 ranks on 1 host, mapped by slot, bound to gpu:", "  localhost: ranks 0, 1 in 2 slots (this host)"]
    assert f"runjob: rank 0: GPU 0 (GPU-5d5b, NUMA node 0), bound to CPUs {CPUS[0]}" in shown
    assert f"runjob: rank 1: GPU 1 (GPU-6e55, NUMA node 1), bound to CPUs {CPUS[-1]}" in shown


def test_gpus_of_a_share_or_of_a_host_list_are_those_near_which_a_rank_is_bound(tmp_path):
    code = python(f"{AFFINITY}; {GPUS}")
    done = on_a_gpu_host(tmp_path, "-np", "2", "--bind-to", "gpu", "--gpus-per-rank", "1", *code, CUDA_VISIBLE_DEVICES="1,GPU-5d")
    assert by_rank(done.stdout) == {0: [str(CPUS[-1]), "1"], 1: [str(CPUS[0]), "GPU-5d"]}, done.stderr
    hosts = tmp_path / "hosts"
    hosts.write_text("localhost slots=2 gpus=1,0\n")
    for share in ([], ["--gpus-per-rank", "1"]):
        done = on_a_gpu_host(tmp_path, "-hostfile", str(hosts), "--bind-to", "gpu", *share, *code)
        visible = ["1", "0"] if share else ["1,0", "1,0"]
        assert by_rank(done.stdout) == {0: [str(CPUS[-1]), visible[0]], 1: [str(CPUS[0]), visible[1]]}, done.stderr


def test_a_rank_without_a_gpu_cannot_be_bound_near_one(tmp_path):
    done = run("-np", "1", "--bind-to", "gpu", "true", env={**os.environ, "CUDA_VISIBLE_DEVICES": ""})
    assert done.returncode == 125
    assert done.stderr.startswith("runjob: error: localhost: rank 0 cannot be bound to the cores near its GPU: there is no GPU: ")
    done = on_a_gpu_host(tmp_path, "-np", "1", "--bind-to", "gpu", "true", CUDA_VISIBLE_DEVICES="7")
    assert done.returncode == 125
    assert "cannot be bound to the cores near its GPU 7: the driver shows 2 GPUs here, and none is that one" in done.stderr


def test_map_and_plan():
    shown = run("-np", "2", "-display-map", "echo", "x")
    assert sorted(shown.stdout.splitlines()) == ["[0]<stdout>:x", "[1]<stdout>:x"]
    map_ = "2 ranks on 1 host, mapped by slot, bound to none:\n  localhost: ranks 0, 1 in 2 slots (this host)\n"
    assert shown.stderr == map_
    planned = run("-np", "2", "--dry-run", "echo", "a b", cwd="/usr")
    assert (planned.returncode, planned.stdout, planned.stderr) == (0, map_ + "each runs: echo 'a b'\nin: /usr\n", "")


def test_a_plan_reaches_no_host():
    done = run("-H", "a.invalid:2,me@b.invalid:2", "-map-by", "node", "--dry-run", "true")
    assert done.returncode == 0
    assert "  a.invalid: ranks 0, 2 in 2 slots (by SSH)\n  b.invalid: ranks 1, 3 in 2 slots (by SSH, as me)\n" in done.stdout


def test_more_ranks_than_cores_may_share_them():
    count = len(cores())
    found, errors = affinities("-np", str(2 * count), "-bind-to", "core:overload-allowed")
    assert [tuple(found[rank]) for rank in range(0, 2 * count, 2)] == [tuple(found[rank]) for rank in range(1, 2 * count, 2)]
    assert errors == ""


def test_mpirun_lines_of_containers_run():
    """Open MPI's and MPICH's spellings, each with its meaning."""
    code = python("import os; print(os.getcwd(), os.environ.get('A'))")
    done = run("--allow-run-as-root", "--oversubscribe", "-np", "3", "--host", "localhost", "-wdir", "/", "-genv", "A", "1 2", "-q", *code)
    assert (done.returncode, done.stderr) == (0, "")
    assert by_rank(done.stdout) == {rank: ["/ 1 2"] for rank in range(3)}
    for words in (["-npernode", "2", "-H", "localhost:4"], ["-N", "2", "-H", "localhost:4"], ["-ppn", "2", "-hosts", "localhost"]):
        done = run(*words, "-report-bindings", "--prefix", "/opt/mpi", *code)
        assert (done.returncode, sorted(by_rank(done.stdout))) == (0, [0, 1])
        assert done.stderr == (
            "runjob: warning: --prefix has no effect: runjob needs no MPI on the hosts; the ranks get PATH and LD_LIBRARY_PATH as they are here\n"
            "runjob: warning: -report-bindings has no effect: --verbose prints the CPUs to which each rank is bound\n"
        )


def test_mpiruns_line_of_the_tutorials_runs():
    done = run("-np", "2", "-bind-to", "none", "-map-by", "slot", "-x", "PATH", "-mca", "pml", "ob1", "-mca", "btl", "^openib", "true")
    assert done.returncode == 0
    assert done.stderr == "runjob: warning: -mca is Open MPI's and has no effect here: pml ob1, btl ^openib\n"
