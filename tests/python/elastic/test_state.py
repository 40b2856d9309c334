"""python/runjob/elastic/state.py, in one process"""

import pytest

from runjob.elastic import ObjectState
from runjob.exceptions import HostsUpdatedInterrupt


def make(**values):
    return ObjectState(lambda value: value, lambda: 0, **values)


def test_the_programs_own_notices_are_looked_for():
    """As Horovod's test scripts do it."""
    state = make(step=1)
    assert state._host_messages.empty()
    state.check_host_updates()
    state.on_hosts_updated(5, 2)
    assert not state._host_messages.empty()
    with pytest.raises(HostsUpdatedInterrupt) as caught:
        state.check_host_updates()
    assert caught.value.skip_sync is False and state._last_updated_timestamp == 5
    state.on_hosts_updated(5, 1)
    state.commit()  # an old one
    state.on_hosts_updated(6, 1)
    with pytest.raises(HostsUpdatedInterrupt) as caught:
        state.commit()
    assert caught.value.skip_sync is True
