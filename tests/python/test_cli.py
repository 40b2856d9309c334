"""The built runjob program: exit statuses and messages of what needs no rank."""

import os
import re
import subprocess
from pathlib import Path

import pytest

RUNJOB = os.environ.get("RUNJOB_BIN") or str(
    Path(__file__).resolve().parents[2] / "build" / "release" / "bin" / "runjob"
)


def runjob(*arguments, cwd=None, **environment):
    kept = {k: v for k, v in os.environ.items() if not k.startswith(("RUNJOB_", "HOROVOD_"))}
    return subprocess.run(
        [RUNJOB, *arguments], cwd=cwd, env={**kept, **environment}, capture_output=True, text=True, timeout=60
    )


def error_of(result, status=2):
    """The one line that a mistake prints."""
    assert result.returncode == status, result.stderr
    assert result.stdout == ""
    assert result.stderr.startswith("runjob: error: ")
    assert result.stderr.endswith("\n")
    assert result.stderr.count("\n") == 1
    return result.stderr[len("runjob: error: ") : -1]


@pytest.mark.parametrize(
    "arguments, message",
    [
        ([], "there is no command to run; write it after the options: runjob -np 2 python train.py"),
        (["-np", "0", "true"], "-np: '0' is not a whole number from 1 to 1000000"),
        (["-np", "x", "true"], "-np: 'x' is not a whole number from 1 to 1000000"),
        (["-np"], "option -np needs a value: -np N"),
        (
            ["-np", "5", "-H", "localhost:4", "true"],
            "5 ranks do not fit into 4 slots on 1 host (localhost:4); ask for at most 4 or give more slots, as in localhost:5",
        ),
        (["-H", "localhost:x", "true"], "-H: column 11: expected a number of slots after ':', found 'x'"),
        (
            ["--hostfile", "/nonexistent", "true"],
            "cannot read hostfile /nonexistent: No such file or directory; check the path and its permissions",
        ),
        (
            ["-H", "localhost", "--hostfile", "f", "true"],
            "-H and --hostfile both name hosts; give one of them",
        ),
        (
            ["--wdir", "/nonexistent", "true"],
            "--wdir: /nonexistent: No such file or directory; name a directory that exists",
        ),
        (["-x", "=1", "true"], "-x: '' is not the name of a variable; write NAME or NAME=VALUE"),
        (["--stdin", "2", "true"], "--stdin: '2' is neither 0 nor none: only rank 0 can read runjob's standard input"),
        (["-np", "1", "a", ":", "-np", "1", "b"], "': -np' begins a second program, as for mpirun, and a job of runjob runs one; let "
            "that program decide by RUNJOB_RANK what it does, or write -- before the command if ':' is an argument of it"),
        (["-H", "10.0.0.1", ":2", "true"], "the command is ':2': write the slots after the host without a blank, as in -H s1:2; the "
            "output of `hostname -I` ends with one"),
        (
            ["--status-file", "/nonexistent/s.json", "true"],
            "--status-file: the directory /nonexistent does not exist; make it first",
        ),
        (["--num-prok", "2", "true"], "unknown option --num-prok; did you mean --num-proc?"),
        (["--hos", "a", "true"], "option --hos is ambiguous; write --hosts or --hostfile or --host-discovery-script"),
        (["-npernod", "2", "true"], "unknown option -npernod; did you mean -npernode?"),
        (["--nnodes", "2", "a.py"],
         "--nnodes is torchrun's; start runjob once, on one host, with -H a:4,b:4: it starts the ranks of all hosts"),
        (["--config-file", "/nonexistent", "true"],
         "cannot read config file /nonexistent: No such file or directory; check the path and its permissions"),
        (["--stdin", "a\nb", "true"], "--stdin: 'a\\nb' is neither 0 nor none: only rank 0 can read runjob's standard input"),
    ],
)
def test_a_mistake_is_one_line_and_status_2(arguments, message):
    assert error_of(runjob(*arguments)) == message


