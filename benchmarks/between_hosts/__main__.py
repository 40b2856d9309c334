"""allreduce between hosts: runjob's hierarchical backend beside Gloo's own allreduce, and what the wire allows.

python3 -m benchmarks.between_hosts [options]: the hosts are those of tests/testbed, namespaces on this machine joined by a
bridge, so that they share its cores. Needs root. Two tables: short messages with the network as it is, long ones with `tbf`
at --rate in both directions of each host's cable. `--what engine` measures whole jobs instead, of one build or several.
"""

import argparse
import contextlib
import itertools
import json
import os
import pathlib
import statistics
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path += [str(ROOT / "tests"), str(ROOT / "python")]
from testbed import Testbed, TestbedError  # noqa: E402

from benchmarks.collectives.arguments import numbers, sizes, words  # noqa: E402

from . import engine, peers  # noqa: E402

BACKENDS = ("hierarchical", "gloo")
SHORT = ["8:2000", "1024:1000", "16384:500"]


def parse_arguments():
    parser = argparse.ArgumentParser(prog="python3 -m benchmarks.between_hosts", description=__doc__.splitlines()[0])
    parser.add_argument("--hosts", type=numbers, default=[2, 4, 8], help="numbers of hosts (default: 2,4,8)")
    parser.add_argument("--ranks", type=int, default=1, help="ranks on each host (default: %(default)s)")
    parser.add_argument("--rate-mbit", type=int, default=1000, help="of each host's cable for long messages (default: %(default)s)")
    parser.add_argument("--mib", type=int, default=64, help="of a long message (default: %(default)s)")
    parser.add_argument("--rounds", type=int, default=3, help="turns that the backends take (default: %(default)s)")
    parser.add_argument("--what", choices=("short", "long", "both", "engine", "peers"), default="both")
    parser.add_argument("--operations", type=words(peers.OPERATIONS), default=peers.OPERATIONS, help=f"of --what peers (default: {','.join(peers.OPERATIONS)})")
    parser.add_argument("--bytes", type=sizes, default=sizes(peers.SIZES), help=f"of --what peers (default: {peers.SIZES})")
    parser.add_argument("--budget-ms", type=int, default=150, help="of --what peers, for each size (default: %(default)s)")
    parser.add_argument("--peers", default="", help="of --what peers: only these beside runjob, separated by commas; none: runjob alone (default: all that are installed)")
    parser.add_argument("--cores", type=words(("free", "pinned")), default=["free"], help="of --what peers: free, pinned (the processes of each host have one core), or both, separated by a comma (default: free)")
    parser.add_argument("--encrypted", action="store_true", help="of --what peers: runjob with --encrypt-data as well")
    parser.add_argument("--rate", default="", help="of --what peers: each host's cable, such as 1gbit (default: no limit)")
    parser.add_argument("--congestion-control", default="", metavar="NAME", help="of --what peers: the hosts' default for TCP (default: this machine's)")
    parser.add_argument("--builds", default=str(ROOT / "build/release"), help="of --what engine and peers: build folders, separated by commas (default: %(default)s)")
    parser.add_argument("--json", type=pathlib.Path, help="where to write all numbers")
    return parser.parse_args()


def program():
    return os.environ.get("RUNJOB_BETWEEN_HOSTS_RANK", ROOT / "build/release/bin/between_hosts_rank")


def run(backend, hosts, ranks, sizes):
    """{bytes: [seconds]} of one turn, as rank 0 measures them."""
    places = [index for index, _ in enumerate(hosts) for _ in range(ranks)]
    numbers = ",".join(map(str, places))
    processes = [
        hosts[place].popen(
            [str(program()), backend, str(rank), numbers, hosts[place].address, *sizes], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
        )
        for rank, place in enumerate(places)
    ]  # fmt: skip
    addresses = [process.stdout.readline() for process in processes]
    for process in processes:
        process.stdin.write("".join(addresses))
        process.stdin.flush()
    lines = []
    for number, process in enumerate(processes):
        while (line := process.stdout.readline()) not in ("done\n", ""):
            lines.append(json.loads(line))
        if line != "done\n":
            sys.exit(f"benchmarks/between_hosts: error: rank {number} of {backend} failed")
    for process in processes:
        process.communicate()
    return {line["bytes"]: line["seconds"] for line in lines}


def medians(hosts, arguments, sizes):
    """{backend: {bytes: the median of the turns' medians}}, the backends in turns."""
    found = {backend: {} for backend in BACKENDS}
    for _ in range(arguments.rounds):
        for backend in BACKENDS:
            for nbytes, seconds in run(backend, hosts, arguments.ranks, sizes).items():
                found[backend].setdefault(nbytes, []).append(statistics.median(seconds))
    return {backend: {nbytes: statistics.median(turns) for nbytes, turns in row.items()} for backend, row in found.items()}


