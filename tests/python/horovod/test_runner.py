"""horovod.run() and the command horovodrun."""

import inspect
import re
import subprocess
import sys
import warnings

import pytest

import horovod
import horovod.runner
import ranks
import runjob

pytest.importorskip("cloudpickle")


@pytest.fixture(autouse=True)
def launcher(monkeypatch):
    monkeypatch.setenv("RUNJOB_BIN", str(ranks.LAUNCHER))
    monkeypatch.setenv("OMP_NUM_THREADS", "1")


def horovodrun(*arguments, **environment):
    command = [sys.executable, "-m", "horovod.runner.launch", *arguments]
    return subprocess.run(
        command, env=ranks.environment(RUNJOB_BIN=str(ranks.LAUNCHER), **environment), capture_output=True, text=True, timeout=60
    )


def test_its_arguments_are_horovods():
    names = (
        "func args kwargs num_proc min_num_proc max_num_proc slots reset_limit cooldown_range hosts hostfile host_discovery_script "
        "start_timeout ssh_port ssh_identity_file disable_cache output_filename verbose use_gloo use_mpi mpi_args network_interface "
        "network_interfaces executable np min_np max_np"
    )
    parameters = inspect.signature(horovod.run).parameters
    assert list(parameters) == names.split()
    defaults = {name: each.default for name, each in parameters.items() if each.default is not None}
    assert defaults == {"func": inspect.Parameter.empty, "args": (), "num_proc": 1}
    assert horovod.run is horovod.runner.run


def test_a_function_runs_on_ranks():
    def place():
        import horovod.torch as hvd

        hvd.init()
        return hvd.rank(), hvd.size()

    pytest.importorskip("torch")
    assert horovod.run(place, num_proc=2) == [(0, 2), (1, 2)]
    assert horovod.run(place, num_proc=None) == horovod.run(place) == [(0, 1)]


def test_one_rank_is_the_default_and_nothing_is_warned_of():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert horovod.run(lambda a, b: a + b, (1,), {"b": 2}, hosts="localhost:2", use_gloo=True, verbose=0) == [3]


def test_older_names_are_deprecated():
    with pytest.warns(DeprecationWarning, match="horovod.run.np=.... is deprecated: use num_proc="):
        assert horovod.run(lambda: 0, np=2) == [0, 0]
    with pytest.warns(DeprecationWarning, match="network_interface=.* use network_interfaces="):
        assert horovod.run(lambda: 0, network_interface="lo") == [0]


@pytest.mark.parametrize("name, value", [("use_mpi", True), ("mpi_args", "-x"), ("reset_limit", 3), ("max_num_proc", 2)])
def test_what_has_no_effect_says_why(name, value):
    with pytest.warns(UserWarning, match=rf"horovod.run\({name}=...\) has no effect: "):
        assert horovod.run(lambda: 0, **{name: value}) == [0]


def test_contradictions_are_value_errors():
    with pytest.raises(ValueError, match="hosts= and hostfile="):
        horovod.run(print, hosts="a:1", hostfile="f")
    with pytest.raises(ValueError, match="use_gloo= and use_mpi="):
        horovod.run(print, use_gloo=True, use_mpi=True)


def train(lost):
    import os
    import signal

    import horovod.torch as hvd

    hvd.init()
    state = hvd.elastic.TorchState(step=0)

    @hvd.elastic.run
    def steps(state):
        while state.step < 10:
            if state.step == 5 and os.environ["RUNJOB_PROCESS_NUMBER"] == lost:
                os.kill(os.getpid(), signal.SIGKILL)
            state.step += 1
            state.commit()

    steps(state)
    return hvd.rank(), hvd.size(), state.step


def test_an_elastic_job_has_the_results_of_the_first_ranks(tmp_path):
    pytest.importorskip("torch")
    assert horovod.run(train, ("",), num_proc=3, min_num_proc=2, max_num_proc=3, reset_limit=3, cooldown_range=(10, 20)) == [(0, 3, 10), (1, 3, 10)]
    (tmp_path / "hosts.sh").write_text("#!/bin/sh\necho localhost\n")
    (tmp_path / "hosts.sh").chmod(0o755)
    script = str(tmp_path / "hosts.sh")
    assert horovod.run(train, ("",), num_proc=2, host_discovery_script=script, slots=2) == [(0, 2, 10), (1, 2, 10)]
    with pytest.warns(DeprecationWarning, match="min_np=.* use min_num_proc="):
        assert horovod.run(train, ("",), min_np=1) == [(0, 1, 10)]


def test_a_failure_is_a_runtime_error_with_horovods_words():
    with pytest.raises(RuntimeError, match="^Horovod detected that one or more processes exited with non-zero status: rank 0 on") as info:
        horovod.run(lambda: 1 / 0)
    assert isinstance(info.value, runjob.RankError) and "ZeroDivisionError" in str(info.value)


