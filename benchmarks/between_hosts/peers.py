"""runjob beside other software over the same TCP: each collective, one or more ranks on each host, in turns.

Every program runs the same loop (benchmarks/collectives/native). The hosts have UTS and IPC namespaces and a /dev/shm of their
own; the MPIs are told besides to use TCP between them, as they recognise each other's host by the kernel's boot identifier.
"""

import json
import os
import pathlib
import shutil
import statistics
import subprocess

from benchmarks.collectives import mpi_peers

ROOT = pathlib.Path(__file__).resolve().parents[2]
OPERATIONS = ("allreduce", "allgather", "broadcast", "alltoall", "reducescatter")
SIZES = "4,1024,16384,65536,262144,1048576,4194304,16777216,67108864"


def runjob_words(build):
    def words(bed, hosts, ranks):
        names = ",".join(f"{host.name}:{ranks}" for host in hosts)
        return [f"{build}/bin/runjob", "-H", names, f"{build}/bin/collectives_benchmark"], {"LD_LIBRARY_PATH": f"{build}/lib"}

    return words


def mpich_words(program):
    def words(bed, hosts, ranks):
        names = ",".join(f"{host.name}:{ranks}" for host in hosts)
        options = ["-launcher", "ssh", "-hosts", names, "-n", str(ranks * len(hosts)), "-genv", "UCX_TLS", "tcp,self,sm", "-genv", "FI_PROVIDER", "tcp"]
        return ["mpirun.mpich", *options, str(program)], {}

    return words


def open_mpi_words(program):
    def words(bed, hosts, ranks):
        names = ",".join(f"{host.name}:{ranks}" for host in hosts)
        options = ["--mca", "btl", "tcp,self,vader", "--mca", "pml", "ob1", "--mca", "btl_tcp_if_include", "10.77.0.0/16"]
        options += ["--mca", "oob_tcp_if_include", "10.77.0.0/16", "--oversubscribe", "--bind-to", "none"]
        return ["mpirun.openmpi", *options, "-np", str(ranks * len(hosts)), "-H", names, str(program)], {}

    return words


def compiled(name, folder):
    """The benchmark's program for an MPI of the system, or None with a line that says why not."""
    mpicxx = shutil.which(f"mpicxx.{name}")
    if mpicxx is None:
        return None, f"{name}: no mpicxx.{name} on the PATH (Debian: lib{name}-dev)"
    return mpi_peers.compile_program(mpi_peers.Mpi(name, mpicxx, f"mpirun.{name}", {}), folder)


def find(builds, folder):
    """{name: words} of runjob's builds and of the MPIs that are here, and why others are not."""
    peers, absent = {}, []
    for build in builds:
        peers["runjob" if len(builds) == 1 else f"runjob {build.parent.parent.name}"] = runjob_words(build)
    for name, words in (("mpich", mpich_words), ("openmpi", open_mpi_words)):
        program, reason = compiled(name, folder)
        if program:
            peers[name] = words(program)
        else:
            absent.append(reason)
    return peers, absent


def run(bed, words, hosts, ranks, operation, arguments):
    """{bytes: the median in microseconds} of one job, as rank 0 measures it; with the reason as text when it failed."""
    command, variables = words(bed, hosts, ranks)
    options = ["--op", operation, "--dtype", "float32", "--mode", "blocking", "--bytes", arguments.bytes, "--budget-ms", str(arguments.budget_ms)]
    variables = {**variables, "OMP_NUM_THREADS": "1"}
    done = bed.head.run([*command, *options], timeout=600, variables=variables)
    if done.returncode != 0:
        return f"status {done.returncode}: {done.stderr.strip()[-400:]}"
    rows = [json.loads(line[line.index("{") :]) for line in done.stdout.splitlines() if '"bytes"' in line]
    return {row["bytes"]: statistics.median(row["times_us"]) for row in rows}


def measure(bed, hosts, ranks, arguments, peers):
    """[{operation, bytes, {peer: median of the turns' medians}}]; the peers take turns, operation by operation."""
    table = []
    for operation in arguments.operations.split(","):
        found = {}
        for _ in range(arguments.rounds):
            for name, words in list(peers.items()):
                times = run(bed, words, hosts, ranks, operation, arguments)
                if isinstance(times, str):
                    print(f"{name}, {operation}: {times}", flush=True)
                    continue
                for nbytes, microseconds in times.items():
                    found.setdefault(nbytes, {}).setdefault(name, []).append(microseconds)
        for nbytes, row in sorted(found.items()):
            medians = {name: statistics.median(turns) for name, turns in row.items()}
            table.append({"operation": operation, "bytes": nbytes, "ranks": ranks, "hosts": len(hosts), "us": medians})
            print(line_of(table[-1]), flush=True)
    return table


def line_of(row):
    others = {name: time for name, time in row["us"].items() if not name.startswith("runjob")}
    texts = [f"{name} {time:.1f}" for name, time in row["us"].items()]
    best = min(others.values(), default=None)
    ratios = [f"{name} / best {time / best:.2f}" for name, time in row["us"].items() if best and name.startswith("runjob")]
    return f"{row['operation']:13} {row['bytes']:>9} B: " + ", ".join(texts + ratios)


def programs_folder():
    return pathlib.Path(os.environ.get("RUNJOB_BENCHMARK_PROGRAMS", ROOT / "build/between_hosts"))


def version_of(program):
    return subprocess.run([program, "--version"], capture_output=True, text=True, check=False).stdout.splitlines()[:1]