def test_a_host_that_does_not_exist_is_named():
    message = error_of(runjob("-H", "no-such-host.invalid:2", "true"), status=125)
    assert message.startswith("no-such-host.invalid: ") and "the name is not known" in message


def test_a_hostfile_error_names_line_and_column(tmp_path):
    (tmp_path / "hosts").write_text("# ours\nlocalhost slots=4\nnode1 slot=4\n")
    message = error_of(runjob("-hostfile", "hosts", "true", cwd=tmp_path))
    assert message.startswith("hosts: line 3, column 7: expected slots, user, port")
    assert message.endswith("did you mean 'slots'?")


def test_version_and_help():
    version = runjob("--version")
    assert (version.returncode, version.stdout, version.stderr) == (0, "runjob 0.1.0\n", "")
    assert runjob("-v").stdout == version.stdout
    help_ = runjob("-h")
    assert help_.returncode == 0
    assert help_.stdout.startswith("Usage: runjob [options] [--] command [arguments]\n")
    assert "--start-timeout TIME" in help_.stdout


def test_output_that_cannot_be_written_is_our_own_failure():
    with open("/dev/full", "w") as full:
        result = subprocess.run([RUNJOB, "--version"], stdout=full, stderr=subprocess.PIPE, text=True, timeout=60)
    assert result.returncode == 125
    assert result.stderr == "runjob: error: cannot write to standard output: No space left on device\n"


def flags_of(*arguments, **environment):
    """--hierarchical-allreduce and --no-stall-check, as --print-config shows them."""
    done = runjob(*arguments, "--print-config", **environment)
    assert done.returncode == 0, done.stderr
    return dict(re.findall(r"^(hierarchical-allreduce|no-stall-check) = (\w+)", done.stdout, re.MULTILINE))


def test_a_flag_on_the_command_line_wins_over_its_opposite_elsewhere(tmp_path):
    config = tmp_path / "horovod.yaml"
    config.write_text("params:\n  hierarchical_allreduce: true\n")
    for arguments, environment, expected in [
        (["--no-hierarchical-allreduce"], {"HOROVOD_HIERARCHICAL_ALLREDUCE": "1"}, "false"),
        (["--hierarchical-allreduce"], {"RUNJOB_NO_HIERARCHICAL_ALLREDUCE": "1"}, "true"),
        (["--no-hierarchical-allreduce", "--config-file", str(config)], {}, "false"),
        (["--config-file", str(config)], {"RUNJOB_NO_HIERARCHICAL_ALLREDUCE": "1"}, "false"),
    ]:
        assert flags_of(*arguments, **environment)["hierarchical-allreduce"] == expected
    both = {"RUNJOB_HIERARCHICAL_ALLREDUCE": "1", "RUNJOB_NO_HIERARCHICAL_ALLREDUCE": "1"}
    assert "contradicts" in error_of(runjob("--print-config", **both))


@pytest.mark.parametrize("value, expected", [("no", "true"), ("0", "true"), ("off", "true"), ("false", "true"), ("1", "false"), ("yes", "false")])
def test_the_opposite_of_an_option_may_have_any_word_for_off(value, expected):
    assert flags_of(f"--stall-check={value}")["no-stall-check"] == expected


def test_print_config_shows_value_and_source(tmp_path):
    (tmp_path / "job.toml").write_text('start-timeout = 7\nnum-proc = 9\nwdir = "/"\n')
    result = runjob(
        "-np", "2", "--config-file", "job.toml", "--print-config", cwd=tmp_path, RUNJOB_HOSTS="localhost:4"
    )
    assert result.returncode == 0, result.stderr
    rows = {left.strip(): origin for left, _, origin in (line.rpartition("  # ") for line in result.stdout.splitlines())}
    assert rows["num-proc = 2"] == "-np"
    assert rows['hosts = "localhost:4"'] == "environment RUNJOB_HOSTS"
    assert rows["start-timeout = 7"] == "file job.toml"
    assert rows["verbose = false"] == "default"
    (tmp_path / "again.toml").write_text(result.stdout)
    again = runjob("--config-file", "again.toml", "--print-config", cwd=tmp_path)
    assert again.returncode == 0, again.stderr
    assert "num-proc = 2" in again.stdout