def test_horovodrun_is_runjob_under_that_name():
    assert horovodrun("--version").stdout == "0.28.1\n"
    assert horovodrun("-cb").stdout.startswith("Horovod v0.28.1:\n\nAvailable Frameworks:\n")
    done = horovodrun("-np", "2", "-H", "localhost:2", "--gloo", "--disable-cache", sys.executable, "-c", "print('x')")
    assert (done.returncode, done.stdout) == (0, done.stdout) and done.stdout.count("<stdout>:x\n") == 2
    assert done.stderr == ""


def test_as_horovodrun_a_beginning_means_what_it_means_to_horovodrun(tmp_path):
    code = "print('x')"
    done = horovodrun("-np", "1", "--output", str(tmp_path), "--prefix", sys.executable, "-c", code)
    assert (done.returncode, done.stderr) == (0, "")
    assert (tmp_path / "rank.0" / "stdout").read_text() == "x\n"
    assert re.fullmatch(r"\w{3} \w{3} [ \d]\d [\d:]{8} \d{4}\[0\]<stdout>:x\n", done.stdout)


def test_horovodruns_failure_has_its_words_and_the_ranks_status():
    done = horovodrun("-np", "1", sys.executable, "-c", "raise SystemExit(7)")
    assert done.returncode == 7
    assert "Horovod detected that one or more processes exited with non-zero status: rank 0 on localhost" in done.stderr


def test_horovodrun_takes_every_option(tmp_path):
    """Two command lines with all that start a job of this version: those that exclude each other are on in one and off in the other."""
    (tmp_path / "c.yaml").write_text("params:\n  cycle_time_ms: 1\nlogging:\n  level: ERROR\n")
    of_both = (
        "-np 1 --start-timeout 30 --verbose --fusion-threshold-mb 1 --cycle-time-ms 0.5 --cache-capacity 7 --autotune-warmup-samples 1 "
        "--autotune-steps-per-sample 1 --autotune-bayes-opt-max-samples 1 --autotune-gaussian-process-noise 0.5 "
        "--stall-check-warning-time-seconds 5 --stall-check-shutdown-time-seconds 9 --log-level DEBUG --tcp --binding-args=x --mpi-args=--y "
        f"--num-nccl-streams 2 --thread-affinity 1 --gloo-timeout-seconds 20 --disable-cache -p 22 --config-file {tmp_path}/c.yaml"
    )
    on = (
        "--mpi --hierarchical-allreduce --hierarchical-allgather --torus-allreduce --autotune --timeline-mark-cycles --no-stall-check "
        "--mpi-threads-disable --log-hide-timestamp"
    )
    off = (
        "--jsrun --no-hierarchical-allreduce --no-hierarchical-allgather --no-torus-allreduce --no-autotune --no-timeline-mark-cycles "
        "--stall-check --no-mpi-threads-disable -prefix-timestamp"
    )
    names = ("NCCL_IB_DISABLE", "HOROVOD_LOG_LEVEL", "HOROVOD_CYCLE_TIME", "HOROVOD_HIERARCHICAL_ALLREDUCE", "HOROVOD_LOG_HIDE_TIME")
    code = f"import os; print([os.environ.get(n) for n in {names}])"
    for more, seen, idle in (
        (on, "['1', 'DEBUG', '0.5', '1', '1']", "autotune-gaussian-process-noise binding-args mpi mpi-args num-nccl-streams thread-affinity torus-allreduce"),
        (off, "['1', 'DEBUG', '0.5', '0', None]", "autotune-gaussian-process-noise binding-args jsrun mpi-args num-nccl-streams thread-affinity"),
    ):
        done = horovodrun(*of_both.split(), *more.split(), sys.executable, "-c", code, HOROVOD_STALL_CHECK_DISABLE="")
        assert done.returncode == 0, done.stderr
        assert done.stdout.endswith(f"[0]<stdout>:{seen}\n")
        assert sorted(re.findall(r"^runjob: warning: --(\S+) has no effect: \S", done.stderr, re.MULTILINE)) == idle.split()


@pytest.mark.parametrize("program", ["horovodrun", "runjob"])
def test_options_that_exclude_each_other_are_a_usage_error(program):
    """Both programs end with status 2, as argparse does for horovodrun."""
    words = ("-np", "1", "--gloo", "--mpi", "true")
    if program == "horovodrun":
        done = horovodrun(*words)
    else:
        done = subprocess.run([ranks.LAUNCHER, *words], env=ranks.environment(), capture_output=True, text=True, timeout=60, check=False)
    assert (done.returncode, done.stdout) == (2, "")
    assert "--gloo and --mpi exclude each other; give one of them" in done.stderr


def test_without_the_program_it_says_so():
    done = subprocess.run(
        [sys.executable, "-m", "horovod.runner.launch"], env=ranks.environment(RUNJOB_BIN="/nonexistent"),
        capture_output=True, text=True, timeout=60,
    )  # fmt: skip
    assert (done.returncode, done.stderr) == (1, "horovodrun: error: RUNJOB_BIN names /nonexistent, which is no program; unset it or name `runjob`\n")
