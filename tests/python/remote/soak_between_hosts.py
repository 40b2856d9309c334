"""The soak of tests/runtime/soak.cc between hosts that are namespaces of this machine. By hand, as root:

cmake --build --preset release --target runtime_soak
python3 tests/python/remote/soak_between_hosts.py 600 --hosts s1:1,s2:1,s3:1,s4:1 --change-rates
"""

import argparse
import collections
import contextlib
import pathlib
import random
import signal
import sys
import threading
import time

ROOT = pathlib.Path(__file__).resolve().parents[3]
sys.path += [str(ROOT / "tests"), str(ROOT / "tests/python")]

from remote_jobs import run  # noqa: E402
from testbed import Testbed  # noqa: E402

PROGRAM = "runtime_soak"
RATES = ("10gbit", "1gbit", "200mbit", "50mbit", "")  # the last one: no limit


class Disturbance:
    """While it lasts, does something to the network of a random host again and again, also in the middle of messages."""

    def __init__(self, hosts, seed, pause_seconds):
        self._hosts = hosts
        self._pause_seconds = pause_seconds
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._run)
        self.random = random.Random(seed)
        self.counts = collections.Counter()
        self.failure = None

    def __enter__(self):
        self._thread.start()
        return self

    def __exit__(self, *_):
        self._ended.set()
        self._thread.join()

    def _run(self):
        try:
            while not self._ended.wait(self.random.uniform(*self._pause_seconds)):
                self.disturb(self.random.choice(self._hosts))
        except Exception as error:
            self.failure = error

    def disturb(self, host):
        raise NotImplementedError


class ChangingRates(Disturbance):
    """A host's cable gets another rate."""

    title = "changes of a cable's rate"

    def __init__(self, hosts, seed):
        super().__init__(hosts, seed, (0.2, 3.0))
        self._shaped = set()

    def disturb(self, host):
        rate = self.random.choice(RATES)
        if rate:
            host.shape_network(rate, burst="256kb")
            self._shaped.add(host.name)
        elif host.name in self._shaped:
            host.unshape_network()
            self._shaped.remove(host.name)
        self.counts[rate or "no limit"] += 1


class Interruptions(Disturbance):
    """A host's cable is pulled for up to 1.5 s. Pauses let connections come back, which wait twice as long after each loss."""

    title = "interruptions"

    def __init__(self, hosts, seed):
        super().__init__(hosts, seed, (2.0, 5.0))

    def disturb(self, host):
        host.cut_network()
        time.sleep(self.random.uniform(0.1, 1.5))
        host.restore_network()
        self.counts[host.name] += 1


class Stops(Disturbance):
    """A rank is stopped for up to 3 s."""

    title = "stops"

    def __init__(self, hosts, seed):
        super().__init__(hosts, seed, (0.5, 5.0))

    def disturb(self, host):
        ranks = [process for process in host.processes() if process.name == PROGRAM]
        if not ranks:
            return
        rank = self.random.choice(ranks)
        with contextlib.suppress(ProcessLookupError):  # it has just ended
            rank.kill(signal.SIGSTOP)
            time.sleep(self.random.uniform(0.1, 3.0))
            rank.kill(signal.SIGCONT)
            self.counts[host.name] += 1


def soak(bed, arguments):
    program = [str(ROOT / "build/release/bin" / PROGRAM), str(arguments.seconds), str(arguments.seed)]
    names = [word.split(":")[0] for word in arguments.hosts.split(",")]
    hosts = [host for host in bed.hosts if host.name in names]
    kinds = {ChangingRates: arguments.change_rates, Interruptions: arguments.interrupt, Stops: arguments.stop}
    wanted = [kind for kind, is_wanted in kinds.items() if is_wanted]
    options = ["--encrypt-data"] if arguments.encrypt_data else []
    with contextlib.ExitStack() as stack:
        disturbances = [stack.enter_context(kind(hosts, arguments.seed)) for kind in wanted]
        done = run(bed, "-H", arguments.hosts, *options, *program, timeout=arguments.seconds + 120)
    for each in disturbances:
        if each.failure:
            sys.exit(f"soak_between_hosts: error: there are no more {each.title}: {each.failure}")
        print(f"{each.title}:", ", ".join(f"{name} {count}" for name, count in sorted(each.counts.items())))
    return done


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("seconds", type=int)
    parser.add_argument("--hosts", default="s1:2,s2:2", help="as for `runjob -H`, of s1 to s4 (default: %(default)s)")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--change-rates", action="store_true", help="limit the rate of random hosts' cables meanwhile, differently every few seconds")
    parser.add_argument("--interrupt", action="store_true", help="cut off a random host for up to 1.5 s meanwhile, every few seconds")
    parser.add_argument("--stop", action="store_true", help="stop a random rank for up to 3 s meanwhile, every few seconds")
    parser.add_argument("--encrypt-data", action="store_true", help="as `runjob --encrypt-data`")
    parser.add_argument("--delays", default="", metavar="SECONDS,...", help="of each packet to and from s1, s2 ..., such as 0.005,0.0002")
    arguments = parser.parse_args()
    with Testbed(hosts=4) as bed:
        for host, seconds in zip(bed.hosts, filter(None, arguments.delays.split(","))):
            host.delay_network(float(seconds))
        done = soak(bed, arguments)
    sys.stdout.write(done.stdout)
    sys.stderr.write(done.stderr)
    sys.exit(done.returncode)


if __name__ == "__main__":
    main()
