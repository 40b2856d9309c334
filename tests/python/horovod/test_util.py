"""python/horovod/common/util.py."""

import os

import pytest

from ranks import ROOT

from horovod.common import util


def test_frameworks_that_this_version_serves():
    assert util.extension_available("torch", verbose=True)
    for module in (ROOT / "python" / "horovod").glob("*/__init__.py"):
        if module.parent.name not in ("common", "runner"):
            assert module.parent.name in util._FRAMEWORKS
    assert not util.extension_available("mxnet") and not util.extension_available("no_such_framework")
    util.check_extension("horovod.torch", "HOROVOD_WITH_PYTORCH", __file__, "mpi_lib_v2")
    with pytest.raises(ImportError, match="horovod.mxnet cannot be used: this version of runjob has no module for it"):
        util.check_extension("horovod.mxnet", "HOROVOD_WITH_MXNET", __file__)
    assert util.gpu_available("torch") is False


@pytest.mark.parametrize("nccl", [0, 22809])
def test_gpus_are_available_where_nccl_is_whichever_driver_it_uses(monkeypatch, nccl):
    monkeypatch.setattr(util.backends, "nccl_built", lambda: nccl)
    monkeypatch.setattr(util.backends, "cuda_built", lambda: False)
    assert util.gpu_available("torch") is (nccl > 0)
    assert util.gpu_available("mxnet") is False


@pytest.mark.parametrize("framework", util._FRAMEWORKS)
def test_every_framework_that_is_installed_is_available(framework, tmp_path, monkeypatch):
    (tmp_path / f"{framework}.py").touch()
    monkeypatch.syspath_prepend(tmp_path)
    assert util.extension_available(framework)
    util.check_extension(f"horovod.{framework}", "HOROVOD_WITH", __file__)


def test_what_is_built():
    assert (util.ddl_built(), util.ccl_built(), util.nccl_built(), util.mpi_built(verbose=True)) == (False, False, 0, False)


def test_variables_for_a_while(monkeypatch):
    monkeypatch.setenv("RUNJOB_TEST_A", "before")
    monkeypatch.delenv("RUNJOB_TEST_B", raising=False)
    with util.env(RUNJOB_TEST_A=None, RUNJOB_TEST_B=3):
        assert "RUNJOB_TEST_A" not in os.environ and os.environ["RUNJOB_TEST_B"] == "3"
    assert os.environ["RUNJOB_TEST_A"] == "before" and "RUNJOB_TEST_B" not in os.environ


def test_a_cached_function_is_called_once_for_each_argument():
    calls = []
    cached = util._cache(lambda value: calls.append(value) or value)
    assert [cached(1), cached(1), cached(2)] == [1, 1, 2] and calls == [1, 2]


@pytest.mark.parametrize("count, n, expected", [(5, 2, [[0, 1, 2], [3, 4]]), (4, 2, [[0, 1], [2, 3]]), (1, 3, [[0], [], []])])
def test_lists_are_split_evenly(count, n, expected):
    assert util.split_list(list(range(count)), n) == expected


def test_powers_of_two():
    assert [number for number in range(-1, 17) if util.num_rank_is_power_2(number)] == [1, 2, 4, 8, 16]


@pytest.mark.parametrize("version, is_newer", [("2.1.0", True), ("2.1.0+cpu", True), ("2.0.9", False), ("2.10", True), ("1.13.1", False)])
def test_versions_are_compared_as_numbers(version, is_newer):
    assert util.is_version_greater_equal_than(version, "2.1.0") is is_newer


def test_a_target_version_has_three_numbers():
    with pytest.raises(ValueError, match="'2.1' is not of the form 1.2.3"):
        util.is_version_greater_equal_than("2.1.0", "2.1")


def test_what_can_be_iterated_over():
    assert util.is_iterable([]) and util.is_iterable("a") and not util.is_iterable(3)
