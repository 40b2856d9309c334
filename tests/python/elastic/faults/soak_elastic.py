"""A soak of an elastic job that loses and gains ranks and hosts of a testbed at random. By hand, as root:

cmake --build --preset release --target runjob_command runjob-agent elastic_rank
python3 tests/python/elastic/faults/soak_elastic.py SECONDS [--seed N] [--disturb]

Prints how many generations there were, and their causes. The ranks check every value, and at the end nothing may be left.
"""

import argparse
import collections
import pathlib
import re
import sys

ROOT = pathlib.Path(__file__).resolve().parents[4]
sys.path += [str(ROOT / "tests"), str(ROOT / "tests/python"), str(ROOT / "tests/python/remote")]

from schedules import HOSTS, Schedule  # noqa: E402
from testbed import Testbed  # noqa: E402


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("seconds", type=float)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--disturb", action="store_true", help="also interrupt networks and stop processes")
    arguments = parser.parse_args()
    with Testbed(hosts=HOSTS) as bed:
        errors = Schedule(bed, arguments.seed, arguments.disturb).run(arguments.seconds)
    causes = collections.Counter(re.findall(r"(was killed|lost the agent|the hosts have changed).* \(generation \d+\)", errors))
    counts = ", ".join(f"{n} x {cause}" for cause, n in causes.items())
    print(f"{sum(causes.values())} generations in {arguments.seconds:g} s with seed {arguments.seed}: {counts}")


if __name__ == "__main__":
    main()
