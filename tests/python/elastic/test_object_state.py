"""python/runjob/elastic/object_state.py, in one process"""

import numpy as np
import pytest

from runjob.elastic import ObjectState, snapshot


def make(**values):
    return ObjectState(lambda value: value, lambda: 0, **values)


def test_what_has_changed_since_the_commit_is_undone():
    state = make(step=1, seen=[1, 2], weights=np.zeros(4), empty=np.zeros((0, 3)), number=np.ones(()), fixed=np.ones(2))
    weights, number = state.weights, state.number
    state.fixed.flags.writeable = False
    state.save()
    state.seen.append(3)
    state.step, state.weights[:], state.number[...] = 2, 7, 7
    state.restore()
    assert (state.step, state.seen) == (1, [1, 2])
    assert state.weights is weights and (weights == 0).all() and state.number is number and number == 1
    state.seen.append(3)
    state.weights = np.full(9, 7.0)
    state.restore()
    assert state.seen == [1, 2] and (state.weights == 0).all() and state.weights.shape == (4,)


def test_a_value_that_cannot_be_copied_is_named_and_leaves_the_commit_whole():
    state = make(step=1, source=None, weights=np.zeros(2))
    state.step, state.source = 2, (each for each in ())
    state.weights += 1
    with pytest.raises(ValueError, match="the state's source, of type generator, cannot be copied, .*keep it outside of the state"):
        state.save()
    state.restore()
    assert (state.step, state.source) == (1, None) and (state.weights == 0).all()


def test_a_copy_that_is_interrupted_is_no_commit():
    state = make(weights=np.zeros(2))
    state._note_newest(4)

    class Interrupted(Exception):
        pass

    class Arrays(type(snapshot.kind_named("numpy"))):
        def save(self, copy, value):
            raise Interrupted

    kinds = snapshot.kind_named.__globals__["_kinds"]
    plain, kinds["numpy"] = kinds["numpy"], Arrays()
    try:
        with pytest.raises(Interrupted):
            state.save()
    finally:
        kinds["numpy"] = plain
    assert state._commit_number == -1
    state._commit_live()
    assert state._commit_number == 5, "it counts on with the other ranks"