@pytest.mark.parametrize("value", [r"a\b", 'a"b', r'a"\b', "it's", "s[1-2]", "a, b", " a ", "\u00e9"])
def test_what_print_config_prints_is_read_as_it_was(tmp_path, value):
    printed = runjob("-x", f"A={value}", "--print-config")
    config = tmp_path / "job.toml"
    config.write_text(printed.stdout)
    done = runjob("--config-file", str(config), "-np", "1", "--tag-output=none", "printenv", "A")
    assert (done.returncode, done.stdout, done.stderr) == (0, value + "\n", "")


def test_an_escape_that_would_be_read_as_it_stands_is_refused(tmp_path):
    config = tmp_path / "job.toml"
    config.write_text('num-proc = 1\nexport = ["A=\\"x\\"", "B=x\\ty"]\n')
    assert error_of(runjob("--config-file", str(config), "true")).startswith(f"file {config}: line 2: only \\\" can be read here ")


def test_a_config_file_of_windows_is_read(tmp_path):
    for name, text in (("job.toml", 'num-proc = 1\r\nexport = ["A=x"]\r\n'), ("job.yaml", "num-proc: 1\r\nexport: [A=x]\r\n")):
        config = tmp_path / name
        config.write_bytes(b"\xef\xbb\xbf" + text.encode())
        done = runjob("--config-file", str(config), "--tag-output=none", "printenv", "A")
        assert (done.returncode, done.stdout, done.stderr) == (0, "x\n", "")


def test_the_nodes_of_a_heterogeneous_slurm_job_that_get_no_rank_are_a_warning():
    job = {"SLURM_JOB_ID": "7", "SLURM_JOB_NODELIST": "n[1-2]", "SLURM_TASKS_PER_NODE": "2(x2)"}
    assert runjob("--dry-run", "true", **job).stderr == ""
    done = runjob("--dry-run", "true", **job, SLURM_HET_SIZE="2", SLURM_JOB_NODELIST_HET_GROUP_1="n3")
    assert done.stderr == (
        "runjob: warning: only the nodes of component 0 get ranks, since this SLURM job is heterogeneous and has 2 components; "
        "name the hosts of all with -H\n"
    )
    assert runjob("-H", "n1,n2,n3", "--dry-run", "true", **job, SLURM_HET_SIZE="2").stderr == ""


def test_horovodruns_yaml_is_read(tmp_path):
    (tmp_path / "job.yaml").write_text("timeline:\n  filename: t.json\nparams:\n  torus_allreduce: true\n  cycle_time_ms: 2\n")
    result = runjob("--config-file", "job.yaml", "--print-config", cwd=tmp_path)
    assert result.returncode == 0
    assert 'timeline-filename = "t.json"' in result.stdout
    assert 'cycle-time-ms = "2"' in result.stdout or "cycle-time-ms = 2" in result.stdout
    assert result.stderr == (
        "runjob: warning: file job.yaml, torus-allreduce has no effect: there is one algorithm between hosts, see "
        "--hierarchical-allreduce\n"
    )


#: The keys of a config file of horovodrun's, all with values that ask for what runjob does anyway.
HOROVODRUNS_KEYS = """
controller: gloo
params:
  fusion_threshold_mb: 32
  cycle_time_ms: 10
  cache_capacity: 2048
  hierarchical_allreduce: true
  hierarchical_allgather: true
  torus_allreduce: false
autotune:
  enabled: false
  log_file: tuning.csv
  warmup_samples: 5
  steps_per_sample: 20
  bayes_opt_max_samples: 50
  gaussian_process_noise: 0.8
timeline:
  filename: t.json
  mark_cycles: true
stall_check:
  enabled: true
  warning_time_seconds: 120
  shutdown_time_seconds: 240
library_options:
  mpi_threads_disable: true
  num_nccl_streams: 1
  gloo_timeout_seconds: 60
logging:
  level: INFO
  hide_timestamp: true
"""


