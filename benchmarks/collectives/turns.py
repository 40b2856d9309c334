"""Runs the programs of a case in turns, in an order that rotates, so that what else the machine does meets all of them alike."""

import json
import os
import re
import signal
import subprocess

from benchmarks.collectives import peers as peers_module
from benchmarks.collectives import summary

GRACE_SECONDS = 5
TAG = re.compile(r"^\[[\d,]+\](<stdout>:)? ?")  # what a launcher may put before a rank's line


class Failed(Exception):
    """A program that ended with an error, in its own words."""


def parse_lines(text):
    """The lines of JSON among a program's output."""
    lines = (TAG.sub("", line) for line in text.splitlines())
    return [json.loads(line) for line in lines if line.startswith("{")]


def last_words(text):
    """Of an error output, the line that says most: the last one that names an error, or the last one."""
    lines = [line.strip() for line in text.splitlines() if line.strip()] or ["no error output"]
    return next((line for line in reversed(lines) if re.search(r"\b\w*(Error|error|wrong)\b.*\w", line)), lines[-1])[:300]


def end(process):
    """First politely: a launcher then ends its ranks, which may have process groups of their own."""
    os.killpg(process.pid, signal.SIGTERM)
    try:
        process.communicate(timeout=GRACE_SECONDS)
    except subprocess.TimeoutExpired:
        os.killpg(process.pid, signal.SIGKILL)
        process.communicate()


def run_program(command, environment, timeout):
    """Its standard output."""
    process = subprocess.Popen(
        command, env={**os.environ, "OMP_NUM_THREADS": "1", **environment}, stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, start_new_session=True,
    )  # fmt: skip
    try:
        output, errors = process.communicate(timeout=timeout)
    except subprocess.TimeoutExpired:
        end(process)
        raise Failed(f"no result after {timeout:g} s") from None
    except BaseException:  # Ctrl-C does not reach it: it has a session of its own
        end(process)
        raise
    if process.returncode:
        raise Failed(f"status {process.returncode}: {last_words(errors)}")
    return output


def words_for(peer, case, arguments):
    words = [*case.words(), "--budget-ms", str(arguments.budget_ms)]
    if peer.name != peers_module.LIMITS:
        return words
    sizes = ",".join(map(str, case.limit_sizes().values()))
    return ["--bytes", sizes, "--budget-ms", str(arguments.budget_ms)]


def read_turn(peer, case, lines):
    """One turn's lines as (library, {series: {bytes: times in us}}, {bytes: reason for being skipped})."""
    library, series, skipped = "", {}, {}
    original = {limit: nbytes for nbytes, limit in case.limit_sizes().items()}
    for line in lines:
        if "library" in line:
            library = " ".join(line["library"].split())
        elif "skipped" in line:
            skipped[line["bytes"]] = line["skipped"]
        elif "limit" in line:
            series.setdefault(line["limit"], {})[original[line["bytes"]]] = line["times_us"]
        else:
            times = [case.unit_time(time, line["operations"]) for time in line["times_us"]]
            series.setdefault(peer.name, {})[line["bytes"]] = times
    return library, series, skipped


class CaseMeasurement:
    """The turns of one case: what each program gave, and why some gave nothing."""

    def __init__(self, case, peers, arguments, say):
        self.case, self.arguments, self.say = case, arguments, say
        self.peers = [peer for peer in peers if peer.measures(case)]
        self.libraries, self.rounds, self.left_out = {}, {}, {}

    def run(self):
        for turn in range(self.arguments.rounds):
            start = turn % len(self.peers)
            for peer in self.peers[start:] + self.peers[:start]:
                if peer.name not in self.left_out:
                    self._take_turn(peer)
        return self

    def _take_turn(self, peer):
        command = peer.command(self.case.np, words_for(peer, self.case, self.arguments))
        try:
            lines = parse_lines(run_program(command, peer.environment, self.arguments.timeout))
        except (Failed, OSError) as error:
            self._leave_out(peer, str(error))
            return
        library, series, skipped = read_turn(peer, self.case, lines)
        if not re.match(peer.reports, library):
            self._leave_out(peer, f"it is another library, which calls itself '{library}'")
            return
        self.libraries[peer.name] = library
        for name, by_size in series.items():
            for nbytes, times in by_size.items():
                self.rounds.setdefault(name, {}).setdefault(nbytes, []).append(summary.of_turn(times))
        if skipped and not series:
            self._leave_out(peer, next(iter(skipped.values())))
        elif not series:
            self._leave_out(peer, "it printed no times")

    def _leave_out(self, peer, reason):
        self.left_out[peer.name] = reason
        self.rounds.pop(peer.name, None)  # the rounds of before would be compared with others' later ones
        self.say(f"left out: {peer.name}, {self.case.title}: {reason}")

    def results(self):
        """{series: {bytes: figures}}; see summary.of_rounds()."""
        return {
            name: {nbytes: summary.of_rounds(turns) for nbytes, turns in by_size.items()}
            for name, by_size in self.rounds.items()
        }
