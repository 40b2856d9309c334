"""The environment and the working directory in which ranks run."""

import json
import os

import pytest
from jobs import by_rank, command, python, run
from test_rendezvous import CLIENT
from testbed.control_group import ControlGroup

DUMP = "import json, os; print(json.dumps(dict(os.environ)))"


def environments(*arguments, **options):
    done = run(*arguments, *python(DUMP), **options)
    assert done.returncode == 0, done.stderr
    return {rank: json.loads(lines[0]) for rank, lines in by_rank(done.stdout).items()}


def test_places_in_everybodys_words():
    ranks = environments("-np", "3")
    for rank in range(3):
        mine = ranks[rank]
        for name, value in {"RANK": rank, "SIZE": 3, "LOCAL_RANK": rank, "LOCAL_SIZE": 3, "CROSS_RANK": 0, "CROSS_SIZE": 1}.items():
            assert mine[f"RUNJOB_{name}"] == mine[f"HOROVOD_{name}"] == str(value)
        assert (mine["RANK"], mine["WORLD_SIZE"], mine["LOCAL_RANK"], mine["LOCAL_WORLD_SIZE"]) == (str(rank), "3", str(rank), "3")
        assert (mine["GROUP_RANK"], mine["NODE_RANK"], mine["GROUP_WORLD_SIZE"]) == ("0", "0", "1")
        assert (mine["ROLE_NAME"], mine["ROLE_RANK"], mine["ROLE_WORLD_SIZE"]) == ("default", str(rank), "3")
        assert mine["TORCHELASTIC_RUN_ID"] == mine["RUNJOB_JOB_ID"]
        assert (mine["TORCHELASTIC_RESTART_COUNT"], mine["TORCHELASTIC_MAX_RESTARTS"]) == ("0", "0")
        assert "TORCHELASTIC_USE_AGENT_STORE" not in mine   # else the ranks wait for a store of torchrun's agent
        assert mine["MASTER_ADDR"] == "127.0.0.1"
        assert 1024 <= int(mine["MASTER_PORT"]) < 32768
        assert mine["PYTHONUNBUFFERED"] == "1"
        assert mine["RUNJOB_HOSTNAME"] == "localhost"
        path = mine["RUNJOB_RENDEZVOUS"].removeprefix("unix:")
        assert len(path) < 100
    assert len({mine["MASTER_PORT"] for mine in ranks.values()}) == 1
    assert len({mine["RUNJOB_JOB_ID"] for mine in ranks.values()}) == 1


def test_our_environment_arrives_intact():
    values = {"T_NEWLINES": "one\ntwo\n", "T_QUOTES": """'"`$(x)""", "T_LONG": "v" * 100_000, "T_EMPTY": "", "HOROVOD_LOG_LEVEL": "debug"}
    mine = environments("-np", "1", env={**os.environ, **values})[0]
    assert {name: mine[name] for name in values} == values
    assert mine["HOME"] == os.environ["HOME"]   # of this host


def test_variables_of_an_outer_launcher_do_not():
    stale = {"RANK": "7", "GROUP_RANK": "7", "NODE_RANK": "7", "ROLE_NAME": "trainer", "TORCHELASTIC_RUN_ID": "7",
             "TORCHELASTIC_USE_AGENT_STORE": "True", "TORCHELASTIC_ERROR_FILE": "/tmp/e", "OMPI_COMM_WORLD_RANK": "7", "PMI_RANK": "7", "SLURM_PROCID": "7", "HOROVOD_RANK": "7", "MASTER_PORT": "1"}
    mine = environments("-np", "1", env={**os.environ, **stale})[0]
    assert mine["RANK"] == mine["HOROVOD_RANK"] == "0"
    assert mine["MASTER_PORT"] != "1"
    assert (mine["GROUP_RANK"], mine["NODE_RANK"], mine["ROLE_NAME"]) == ("0", "0", "default")
    assert mine["TORCHELASTIC_RUN_ID"] == mine["RUNJOB_JOB_ID"]
    for name in ("TORCHELASTIC_USE_AGENT_STORE", "TORCHELASTIC_ERROR_FILE", "OMPI_COMM_WORLD_RANK", "PMI_RANK", "SLURM_PROCID"):
        assert name not in mine


def test_a_job_within_a_rank_of_an_elastic_one_is_not_elastic_and_leaves_the_outer_ones_files_alone(tmp_path):
    """Also not where it is elastic itself: its commits would be taken for those of the outer job."""
    outer = ["-np", "1", "--min-np", "1", "--tag-output=none", "--commit-dir", tmp_path / "commits", "--timeline-filename", tmp_path / "trace"]
    for inner, expected in ((["-np", "2"], [None] * 3), (["-np", "2", "--min-np", "1"], ["1", "1", None])):
        done = run(*outer, *command(*inner, *python(DUMP)))
        assert done.returncode == 0, done.stderr
        ranks = [json.loads(lines[0]) for lines in by_rank(done.stdout).values()]
        assert len(ranks) == 2
        for mine in ranks:
            assert [mine.get(name) for name in ("RUNJOB_ELASTIC", "HOROVOD_ELASTIC", "RUNJOB_COMMIT_DIR")] == expected
            assert not {"RUNJOB_TIMELINE", "HOROVOD_TIMELINE"} & mine.keys()
        assert sorted(mine.get("RUNJOB_PROCESS_NUMBER", "none") for mine in ranks) == (["0", "1"] if expected[0] else ["none"] * 2)


def pipe_of(text):
    """The descriptor of a pipe, as the shell opens one for `<(printf ...)`."""
    reader, writer = os.pipe()
    with os.fdopen(writer, "wb") as file:
        file.write(text)
    return reader