def test_a_yaml_file_that_asks_for_what_is_so_anyway_causes_no_warning(tmp_path):
    (tmp_path / "job.yaml").write_text(HOROVODRUNS_KEYS)
    result = runjob("--config-file", "job.yaml", "--dry-run", "true", cwd=tmp_path)
    assert (result.returncode, result.stderr) == (0, "")


def test_unknown_and_empty_keys_of_a_yaml_file_are_warnings(tmp_path):
    (tmp_path / "job.yaml").write_text("timeline:\n  filename:\n  mark_cycle: true\nverbose: false\n")
    result = runjob("--config-file", "job.yaml", "--dry-run", "true", cwd=tmp_path)
    assert result.returncode == 0
    assert result.stderr == (
        "runjob: warning: file job.yaml: line 2: timeline.filename has no value and is ignored\n"
        "runjob: warning: file job.yaml: line 3: unknown key 'timeline.mark_cycle' is ignored; did you mean 'timeline.mark_cycles'?\n"
    )


def test_variables_of_horovods_that_change_nothing_are_one_line():
    ignored = {"HOROVOD_TORUS_ALLREDUCE": "1", "HOROVOD_CONTROLLER": "mpi", "HOROVOD_GPU_OPERATIONS": "NCCL", "HOROVOD_NUM_NCCL_STREAMS": "2"}
    result = runjob("-np", "2", "-x", "HOROVOD_THREAD_AFFINITY=0,1", "true", **ignored)
    assert (result.returncode, result.stderr) == (0, (
        "runjob: warning: HOROVOD_CONTROLLER, HOROVOD_TORUS_ALLREDUCE, HOROVOD_THREAD_AFFINITY, HOROVOD_NUM_NCCL_STREAMS have no effect "
        "with runjob; docs/environment.md gives the reasons\n"
    ))


@pytest.mark.parametrize("name, value", [("HOROVOD_FUSION_THRESHOLD", "32e6"), ("HOROVOD_CONTROLLER", "jsrun"), ("RUNJOB_CMA", "x")])
def test_a_variable_with_a_wrong_value_is_an_error_of_the_launcher(name, value):
    assert error_of(runjob("-np", "2", "true", **{name: value})).startswith(f"environment {name}: '{value}' is not ")
    assert error_of(runjob("-np", "2", "-x", f"{name}={value}", "true")).startswith(f"-x {name}: '{value}' is not ")


@pytest.mark.parametrize("command, status, message", [
    ("t1.py", 127, "command not found: t1.py (searched PATH); did you mean: python t1.py?"),
    ("./t1.py", 126, "cannot execute ./t1.py: Permission denied; did you mean: python ./t1.py?"),
    ("python t1.py", 127, "command not found: python t1.py (searched PATH); if these are several words, leave out the quotes: "
                          "runjob python t1.py"),
    ("FOO=1", 127, "command not found: FOO=1 (searched PATH); to set a variable of the ranks, write -x FOO=1 before the command"),
])
def test_a_command_that_is_none_gets_a_hint(tmp_path, command, status, message):
    (tmp_path / "t1.py").write_text("print(1)\n")
    assert error_of(runjob("-np", "2", command, cwd=tmp_path), status=status) == f"localhost: {message}"


def test_parts_of_the_tag_as_command_are_run_with_a_warning(tmp_path):
    (tmp_path / "time").write_text("#!/bin/sh\necho run \"$@\"\n")
    (tmp_path / "time").chmod(0o755)
    result = runjob("--tag-output", "time", "a.py", PATH=f"{tmp_path}:{os.environ['PATH']}")
    assert (result.returncode, result.stdout) == (0, "[0]<stdout>:run a.py\n")
    assert result.stderr.startswith("runjob: warning: the command is 'time', because --tag-output takes its parts after '='")


