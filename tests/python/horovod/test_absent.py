"""python/horovod/_absent.py: modules that Horovod has and runjob has not."""

import importlib
import importlib.util
import sys

import pytest

import horovod
from horovod import _absent


@pytest.mark.parametrize("name", [each for each in sorted(_absent.ABSENT) if not each.startswith("horovod.tensorflow")])
def test_the_import_names_a_replacement_and_a_search_finds_nothing(name):
    with pytest.raises(ModuleNotFoundError) as caught:
        importlib.import_module(name)
    purpose, replacement = _absent.ABSENT[name]
    assert str(caught.value) == f"{name}, {purpose}, is not in this version of runjob: {replacement}. docs/migration.md lists all differences"
    assert caught.value.name == name
    assert importlib.util.find_spec(name) is None


def test_a_module_in_an_absent_one_is_explained_by_it():
    with pytest.raises(ModuleNotFoundError, match="^horovod.spark, Horovod inside of Spark jobs, is not in this version of runjob: write"):
        import horovod.spark.torch  # noqa: F401


def test_a_name_of_the_package_is_explained_too():
    with pytest.raises(ModuleNotFoundError, match="^horovod.ray, Horovod inside of Ray actors, is not in this version of runjob: start"):
        from horovod import ray  # noqa: F401


@pytest.mark.parametrize("name", ["horovod._keras", "horovod.runner.gloo_run", "horovod.runner.common.util.network", "horovod.runner.elastic"])
def test_what_only_horovods_own_parts_use_is_not_there(name):
    assert importlib.util.find_spec(name) is None


@pytest.mark.parametrize("module, name", [("basics", "HorovodBasics"), ("util", "get_ext_suffix"), ("process_sets", "_setup")])
def test_names_that_only_horovods_own_parts_use_are_not_there(module, name):
    assert not hasattr(importlib.import_module(f"horovod.common.{module}"), name)


def test_an_unknown_module_is_pythons_business():
    with pytest.raises(ModuleNotFoundError, match="^No module named 'horovod.nonsense'$"):
        importlib.import_module("horovod.nonsense")


def test_a_module_that_is_installed_is_imported(tmp_path, monkeypatch):
    """Somebody's own horovod.ray is found before the explanation is."""
    (tmp_path / "ray.py").write_text("answer = 42\n")
    monkeypatch.setattr(horovod, "__path__", [*horovod.__path__, str(tmp_path)])
    monkeypatch.delitem(sys.modules, "horovod.ray", raising=False)
    assert importlib.import_module("horovod.ray").answer == 42
    del sys.modules["horovod.ray"], horovod.ray


def test_there_is_one_finder():
    _absent.explain()
    assert sum(type(finder).__name__ == "_Explainer" for finder in sys.meta_path) == 1