@pytest.mark.parametrize("options", [[], ["--min-np", "1"]])
def test_pipes_of_hosts_and_variables_are_read_also_by_the_program_that_runjob_becomes(options):
    """For elastic jobs and those with other hosts it becomes runjob-remote, after it has read the pipes."""
    hosts, variables = pipe_of(b"localhost slots=2\n"), pipe_of(b"T_FIRST=one\nT_SECOND=two\n")
    files = ["--hostfile", f"/dev/fd/{hosts}", "--env-file", f"/dev/fd/{variables}"]
    ranks = environments(*options, *files, pass_fds=[hosts, variables])
    os.close(hosts)
    os.close(variables)
    assert [(mine["T_FIRST"], mine["T_SECOND"]) for mine in ranks.values()] == [("one", "two")] * 2


def test_variables_of_horovods_controller_are_not_set():
    mine = environments("-np", "1")[0]
    assert not [name for name in mine if name.startswith(("HOROVOD_CONTROLLER", "HOROVOD_CPU_OPERATIONS", "HOROVOD_GLOO_RENDEZVOUS"))]


def test_x_sets_and_passes():
    ranks = environments("-np", "2", "-x", "T_SET=a=b c", "-x", "T_PASSED", "-x", "PYTHONUNBUFFERED=", env={**os.environ, "T_PASSED": "p"})
    for mine in ranks.values():
        assert (mine["T_SET"], mine["T_PASSED"], mine["PYTHONUNBUFFERED"]) == ("a=b c", "p", "")


def test_the_user_may_give_torchruns_variables_other_values(tmp_path):
    (tmp_path / "variables").write_text("ROLE_NAME=trainer\nGROUP_RANK=5\n")
    (mine,) = environments("-x", "TORCHELASTIC_RUN_ID=mine", "-x", "GROUP_RANK=6", "--env-file", tmp_path / "variables").values()
    assert (mine["TORCHELASTIC_RUN_ID"], mine["ROLE_NAME"], mine["GROUP_RANK"]) == ("mine", "trainer", "6")


def test_a_name_that_no_shell_can_use_is_set_all_the_same():
    (mine,) = environments("-x", "spark.x=1", "-x", "spark.y", env={**os.environ, "spark.y": "2"}).values()
    assert (mine["spark.x"], mine["spark.y"]) == ("1", "2")


def test_omp_threads_share_the_cores():
    environment = {name: value for name, value in os.environ.items() if name != "OMP_NUM_THREADS"}
    cores = len(os.sched_getaffinity(0))
    assert environments("-np", "2", env=environment)[0]["OMP_NUM_THREADS"] == str(max(1, cores // 2))
    assert environments("-np", "2", env={**environment, "OMP_NUM_THREADS": "3"})[0]["OMP_NUM_THREADS"] == "3"


@pytest.mark.usefixtures("root")
@pytest.mark.parametrize("quota, options, threads", [
    (100_000, ["-np", "2"], ["1", "1"]),
    (40_000, ["-np", "1"], ["1"]),
    (150_000, ["-np", "1"], ["2"]),   # rounded up
    (10_000_000, ["-np", "1"], [str(len(os.sched_getaffinity(0)))]),
    (100_000, ["-np", "2", "--bind-to", "core:overload-allowed"], ["1", "1"]),
])  # fmt: skip
def test_a_control_groups_quota_counts_for_the_threads_and_for_nothing_else(quota, options, threads):
    """It refuses no rank and moves none: it limits time, not processors."""
    if len(os.sched_getaffinity(0)) < 2:
        pytest.skip("a quota below the number of processors needs two of them")
    code = "import os; print(os.environ['OMP_NUM_THREADS'], len(os.sched_getaffinity(0)))"
    environment = {name: value for name, value in os.environ.items() if name != "OMP_NUM_THREADS"}
    free = by_rank(run(*options, *python(code), env=environment).stdout)
    with ControlGroup(cpu=quota) as group:
        done = run(*options, *python(code), env=environment, preexec_fn=group.join)
    assert done.returncode == 0, done.stderr
    limited = by_rank(done.stdout)
    assert [lines[0].split()[0] for _, lines in sorted(limited.items())] == threads
    assert {rank: lines[0].split()[1] for rank, lines in limited.items()} == {rank: lines[0].split()[1] for rank, lines in free.items()}


def test_the_number_of_threads_is_told_with_verbose_only():
    code = python(CLIENT + "join()")
    environment = {name: value for name, value in os.environ.items() if name != "OMP_NUM_THREADS"}
    notice = "OMP_NUM_THREADS was not set and is "
    assert run("-np", "2", *code, env=environment).stderr == ""
    assert notice in run("-np", "2", "--verbose", *code, env=environment).stderr
    assert notice not in run("-np", "2", "--verbose", "-x", "OMP_NUM_THREADS=1", *code, env=environment).stderr


@pytest.mark.parametrize("option", [True, False])
def test_working_directory(tmp_path, option):
    where = tmp_path / "a b"
    where.mkdir()
    arguments = ["--wdir", str(where)] if option else []
    done = run("-np", "2", *arguments, "sh", "-c", 'pwd; echo "$PWD"', cwd=None if option else where)
    assert by_rank(done.stdout) == {0: [str(where)] * 2, 1: [str(where)] * 2}


def test_relative_command_is_found_in_the_working_directory(tmp_path):
    script = tmp_path / "here.sh"
    script.write_text("#!/bin/sh\necho found\n")
    script.chmod(0o755)
    assert run("-np", "1", "./here.sh", cwd=tmp_path).stdout == "[0]<stdout>:found\n"
