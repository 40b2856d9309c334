"""python/runjob/exceptions.py: which exception a code becomes."""

import pytest

from runjob import exceptions
from runjob.exceptions import Code

FAILURES = [code for code in Code if code != Code.OK]


@pytest.mark.parametrize("code", FAILURES)
def test_a_failure_keeps_its_code_and_text(code):
    error = exceptions.from_code(int(code), "rank 3 is gone")
    assert isinstance(error, exceptions.Error)
    assert error.code == code
    assert str(error) == "rank 3 is gone"


@pytest.mark.parametrize("code", FAILURES)
def test_all_but_invalid_arguments_are_what_elastic_training_catches(code):
    error = exceptions.from_code(code, "")
    assert isinstance(error, exceptions.HorovodInternalError) == (code != Code.INVALID_ARGUMENT)
    assert isinstance(error, RuntimeError) == (code != Code.INVALID_ARGUMENT)


@pytest.mark.parametrize("code", [Code.INVALID_ARGUMENT, Code.NOT_INITIALIZED])
def test_what_horovod_raises_as_value_error_is_one(code):
    assert isinstance(exceptions.from_code(code, ""), ValueError)


def test_kinds_differ():
    kinds = [type(exceptions.from_code(code, "")) for code in FAILURES if code not in (Code.IN_PROGRESS, Code.INTERNAL)]
    assert len(set(kinds)) == len(kinds)


def test_a_hosts_update_says_whether_to_synchronize():
    assert exceptions.HostsUpdatedInterrupt().skip_sync is False
    assert exceptions.HostsUpdatedInterrupt(skip_sync=True).skip_sync is True
