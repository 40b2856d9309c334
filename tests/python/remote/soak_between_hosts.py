"""The soak of tests/runtime/soak.cc between hosts that are namespaces of this machine. By hand, as root:

cmake --build --preset release --target runtime_soak
python3 tests/python/remote/soak_between_hosts.py 600 --hosts s1:1,s2:1,s3:1,s4:1 --change-rates
"""

import argparse
import collections
import pathlib
import random
import sys
import threading

ROOT = pathlib.Path(__file__).resolve().parents[3]
sys.path.append(str(ROOT / "tests"))

from remote_jobs import run  # noqa: E402
from testbed import Testbed  # noqa: E402

RATES = ("10gbit", "1gbit", "200mbit", "50mbit", "")  # the last one: no limit
PAUSE_SECONDS = (0.2, 3.0)


class ChangingRates:
    """While it lasts, gives the cable of a random host another rate again and again, also in the middle of messages."""

    def __init__(self, hosts, seed):
        self._hosts = hosts
        self._random = random.Random(seed)
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._run)
        self._shaped = set()
        self.changes = collections.Counter()
        self.failure = None

    def __enter__(self):
        self._thread.start()
        return self

    def __exit__(self, *_):
        self._ended.set()
        self._thread.join()

    def _run(self):
        try:
            while not self._ended.wait(self._random.uniform(*PAUSE_SECONDS)):
                self._change(self._random.choice(self._hosts), self._random.choice(RATES))
        except Exception as error:
            self.failure = error

    def _change(self, host, rate):
        if rate:
            host.shape_network(rate, burst="256kb")
            self._shaped.add(host.name)
        elif host.name in self._shaped:
            host.unshape_network()
            self._shaped.remove(host.name)
        self.changes[rate or "no limit"] += 1


def soak(bed, arguments):
    limit = arguments.seconds + 120
    program = [str(ROOT / "build/release/bin/runtime_soak"), str(arguments.seconds), str(arguments.seed)]
    if not arguments.change_rates:
        return run(bed, "-H", arguments.hosts, *program, timeout=limit)
    names = [word.split(":")[0] for word in arguments.hosts.split(",")]
    with ChangingRates([host for host in bed.hosts if host.name in names], arguments.seed) as rates:
        done = run(bed, "-H", arguments.hosts, *program, timeout=limit)
    if rates.failure:
        sys.exit(f"soak_between_hosts: error: the rates no longer change: {rates.failure}")
    print("changes of a cable's rate:", ", ".join(f"{rate} {count}" for rate, count in sorted(rates.changes.items())))
    return done


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("seconds", type=int)
    parser.add_argument("--hosts", default="s1:2,s2:2", help="as for `runjob -H`, of s1 to s4 (default: %(default)s)")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--change-rates", action="store_true", help="limit the rate of random hosts' cables meanwhile, differently every few seconds")
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
