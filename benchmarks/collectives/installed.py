"""What a Python interpreter has installed."""

import pathlib
import shutil
import subprocess

HOROVOD = "import importlib.metadata as m, horovod.{0}; print(m.version('horovod'))"  # runjob's stand-in has another name


def runs(python, code):
    return bool(shutil.which(python)) and not subprocess.run([python, "-c", code], capture_output=True, check=False).returncode


def has_module(python, module):
    return runs(python, f"import {module}")


def horovodrun(python, framework="torch", option="--horovod-python"):
    """The command of Horovod itself; None, and the reason, when it is not there for the framework."""
    command = pathlib.Path(python).parent / "horovodrun"
    if runs(python, HOROVOD.format(framework)) and command.exists():
        return command, None
    return None, f"horovod: {python} has no horovod.{framework} with horovodrun beside it: name one that has with {option}"
