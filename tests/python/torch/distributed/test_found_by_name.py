"""PyTorch finds the backend by the entry points of the package, and --torch-backend runjob answers for Gloo.

A folder with the package's entry points stands in for an installation, because the tests run from the source tree.
"""

import os
import subprocess
import sys

import pytest
import torch

import entry_points
import ranks

VERSION = tuple(int(part) for part in torch.__version__.split("+")[0].split(".")[:2])
pytestmark = pytest.mark.skipif(VERSION < (2, 14), reason="PyTorch 2.14 is the first that looks for backends")

PRINT_KIND = """
import torch.distributed as dist
dist.init_process_group({name})
dist.barrier()
print(type(dist.group.WORLD).__name__, dist.get_backend())
dist.destroy_process_group()
"""
#: The first process of a rank starts one that makes a group of its own, as asynchronous checkpoints do.
CHILD = """
import os, subprocess, sys
import torch.distributed as dist
dist.init_process_group("gloo")
print("rank", type(dist.group.WORLD).__name__)
environment = dict(os.environ, MASTER_PORT=str(int(os.environ["MASTER_PORT"]) + 1))
code = "import torch.distributed as d; d.init_process_group('gloo', init_method='file://' + __import__('sys').argv[1], rank=0, world_size=1); print('child', type(d.group.WORLD).__name__)"
print(subprocess.run([sys.executable, "-c", code, sys.argv[1] + os.environ["RANK"]], env=environment, capture_output=True, text=True, check=True).stdout, end="")
dist.destroy_process_group()
"""


@pytest.fixture(scope="module")
def installed(tmp_path_factory):
    """A folder for PYTHONPATH in which Python finds the entry points of pyproject.toml."""
    return entry_points.install(tmp_path_factory.mktemp("installed"))


def run(installed, code, *options, np=2, arguments=(), **variables):
    """The lines that the ranks print."""
    path = os.pathsep.join([str(ranks.ROOT / "python"), str(installed)])
    environment = {**ranks.environment(**variables), "PYTHONPATH": path}
    command = [str(ranks.LAUNCHER), "-np", str(np), *options, sys.executable, "-c", code, *arguments]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=ranks.TIMEOUT_SECONDS)
    assert done.returncode == 0, done.stderr
    return sorted(line.split(">:", 1)[1] for line in done.stdout.splitlines()), done.stderr


def test_the_name_needs_no_import(installed):
    assert run(installed, PRINT_KIND.format(name='"runjob"'))[0] == ["RunjobProcessGroup runjob"] * 2


def test_gloo_is_gloo_by_default(installed):
    assert run(installed, PRINT_KIND.format(name='"gloo"'))[0] == ["ProcessGroup gloo"] * 2


def test_the_option_answers_for_gloo(installed):
    assert run(installed, PRINT_KIND.format(name='"gloo"'), "--torch-backend", "runjob")[0] == ["RunjobProcessGroup gloo"] * 2


def test_the_option_answers_for_a_group_without_a_name(installed):
    code = PRINT_KIND.format(name="").replace("type(dist.group.WORLD)", "type(dist.group.WORLD._get_backend(__import__('torch').device('cpu')))")
    assert run(installed, code, "--torch-backend", "runjob")[0][0].startswith("RunjobBackend")


def test_a_child_of_a_rank_gets_gloo(installed, tmp_path):
    lines, _ = run(installed, CHILD, "--torch-backend", "runjob", arguments=[str(tmp_path / "store")])
    assert lines == ["child ProcessGroup"] * 2 + ["rank RunjobProcessGroup"] * 2


def test_an_unknown_backend_is_refused_by_the_launcher():
    done = subprocess.run([str(ranks.LAUNCHER), "--torch-backend", "nccl", "true"], capture_output=True, text=True)
    assert done.returncode != 0
    assert "'nccl' is not runjob or gloo" in done.stderr


def test_import_torch_loads_neither_the_bindings_nor_the_library(installed):
    code = "import torch, sys; print([name for name in sys.modules if name.startswith('runjob.') and name != 'runjob.exceptions'])"
    path = os.pathsep.join([str(ranks.ROOT / "python"), str(installed)])
    done = subprocess.run([sys.executable, "-c", code], env={**os.environ, "PYTHONPATH": path}, capture_output=True, text=True)
    assert done.stdout.strip() == "['runjob.torch_entry_points']", done.stderr


SMALLER = """
import torch, torch.distributed as dist
dist.init_process_group("gloo")
group = dist.new_group([1, 2])
total = torch.ones(1)
if dist.get_rank() > 0:
    dist.all_reduce(total, group=group)
dist.all_reduce(total)
print(type(dist.group.WORLD).__name__, type(group).__name__ if dist.get_rank() else "no member", total.item())
dist.destroy_process_group()
"""


def test_smaller_groups_are_process_sets(installed):
    lines, _ = run(installed, SMALLER, "--torch-backend", "runjob", np=3)
    assert lines == ["RunjobProcessGroup RunjobProcessGroup 5.0"] * 2 + ["RunjobProcessGroup no member 5.0"]
