"""python/runjob/basics.py: init(), and the names beside it. What they do is in test_job.py."""

import pytest

from runjob import basics, job
from runjob.numpy import init


@pytest.mark.parametrize("sets", ["static", [[0, 1]], [3]])
def test_init_takes_process_sets_only(sets):
    with pytest.raises(ValueError, match='give a list of ProcessSet, or "dynamic"'):
        basics.init(process_sets=sets)
    assert not basics.is_initialized()


def test_it_has_the_functions_of_the_job_and_the_init_of_every_framework():
    assert basics.init is init
    assert all(getattr(basics, name) is getattr(job, name) for name in basics.__all__ if name != "init")


def test_the_modules_of_the_package_import_each_other_in_any_order(run_python):
    for first in ("basics", "communicator", "process_sets", "job", "handles"):
        done = run_python(f"import runjob.{first}, runjob.basics; runjob.basics.init(); print(runjob.basics.size())")
        assert (done.returncode, done.stdout) == (0, "1\n"), done.stderr
