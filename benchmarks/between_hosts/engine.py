"""Blocking and asynchronous allreduce through the whole of runjob, as jobs between hosts."""

import json
import statistics

BLOCKING = ["--mode", "blocking", "--bytes", "8,4096", "--budget-ms", "400"]
ASYNCHRONOUS = ["--mode", "asynchronous", "--bytes", "8,40960", "--in-flight", "100,100", "--budget-ms", "1000"]


def run(bed, build, hosts, ranks, options):
    """{(bytes, operations): the median in seconds} of one job, as rank 0 measures it."""
    names = ",".join(f"{host.name}:{ranks}" for host in hosts)
    program = [f"{build}/bin/collectives_benchmark", "--op", "allreduce", "--dtype", "float32", *options]
    variables = {"LD_LIBRARY_PATH": f"{build}/lib"}
    done = bed.head.run([f"{build}/bin/runjob", "-H", names, *program], timeout=300, variables=variables)
    if done.returncode != 0:
        raise SystemExit(f"benchmarks/between_hosts: error: a job of {build} failed: {done.stderr}")
    rows = [json.loads(line[line.index("{") :]) for line in done.stdout.splitlines() if '"bytes"' in line]
    return {(row["bytes"], row["operations"]): statistics.median(row["times_us"]) * 1e-6 for row in rows}


def medians(bed, builds, hosts, ranks, turns):
    """{(bytes, operations): {build: the median of the turns' medians}}, the builds in turns."""
    found = {}
    for _ in range(turns):
        for build in builds:
            for options in (BLOCKING, ASYNCHRONOUS):
                for case, seconds in run(bed, build, hosts, ranks, options).items():
                    found.setdefault(case, {}).setdefault(str(build), []).append(seconds)
    return {case: {build: statistics.median(turns) for build, turns in row.items()} for case, row in found.items()}