def test_a_ranks_variables_are_no_settings_and_a_mistyped_one_is_told():
    inside = runjob("--print-config", RUNJOB_RANK="1", RUNJOB_SIZE="2", RUNJOB_LOCAL_SIZE="2", RUNJOB_JOB_ID="j")
    assert (inside.returncode, inside.stderr) == (0, "")
    mistyped = runjob("--print-config", RUNJOB_NUM_PROK="1")
    assert mistyped.returncode == 0
    assert mistyped.stderr == (
        "runjob: warning: unknown environment variable RUNJOB_NUM_PROK has no effect; did you mean RUNJOB_NUM_PROC?\n"
    )


def test_every_variable_of_the_page_is_known():
    """A runjob within a rank has many of them; an empty one counts as not set, but its name is looked at."""
    page = Path(__file__).resolve().parents[2] / "docs" / "environment.md"
    names = set(re.findall(r"\bRUNJOB_[A-Z_]+[A-Z]\b", page.read_text(encoding="utf-8")))
    assert {"RUNJOB_RANK", "RUNJOB_FOLD_TRACEBACKS", "RUNJOB_NCCL_LIBRARY"} <= names
    result = runjob("--dry-run", "true", **dict.fromkeys(names, ""))
    assert (result.returncode, result.stderr) == (0, "")


def test_a_runjob_within_a_rank_starts_a_job_of_its_own():
    result = runjob("-np", "1", RUNJOB, "-np", "2", "true", RUNJOB_NCCL_LIBRARY="/opt/nccl/libnccl.so.2")
    assert (result.returncode, result.stdout, result.stderr) == (0, "", "")


def test_check_build_has_horovodruns_layout():
    result = runjob("--check-build")
    assert (result.returncode, result.stderr) == (0, "")
    lines = result.stdout.split("\n")
    assert [line[:5] + "?" + line[6:] if line.startswith("    [") else line for line in lines[:17]] == [
        "runjob v0.1.0:",
        "",
        "Available Frameworks:",
        "    [?] TensorFlow",
        "    [?] PyTorch",
        "    [?] MXNet",
        "",
        "Available Controllers:",
        "    [?] MPI",
        "    [?] Gloo",
        "",
        "Available Tensor Operations:",
        "    [?] NCCL",
        "    [?] DDL",
        "    [?] CCL",
        "    [?] MPI",
        "    [?] Gloo    ",
    ]
    assert "Backends:" in lines
    assert runjob("-cb").stdout == result.stdout


def fake_installation(tmp_path, probe):
    """A copy of runjob with a probe of ours beside it."""
    program = tmp_path / "runjob"
    program.write_bytes(Path(RUNJOB).read_bytes())
    program.chmod(0o755)
    if probe is not None:
        (tmp_path / "runjob-probe").write_text(probe)
        (tmp_path / "runjob-probe").chmod(0o755)
    return str(program)


@pytest.mark.parametrize(
    "probe, message",
    [
        (None, "not known: cannot find runjob-probe: neither "),
        ("#!/bin/sh\nkill -SEGV $$\n", "not known: runjob-probe was killed by signal 11 (Segmentation fault)"),
        ("#!/bin/sh\necho no library; exit 1\n", "not known: runjob-probe exited with status 1: no library"),
        ("#!/bin/sh\necho '{'\n", "not known: runjob-probe wrote what cannot be read: "),
    ],
)
def test_check_build_survives_a_probe_that_fails(tmp_path, probe, message):
    program = fake_installation(tmp_path, probe)
    result = subprocess.run([program, "--check-build"], capture_output=True, text=True, timeout=60)
    assert (result.returncode, result.stderr) == (0, "")
    assert message in result.stdout


def test_check_build_without_python_says_so():
    result = runjob("--check-build", PATH="/nonexistent")
    assert result.returncode == 0
    assert "PyTorch     not known: there is no python3 or python on PATH" in result.stdout