def bound_seconds(nbytes, hosts, rate_mbit):
    """2(h-1)/h N/B with the payload's part of the rate."""
    return 2 * (hosts - 1) / hosts * nbytes * 8 / (rate_mbit * 1e6 * (1448 / 1514))


def measure_engine(arguments, counts):
    builds = [pathlib.Path(word).resolve() for word in arguments.builds.split(",")]
    with Testbed(max(counts), visible=[str(build) for build in builds]) as bed:
        for count in counts:
            for (nbytes, operations), row in engine.medians(bed, builds, bed.hosts[:count], arguments.ranks, arguments.rounds).items():
                times = ", ".join(f"{build} {seconds * 1e6:.1f} us" for build, seconds in row.items())
                print(f"{count} hosts, {operations} of {nbytes} bytes: {times}", flush=True)


def set_cores(host, index):
    """Binds what sshd starts on the host from now on to one core, a different one for each index; to none when it is None."""
    cores = sorted(os.sched_getaffinity(0))
    for process in host.processes(system=True):
        with contextlib.suppress(ProcessLookupError):  # it has ended since
            os.sched_setaffinity(process.machine_pid, cores if index is None else {cores[index % len(cores)]})


def measure_peers(arguments, counts):
    builds = [pathlib.Path(word).resolve() for word in arguments.builds.split(",")]
    found = peers.own(builds, arguments.encrypted)
    if arguments.peers != "none":
        others, absent = peers.find_others(builds[0], peers.programs_folder())
        for reason in absent:
            print(reason, flush=True)
        wanted = arguments.peers.split(",") if arguments.peers else list(others)
        if unknown := [name for name in wanted if name not in others]:
            sys.exit(f"benchmarks.between_hosts: --peers: no {', '.join(unknown)} here; there are {', '.join(others)}, and none")
        found |= {name: peer for name, peer in others.items() if name in wanted}
    tables = []
    with Testbed(max(counts), visible=sorted({folder for peer in found.values() for folder in peer.folders} - {"/usr"})) as bed:
        for host in bed.hosts:
            if arguments.rate:
                host.shape_network(arguments.rate, burst="256kb")
            if arguments.congestion_control:
                host.set_congestion_control(arguments.congestion_control)
        for count, cores in itertools.product(counts, arguments.cores):
            for index, host in enumerate(bed.hosts[:count]):
                set_cores(host, index if cores == "pinned" else None)
            print(f"{count} hosts, cores {cores}, {arguments.ranks} ranks on each, {arguments.rate or 'no limit of rate'}, microseconds (of rank 0's processor time):", flush=True)
            tables += [row | {"cores": cores} for row in peers.measure(bed, bed.hosts[:count], arguments.ranks, arguments, found, builds[-1])]
    if arguments.json:
        arguments.json.write_text(json.dumps(tables, indent=1) + "\n", encoding="utf-8")


def main():
    arguments = parse_arguments()
    counts = arguments.hosts
    if arguments.what == "peers":
        return measure_peers(arguments, counts)
    if arguments.what == "engine":
        return measure_engine(arguments, counts)
    report = {"short": {}, "long": {}, "ranks": arguments.ranks, "rate_mbit": arguments.rate_mbit}
    with Testbed(max(counts), sshd=False) as bed:
        for count in counts:
            hosts = bed.hosts[:count]
            if arguments.what != "long":
                report["short"][count] = row = medians(hosts, arguments, SHORT)
                for nbytes in row["gloo"]:
                    ours, gloo = row["hierarchical"][nbytes], row["gloo"][nbytes]
                    print(f"{count} hosts, {nbytes} bytes: {ours * 1e6:.1f} us, Gloo {gloo * 1e6:.1f} us, ratio {ours / gloo:.2f}", flush=True)
            if arguments.what == "short":
                continue
            for host in hosts:
                host.shape_network(f"{arguments.rate_mbit}mbit", burst="256kb")
            report["long"][count] = row = medians(hosts, arguments, [f"{arguments.mib << 20}:3"])
            for host in hosts:
                host.unshape_network()
            for nbytes in row["gloo"]:
                bound = bound_seconds(nbytes, count, arguments.rate_mbit)
                shares = {backend: bound / row[backend][nbytes] for backend in BACKENDS}
                print(f"{count} hosts, {nbytes >> 20} MiB at {arguments.rate_mbit} Mbit/s: " + ", ".join(
                    f"{backend} {row[backend][nbytes] * 1e3:.0f} ms, {share:.1%} of the wire's bound" for backend, share in shares.items()
                ), flush=True)  # fmt: skip
    if arguments.json:
        arguments.json.write_text(json.dumps(report, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    try:
        main()
    except TestbedError as error:
        sys.exit(f"benchmarks.between_hosts: error: {error}")
