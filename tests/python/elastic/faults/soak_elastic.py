"""A soak of an elastic job that loses and gains ranks and hosts of a testbed at random. By hand, as root:

cmake --build --preset release --target runjob_command runjob-agent elastic_rank
python3 tests/python/elastic/faults/soak_elastic.py SECONDS [SEED]

Prints how many generations there were, and their causes. The ranks check every value, and at the end nothing may be left.
"""

import collections
import pathlib
import re
import sys

ROOT = pathlib.Path(__file__).resolve().parents[4]
sys.path += [str(ROOT / "tests"), str(ROOT / "tests/python/remote")]

from schedules import HOSTS, Schedule  # noqa: E402
from testbed import Testbed  # noqa: E402


def main():
    if len(sys.argv) not in (2, 3):
        sys.exit(__doc__)
    seconds, seed = float(sys.argv[1]), int((sys.argv[2:] or ["1"])[0])
    with Testbed(hosts=HOSTS) as bed:
        errors = Schedule(bed, seed).run(seconds)
    causes = collections.Counter(re.findall(r"generation \d+: .*?: .*?(was killed|lost the agent|the hosts have changed)", errors))
    print(f"{sum(causes.values())} generations in {seconds:g} s with seed {seed}: " + ", ".join(f"{n} x {cause}" for cause, n in causes.items()))


if __name__ == "__main__":
    main()
