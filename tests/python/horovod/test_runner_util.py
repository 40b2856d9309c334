"""python/horovod/runner/common/util and runner/util: what scripts import from inside of Horovod's launcher."""

import threading
import time

import pytest

from horovod.runner.common.util import env, hosts, timeout
from horovod.runner.common.util.hosts import SlotInfo, get_host_assignments, parse_hosts
from horovod.runner.util.threads import execute_function_multithreaded, in_thread, on_event

LAUNCHERS = [("HOROVOD_RANK", "HOROVOD_SIZE"), ("OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE"), ("PMI_RANK", "PMI_SIZE")]


@pytest.fixture
def no_launcher(monkeypatch):
    for name in sum(LAUNCHERS, ()):
        monkeypatch.delenv(name, raising=False)
    return monkeypatch


@pytest.mark.parametrize("rank, size", LAUNCHERS)
def test_rank_and_size_of_a_launcher(no_launcher, rank, size):
    assert env.get_env_rank_and_size() == (0, 1)
    no_launcher.setenv(rank, "2")
    with pytest.raises(RuntimeError, match=f"has {rank} and no {size}"):
        env.get_env_rank_and_size()
    no_launcher.setenv(size, "3")
    assert env.get_env_rank_and_size() == (2, 3)


def test_rank_and_size_as_runjob_gives_them(run_ranks):
    assert run_ranks(_rank_and_size, 2).results == [(0, 2), (1, 2)]


def _rank_and_size():
    return env.get_env_rank_and_size()


def test_variables_that_stay_on_their_host():
    names = ["PATH", "OLDPWD", "BASH_FUNC_module%%", "NVIDIA_CUDA_VISIBLE_DEVICES"]
    assert [env.is_exportable(name) for name in names] == [True, False, False, False]


def test_kubeflows_agent(monkeypatch):
    monkeypatch.delenv("OMPI_MCA_plm_rsh_agent", raising=False)
    assert not env.is_kubeflow_mpi()
    monkeypatch.setenv("OMPI_MCA_plm_rsh_agent", "/etc/mpi/kubexec.sh")
    assert env.is_kubeflow_mpi()


def test_hosts_as_text(tmp_path):
    assert [(host.hostname, host.slots) for host in parse_hosts("worker-0:2, 10.0.0.1:4")] == [("worker-0", 2), ("10.0.0.1", 4)]
    assert hosts.parse_hosts_and_slots("a:1,b:2") == (["a", "b"], {"a": 1, "b": 2})
    file = tmp_path / "hosts"
    file.write_text("a slots=2\n\n# none\nb slots = 1\n")
    assert hosts.parse_host_files(str(file)) == "a:2,b:1"
    file.write_text("a slots=2\nb\n")
    with pytest.raises(ValueError, match="hosts:2: 'b' is not of the form `name slots=N`"):
        hosts.parse_host_files(str(file))
    with pytest.raises(ValueError, match="'b' is not of the form name:slots"):
        parse_hosts("a:1,b")


def test_places_of_ranks():
    found = get_host_assignments(parse_hosts("a:2,b:1,c:2"), 2, 4)
    assert found == [SlotInfo("a", 0, 0, 0, 4, 2, 3), SlotInfo("a", 1, 1, 0, 4, 2, 1), SlotInfo("b", 2, 0, 1, 4, 1, 3), SlotInfo("c", 3, 0, 2, 4, 1, 3)]
    assert found[1].to_response_string() == "1,4,1,2,0,1"
    assert [(each.rank, each.local_rank, each.local_size) for each in get_host_assignments(parse_hosts("a:1,a:1"), 1)] == [(0, 0, 2), (1, 1, 2)]
    assert hosts.INVALID_SLOT_INFO.rank == -1
    with pytest.raises(ValueError, match="3 processes do not fit into 2 slots"):
        get_host_assignments(parse_hosts("a:2"), 3)


def test_places_are_those_of_a_job(run_ranks):
    """What runjob gives the ranks of a job on this host."""
    expected = get_host_assignments(parse_hosts("localhost:2"), 2)
    assert run_ranks(_place, 2).results == [each.to_response_string() for each in expected]


def _place():
    import runjob.basics as job

    job.init()
    return ",".join(map(str, (job.rank(), job.size(), job.local_rank(), job.local_size(), job.cross_rank(), job.cross_size())))


def test_a_deadline():
    later = timeout.Timeout(1000, "Waiting for {activity}")
    assert 990 < later.remaining() <= 1000 and not later.timed_out()
    later.check_time_out_for("ranks")
    now = timeout.Timeout(0, "Waiting for {activity}")
    time.sleep(0.001)
    assert now.remaining() == 0 and now.timed_out()
    with pytest.raises(timeout.TimeoutException, match="^Waiting for ranks. Timeout after 0 seconds.$") as caught:
        now.check_time_out_for("ranks")
    assert caught.value.message == str(caught.value)


def test_functions_in_threads():
    found = []
    in_thread(found.append, (1,), name="one").join()
    in_thread(lambda: 1 / 0, silent=True).join()
    assert found == [1]
    with pytest.raises(ValueError, match="args=3 is no tuple"):
        in_thread(print, 3)


def test_functions_on_events():
    event, stop, found = threading.Event(), threading.Event(), []
    waiting = on_event(event, found.append, (1,))
    stopped = on_event(threading.Event(), found.append, (2,), stop=stop, check_stop_interval_s=0.01, daemon=False)
    stop.set()
    stopped.join()
    assert waiting.is_alive() and found == []
    event.set()
    waiting.join()
    assert found == [1]
    with pytest.raises(ValueError, match="needs stop="):
        on_event(event, print, daemon=False)
    with pytest.raises(ValueError, match="needs an event"):
        on_event(None, print)


def test_one_function_many_times():
    assert execute_function_multithreaded(lambda a, b: a + b, [(1, 2), (3, 4)], max_concurrent_executions=1) == {0: 3, 1: 7}
    assert execute_function_multithreaded(print, []) == {}
    with pytest.raises(ZeroDivisionError):
        execute_function_multithreaded(lambda a: 1 / a, [(1,), (0,)])
    done = threading.Event()
    assert execute_function_multithreaded(done.set, [()], block_until_all_done=False) is None
    assert done.wait(10)
