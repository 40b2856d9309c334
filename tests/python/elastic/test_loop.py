"""python/runjob/elastic/loop.py in a job that is not elastic; test_elastic.py and test_elastic_jobs.py have elastic ones."""

import numpy as np
import pytest

import runjob.elastic
import runjob.numpy as hvd
from runjob.exceptions import HorovodInternalError


@runjob.elastic.run
def _train(state, *arguments, **options):
    """Trains."""
    if options.get("fail"):
        raise HorovodInternalError("of the program")
    return arguments, state.step, state.parts["weights"].tolist(), state.parts["weights"] is _train.weights


def _trained():
    hvd.init()
    _train.weights = np.full(3, hvd.rank())
    state = runjob.elastic.ObjectState(step=hvd.rank() + 1, parts={"weights": _train.weights})
    result = _train(state, "argument")
    state.step = 5
    state.restore()
    try:
        _train(state, fail=True)
    except HorovodInternalError as error:
        return result, state.step, str(error)


def test_a_static_job_begins_with_the_state_of_rank_0_and_raises_errors(call_ranks):
    assert call_ranks(_trained, 3) == [((("argument",), 1, [0, 0, 0], True), 1, "of the program")] * 3
    assert _train.__doc__ == "Trains."


def _with_reset():
    import horovod.common.elastic

    hvd.init()
    reset = []
    state = horovod.common.elastic.ObjectState(hvd.broadcast_object, hvd.rank, step=hvd.rank())
    return horovod.common.elastic.run_fn(lambda state: state.step, lambda: reset.append(1))(state), reset


def test_a_function_for_resets_has_no_effect(call_ranks):
    assert call_ranks(_with_reset, 2) == [(0, [])] * 2


def test_it_needs_the_job():
    with pytest.raises(ValueError, match="call init"):
        _train(runjob.elastic.ObjectState())
