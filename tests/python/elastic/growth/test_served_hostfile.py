"""A hostfile on a file system of which inotify does not report all changes."""

import os
import pathlib
import subprocess
import sys

import pytest
from jobs import RUNJOB, TIMEOUT, by_rank

HERE = pathlib.Path(__file__).parent
SIZES = HERE.with_name("sizes.py")


def test_a_hostfile_on_a_networks_file_system_is_looked_at(root, tmp_path):
    """FUSE stands in for NFS, which this kernel may not have: of both, inotify does not report what others change."""
    if not os.path.exists("/dev/fuse"):
        pytest.skip("there is no /dev/fuse, so no file system can be made whose changes the kernel does not see")
    folder, file = tmp_path / "mounted", tmp_path / "hosts"
    folder.mkdir()
    file.write_text("localhost slots=1\n")
    job_command = [RUNJOB, "-np", "1", "--max-np", "2", "--min-np", "1", "--hostfile", folder / "hosts", sys.executable, SIZES, "1,2"]
    words = [sys.executable, HERE / "served_hostfile.py", folder, file, *job_command]
    with subprocess.Popen(list(map(str, words)), stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as job:
        assert job.stdout.readline() == "[0]<stdout>:size 1\n", job.stderr.read()
        file.write_text("localhost slots=2\n")
        output, errors = job.communicate(timeout=TIMEOUT)
    assert job.returncode == 0, errors
    assert "2 ranks (generation 1)" in errors
    assert {lines[-1] for lines in by_rank(output).values()} >= {"process 0 on localhost: rank 0 of 2, [1, 2]"}
