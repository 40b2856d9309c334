"""open_mpi.py: what it finds where several MPIs are installed."""

import pytest

import open_mpi


def program(folder, name, version):
    path = folder / name
    path.write_text(f"#!/bin/sh\necho '{version}'\n")
    path.chmod(0o755)
    return str(path)


def test_debians_name_is_found_beside_an_mpirun_of_another_mpi(tmp_path):
    program(tmp_path, "mpirun", "HYDRA build details:")
    named = program(tmp_path, "mpirun.openmpi", "mpirun.openmpi (OpenRTE) 4.1.4")
    assert open_mpi.mpirun(str(tmp_path)) == named


def test_an_mpirun_of_open_mpi_is_taken_and_another_one_refused(tmp_path):
    found = program(tmp_path, "mpirun", "mpirun (Open MPI) 5.0.6")
    assert open_mpi.mpirun(str(tmp_path)) == found
    program(tmp_path, "mpirun", "HYDRA build details:")
    with pytest.raises(AssertionError, match=r"/mpirun is not Open MPI's; install Open MPI"):
        open_mpi.mpirun(str(tmp_path))
    with pytest.raises(AssertionError, match="no mpirun is not Open MPI's"):
        open_mpi.mpirun(str(tmp_path / "empty"))


def test_libraries_of_another_mpi_are_left_out_and_mpi4py_gets_open_mpi(tmp_path):
    (tmp_path / "libmpi.so.12").touch()
    found = open_mpi.variables({"LD_LIBRARY_PATH": f"/first:{tmp_path}::/last", "MPI4PY_MPIABI": "mpich", "KEPT": "1"})
    assert found == {"LD_LIBRARY_PATH": "/first:/last", "MPI4PY_MPIABI": "openmpi", "KEPT": "1"}
