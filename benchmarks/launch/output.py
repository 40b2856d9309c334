"""How fast a launcher relays its ranks' output, line by line and tagged, to a file in memory; and that nothing is lost."""

import os
import pathlib
import re
import statistics
import subprocess
import sys
import tempfile
import time

import writer

WRITER = pathlib.Path(writer.__file__).resolve()


def measure_one(peer, ranks, blocks, folder):
    """Seconds for `blocks` blocks from each rank, and what is wrong with the output or ""."""
    program = [sys.executable, str(WRITER), peer.rank_variable, str(blocks)]
    with tempfile.TemporaryFile(dir=folder) as file:
        started = time.perf_counter()
        done = subprocess.run(
            peer.command(ranks, program, tagged=True), stdin=subprocess.DEVNULL, stdout=file, stderr=subprocess.PIPE, check=False
        )
        seconds = time.perf_counter() - started
        if done.returncode:
            raise RuntimeError(f"{peer.name}: status {done.returncode}: {done.stderr.decode()[-500:]}")
        file.seek(0)
        return seconds, fault(peer, file, ranks, blocks)


def fault(peer, file, ranks, blocks):
    """The first line that is lost, torn or out of order, or ""."""
    expected = [writer.lines_of(rank) for rank in range(ranks)]
    seen = [0] * ranks
    tag = re.compile(peer.tag_pattern)
    for line in file:
        match = tag.match(line)
        if not match:
            return f"a line without a tag: {shown(line)}"
        rank = int(match.group(1))
        if line[match.end() :] != expected[rank][seen[rank] % writer.LINES]:
            return f"line {seen[rank]} of rank {rank} is not what it wrote: {shown(line)}"
        seen[rank] += 1
    if seen != [blocks * writer.LINES] * ranks:
        return f"of {blocks * writer.LINES} lines of each rank there came {seen}"
    return ""


def shown(line):
    return re.sub(r"\s+", " ", line[:150].decode(errors="replace")).strip()


def measure(peers, ranks, total_bytes, rounds, say):
    """{peer: {"seconds": [...], "megabytes_per_second": of the median, "fault": "" or what is wrong}}"""
    folder = "/dev/shm" if os.access("/dev/shm", os.W_OK) else None
    blocks = total_bytes // (ranks * writer.LINES * writer.LINE_BYTES)
    written = blocks * ranks * writer.LINES * writer.LINE_BYTES
    results = {peer.name: {"seconds": [], "fault": ""} for peer in peers if peer.tag is not None}
    for turn in range(rounds):
        for peer in (peer for peer in peers if peer.name in results):
            say(f"output, {written / 1e6:.0f} MB through {peer.name}, run {turn + 1} of {rounds}")
            seconds, wrong = measure_one(peer, ranks, blocks, folder)
            results[peer.name]["seconds"].append(seconds)
            results[peer.name]["fault"] = results[peer.name]["fault"] or wrong
    for row in results.values():
        row["megabytes_per_second"] = written / 1e6 / statistics.median(row["seconds"])
    return results


def table(results):
    lines = ["| launcher | MB/s | all lines whole and in order |", "|---|---:|---|"]
    for name, row in results.items():
        whole = f"no: `{row['fault']}`" if row["fault"] else "yes"
        lines.append(f"| {name} | {row['megabytes_per_second']:.0f} | {whole} |")
    return "\n".join(lines)
