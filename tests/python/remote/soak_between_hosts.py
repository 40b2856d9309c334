"""The soak of tests/runtime/soak.cc between hosts that are namespaces of this machine. By hand, as root:

cmake --build --preset release --target runtime_soak
python3 tests/python/remote/soak_between_hosts.py SECONDS [HOSTS [SEED]]

HOSTS is as for `runjob -H`, of s1 to s4: "s1:2,s2:2" when not given.
"""

import pathlib
import sys

ROOT = pathlib.Path(__file__).resolve().parents[3]
sys.path.append(str(ROOT / "tests"))

from remote_jobs import run  # noqa: E402
from testbed import Testbed  # noqa: E402


def main():
    if len(sys.argv) < 2:
        sys.exit(__doc__)
    seconds, hosts, seed = (sys.argv[1:] + ["s1:2,s2:2", "1"][len(sys.argv) - 2 :])[:3]
    with Testbed(hosts=4) as bed:
        done = run(bed, "-H", hosts, str(ROOT / "build/release/bin/runtime_soak"), seconds, seed, timeout=int(seconds) + 120)
    sys.stdout.write(done.stdout)
    sys.stderr.write(done.stderr)
    sys.exit(done.returncode)


if __name__ == "__main__":
    main()
