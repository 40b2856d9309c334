"""Jobs over real SSH servers: where the ranks run, what they see, how jobs end there, and what cannot be reached."""

import re
import signal

import pytest
from remote_jobs import DAEMON, RUNJOB, SLEEP, Running, python, run
from running_job import STUBBORN
from testbed import HOME, HostSpec, Testbed, eventually, with_enough_time

SHOW = """import os, socket, sys
sys.stdout.write(' '.join([os.environ[n] for n in ('RUNJOB_RANK', 'RUNJOB_LOCAL_RANK', 'RUNJOB_CROSS_RANK', 'RUNJOB_HOSTNAME')]
                          + [socket.gethostname(), os.getcwd(), os.environ['HOME']]) + chr(10))"""


@pytest.fixture(scope="module")
def bed():
    with Testbed(hosts=3) as bed:
        yield bed


def cached_agents(host):
    return sorted(host.path(f"{HOME}/.cache/runjob").glob("*")) if host.path(f"{HOME}/.cache/runjob").exists() else []


# Where ranks run and what they see


def test_ranks_are_placed_on_their_hosts(bed):
    done = run(bed, "-H", "s1:2,s2:1,s3:2", *python(SHOW), cwd="/tmp")
    assert (done.returncode, done.stderr) == (0, "")
    lines = sorted(line.partition("<stdout>:")[2].split() for line in done.stdout.splitlines())
    places = [("0", "0", "0", "s1"), ("1", "1", "0", "s1"), ("2", "0", "1", "s2"), ("3", "0", "2", "s3"), ("4", "1", "1", "s3")]
    assert lines == [[*place, place[3], "/tmp", HOME] for place in places]


def test_the_agent_is_uploaded_once(bed):
    run(bed, "-H", "s1,s2", "true")
    before = [(path, path.stat().st_ino) for host in bed.hosts[:2] for path in cached_agents(host)]
    assert len(before) == 2
    run(bed, "-H", "s1,s2", "true")
    assert before == [(path, path.stat().st_ino) for host in bed.hosts[:2] for path in cached_agents(host)]


def test_the_cache_is_cleaned_on_every_host(bed):
    run(bed, "-H", "s1,s2", "true")
    done = run(bed, "-H", "s1,s2,nosuchhost", "--clean-cache")
    assert done.returncode == 125
    assert len(done.stderr.splitlines()) == 1 and done.stderr.startswith("runjob: error: nosuchhost: ")
    assert [cached_agents(host) for host in bed.hosts[:2]] == [[], []]
    assert run(bed, "-H", "s1", "--clean-cache").returncode == 0


def test_a_host_whose_shell_does_not_answer_is_given_up_when_its_cache_is_cleaned(bed):
    bed.hosts[0].write(f"{HOME}/.bashrc", "read line\n")  # until the connection ends
    try:
        done = run(bed, "-H", "s1,s2", "--connect-timeout", "2", "--clean-cache")
    finally:
        bed.hosts[0].run(["rm", f"{HOME}/.bashrc"], check=True)
    assert (done.returncode, len(done.stderr.splitlines())) == (125, 1)
    assert done.stderr.startswith("runjob: error: s1: no answer within 2 s; is it up")


def test_a_job_may_end_while_hosts_wait_for_their_turn(bed):
    bed.head.write(f"{HOME}/silent-ssh", "#!/bin/sh\nexec sleep 60\n", mode=0o755)
    done = run(bed, "-H", "s1,s2,s3", "--ssh-concurrency", "1", "--timeout", "1", "--ssh-command", f"{HOME}/silent-ssh", "true")
    assert done.returncode == 124
    assert re.fullmatch("runjob: error: the job did not end within the 1 s of --timeout; .*\n", done.stderr)


def test_one_connection_for_each_host(bed):
    before = bed.hosts[0].ssh_connections()
    assert run(bed, "-H", "s1:8", "true").returncode == 0
    eventually(lambda: bed.hosts[0].ssh_connections() > before, "the log to say so")
    assert bed.hosts[0].ssh_connections() == before + 1


def test_values_arrive_unchanged(bed):
    values = {"NEWLINES": "a\nb\n", "QUOTES": "'\"`$(x)\\!", "LONG": "x" * 100_000, "EMPTY": "", "LATIN": "\udce9"}
    code = f"import os; v = {values!r}\nprint({{n: os.environ[n] == v[n] for n in v}})"
    done = run(bed, "-H", "s1", *python(code), variables=values)
    assert done.stdout == f"[0]<stdout>:{ {name: True for name in values} }\n"


def test_what_belongs_to_a_host_stays_there(bed):
    mine = ["HOME", "PWD", "OLDPWD", "HOSTNAME", "TMPDIR", "XDG_RUNTIME_DIR", "SSH_AUTH_SOCK", "DISPLAY", "BASH_FUNC_f%%",
            "CUDA_VISIBLE_DEVICES", "OMPI_COMM_WORLD_RANK", "PMI_RANK", "PMIX_RANK", "SLURM_PROCID"]  # fmt: skip
    code = "import os; print([n for n, v in os.environ.items() if v == 'of the head'])"
    done = run(bed, "-H", "s1", *python(code), variables={name: "of the head" for name in [*mine, "COMES_ALONG"] if name != "HOME"})
    assert done.stdout == "[0]<stdout>:['COMES_ALONG']\n"


def test_standard_input_goes_to_rank_0(bed):
    done = run(bed, "-H", "s1,s2", "sh", "-c", 'echo "$RUNJOB_RANK:$(cat)"', input="text\n" * 50_000)
    lines = dict(line.partition("<stdout>:")[2].split(":") for line in done.stdout.splitlines() if ":" in line.partition("<stdout>:")[2])
    assert lines == {"0": "text", "1": ""} and done.stdout.count("text") == 50_000


def test_much_output_arrives_whole(bed):
    # One write() a line, unlike print(): the launcher shows the beginning of a line whose end does not come soon.
    code = "import os\nfor i in range(200_000): os.write(1, b'%d\\n' % i)"
    done = run(bed, "-H", "s1,s2", *python(code))
    for rank in (0, 1):
        lines = [line.partition(":")[2] for line in done.stdout.splitlines() if line.startswith(f"[{rank}]")]
        assert lines == [str(i) for i in range(200_000)]


def test_nothing_listens_but_sshd(bed):
    before = [host.listening_sockets() for host in [*bed.hosts, bed.head]]
    with Running(bed, "-H", "s1,s2,s3", *python(SLEEP)) as job:
        job.wait_for_lines(3)
        assert [host.listening_sockets() for host in [*bed.hosts, bed.head]] == before == [[], [], [], []]


def test_a_local_and_a_remote_host(bed):
    done = run(bed, "-H", "localhost:1,s2:1", "hostname")
    assert sorted(done.stdout.split()) == [f"[0]<stdout>:{bed.head.name}", "[1]<stdout>:s2"]


# Ends


def test_a_missing_working_directory_is_an_error(bed):
    done = run(bed, "-H", "s1", "--wdir", "/nowhere", "true")
    assert done.returncode == 125
    assert done.stderr == ("runjob: error: s1: cannot change to the working directory /nowhere for rank 0: No such file or directory; "
                           "choose another with --wdir\n")  # fmt: skip


def test_a_missing_command_names_the_host(bed):
    done = run(bed, "-H", "s1,s2", "no-such-command")
    assert done.returncode == 127
    assert re.fullmatch(r"runjob: error: s[12]: command not found: no-such-command \(searched PATH\)\n", done.stderr)


def test_a_failed_rank_ends_the_others_everywhere(bed):
    code = "import os, sys, time\nif os.environ['RUNJOB_RANK'] == '1': sys.exit('bad luck')\ntime.sleep(600)"
    with Running(bed, "-H", "s1,s2,s3", *python(code)) as job:
        status, _, errors = job.finish()
        assert status == 1
        assert re.search(r"runjob: error: rank 1 on s2 \(pid \d+\) exited with status 1; stopped 2 other ranks", errors)
        assert errors.rstrip().endswith("bad luck")
        assert job.is_gone_from(*bed.hosts, bed.head)


@pytest.mark.parametrize("number, status", [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_a_signal_ends_it_everywhere(bed, number, status):
    with Running(bed, "-H", "s1,s2,s3", *python(DAEMON)) as job:
        job.wait_for_lines(3)
        job.process.send_signal(number)
        assert job.finish()[0] == status
        assert job.is_gone_from(*bed.hosts, bed.head)


def test_nothing_is_left_when_runjob_is_killed(bed):
    with Running(bed, "-H", "s1,s2", "--grace-period", "2", *python(DAEMON)) as job:
        job.wait_for_lines(2)
        assert not job.is_gone_from(*bed.hosts)
        job.process.kill()
        job.wait_until_gone(*bed.hosts, bed.head)


@pytest.mark.parametrize("victim", ["runjob-agent", "runjob-guard"])
def test_nothing_is_left_when_one_of_ours_is_killed_on_a_host(bed, victim):
    with Running(bed, "-H", "s1,s2", "--grace-period", "2", *python(DAEMON)) as job:
        job.wait_for_lines(2)
        bed.hosts[1].run(["kill", "-9", job.named(bed.hosts[1], victim)[0].pid])
        status, _, errors = job.finish()
        assert status == 125
        assert "runjob: error: lost the agent on s2: " in errors
        job.wait_until_gone(*bed.hosts, bed.head)


def test_a_rank_that_ignores_sigterm_is_killed_after_the_grace_period(bed):
    with Running(bed, "-H", "s1,s2", "--grace-period", "500ms", *python(STUBBORN)) as job:
        job.wait_for_lines(2)
        job.process.terminate()
        assert job.finish()[0] == 143
        assert job.is_gone_from(*bed.hosts, bed.head)


def test_a_cut_network_ends_the_job_on_both_sides(bed):
    """Nothing tells either side: the heartbeat does."""
    with Running(bed, "-H", "s1,s2", "--grace-period", "2", *python(DAEMON)) as job:
        job.wait_for_lines(2)
        bed.hosts[1].cut_network()
        try:
            status, _, errors = job.finish()
            assert status == 125
            assert "runjob: error: lost the agent on s2: it has sent nothing for 5 s\n" in errors
            assert job.is_gone_from(bed.hosts[0], bed.head)
            job.wait_until_gone(bed.hosts[1])
        finally:
            bed.hosts[1].restore_network()


def test_sshd_may_be_restarted_meanwhile(bed):
    code = "import sys\nprint('ready')\nsys.stdin.readline()\nprint('done')"
    with Running(bed, "-H", "s1", *python(code), stdin=-1) as job:
        job.wait_for_lines(1)
        bed.hosts[0].restart_sshd()
        status, output, _ = (job.process.stdin.write("go\n"), job.finish())[1]
        assert (status, output) == (0, "[0]<stdout>:done\n")


def test_sessions_that_sshd_ends_end_the_job(bed):
    with Running(bed, "-H", "s1,s2", "--grace-period", "2", *python(DAEMON)) as job:
        job.wait_for_lines(2)
        bed.hosts[0].stop_sshd(sessions=True)
        try:
            status, _, errors = job.finish()
            assert status == 125 and "runjob: error: lost the agent on s1: " in errors
            job.wait_until_gone(*bed.hosts, bed.head)
        finally:
            bed.hosts[0].start_sshd()


def test_a_stopped_runjob_is_not_taken_for_dead(bed):
    """Ctrl-Z, a pause that is longer than the heartbeat allows, and fg."""
    with Running(bed, "-H", "s1", *python("import time\nprint('ready')\ntime.sleep(1)\nprint('done')")) as job:
        job.wait_for_lines(1)
        job.process.send_signal(signal.SIGTSTP)
        eventually(lambda: [p for p in bed.head.processes() if p.name == "runjob" and is_stopped(p)], "runjob to stop")
        agent = job.named(bed.hosts[0], "runjob-agent")[0]
        eventually(lambda: not job.named(bed.hosts[0], "runjob-agent") or seconds_alive(agent) > 9, "nine seconds to pass")
        assert job.named(bed.hosts[0], "runjob-agent")
        job.process.send_signal(signal.SIGCONT)
        status, output, _ = job.finish()
        assert (status, output) == (0, "[0]<stdout>:done\n")


def is_stopped(process):
    with open(f"/proc/{process.machine_pid}/stat", encoding="utf-8") as file:
        return file.read().rpartition(")")[2].split()[0] == "T"


def seconds_alive(process):
    with open(f"/proc/{process.machine_pid}/stat", encoding="utf-8") as file:
        started = int(file.read().rpartition(")")[2].split()[19]) / 100
    with open("/proc/uptime", encoding="utf-8") as file:
        return float(file.read().split()[0]) - started


# What cannot be reached


def test_every_bad_host_is_named_and_the_good_ones_are_left_alone(bed):
    bed.hosts[1].stop_sshd()
    bed.hosts[2].drop_port(22)
    try:

        def attempt(limit):
            with Running(bed, "-H", "s1,s2,s3,nosuchhost", "--connect-timeout", limit, "true") as job:
                status, output, errors = job.finish(timeout=limit + 60)
                assert (status, output) == (125, "")
                assert job.is_gone_from(bed.hosts[0], bed.head)
            return None if "error: s1: " in errors else errors.splitlines()

        lines = with_enough_time(attempt, "runjob has reached s1", (3, 15, 60))
        assert len(lines) == 3
        assert "s2: " in lines[0] and "refused" in lines[0]
        assert "s3: " in lines[1] and "--connect-timeout" in lines[1]
        assert "nosuchhost: " in lines[2] and "name" in lines[2]
    finally:
        bed.hosts[1].start_sshd()
        bed.hosts[2].drop_nothing()


def test_a_user_that_is_not_admitted(bed):
    done = run(bed, "-H", "nobody@s1", "true")
    assert done.returncode == 125
    assert re.fullmatch(r"runjob: error: s1: .*nobody.*\n", done.stderr) and "-i" in done.stderr


def test_a_key_that_libssh2_cannot_use_goes_through_the_systems_ssh():
    with Testbed(hosts=2) as bed:
        key = bed.add_key("rsa")
        bed.head.run(["rm", f"{HOME}/.ssh/id_ed25519"], check=True)
        done = run(bed, "-H", "s1:2,s2", "-i", key, "--verbose", *python("import os; print(os.environ['RUNJOB_RANK'])"))
        assert done.returncode == 0, done.stderr
        assert sorted(done.stdout.splitlines()) == [f"[{rank}]<stdout>:{rank}" for rank in range(3)]
        for host in ("s1", "s2"):
            assert f"runjob: {host} is reached through the system's ssh: " in done.stderr


def test_another_program_may_be_named_instead_of_ssh(bed):
    bed.head.write(f"{HOME}/my-ssh", f'#!/bin/sh\necho "$0 $*" >> {HOME}/calls\nexec ssh "$@"\n', mode=0o755)
    done = run(bed, "-H", "s1,s2", "--ssh-command", f"{HOME}/my-ssh -4", "hostname")
    assert (done.returncode, sorted(done.stdout.splitlines())) == (0, ["[0]<stdout>:s1", "[1]<stdout>:s2"]), done.stderr
    calls = bed.head.path(f"{HOME}/calls").read_text().splitlines()
    assert len(calls) == 2 and all(" -4 " in call and "BatchMode=yes" in call for call in calls)


def test_a_soft_limit_of_descriptors_limits_the_ranks_and_not_the_hosts(bed):
    limited = ["sh", "-c", 'ulimit -Sn 16; exec "$@"', "sh", RUNJOB]
    done = bed.head.run([*limited, "-H", "localhost,s1,s2,s3", "--connect-timeout", "60", "--ssh-command", "ssh", "sh", "-c", "ulimit -Sn"])
    assert (done.returncode, len(done.stdout.splitlines())) == (0, 4), done.stderr
    assert "[0]<stdout>:16\n" in done.stdout


def test_a_job_does_not_need_the_ssh_of_another_one():
    """A user's configuration may have ssh share connections."""
    with Testbed(hosts=1) as bed:
        bed.head.write(f"{HOME}/.ssh/config", "Host *\n  ControlMaster auto\n  ControlPath ~/.ssh/master-%C\n", mode=0o600)
        code = "import sys\nprint('ready')\nprint(sys.stdin.read() + 'done')"
        command = ("--connect-timeout", "60", "--ssh-command", "ssh", "-H", "s1", *python(code))
        with Running(bed, *command, stdin=-1) as first:
            assert first.wait_for_lines(1) == ["[0]<stdout>:ready\n"]
            with Running(bed, *command, stdin=-1) as second:
                assert second.wait_for_lines(1) == ["[0]<stdout>:ready\n"]
                assert first.finish() == (0, "[0]<stdout>:done\n", "")
                assert second.finish() == (0, "[0]<stdout>:done\n", "")


def test_few_of_the_systems_ssh_connect_at_once(bed):
    """A folder exists from the start of a program to the first byte from its host."""
    lines = ["#!/bin/sh", "mkdir ~/connecting || echo $$ >> ~/too-many", 'ssh "$@" | { head -c 1; rmdir ~/connecting; cat; }']
    bed.head.write(f"{HOME}/ssh-alone", "\n".join(lines) + "\n", mode=0o755)
    done = run(bed, "-H", "s1,s2,s3", "--ssh-concurrency", "1", "--connect-timeout", "60", "--ssh-command", f"{HOME}/ssh-alone", "hostname")
    assert (done.returncode, len(done.stdout.splitlines())) == (0, 3), done.stderr
    assert not bed.head.path(f"{HOME}/too-many").exists()


def test_an_unknown_host_key_is_refused_and_can_be_accepted():
    with Testbed(hosts=1) as bed:
        bed.head.run(["rm", f"{HOME}/.ssh/known_hosts"], check=True)
        done = run(bed, "-H", "s1", "hostname")
        assert done.returncode == 125
        assert done.stderr.startswith("runjob: error: s1: ") and "--accept-new-host-keys" in done.stderr
        assert run(bed, "-H", "s1", "--accept-new-host-keys", "hostname").stdout == "[0]<stdout>:s1\n"
        assert run(bed, "-H", "s1", "hostname").stdout == "[0]<stdout>:s1\n"


def test_a_changed_host_key_is_never_accepted():
    with Testbed(hosts=1) as bed:
        bed.hosts[0].change_host_key()
        for options in ([], ["--accept-new-host-keys"]):
            done = run(bed, "-H", "s1", *options, "hostname")
            assert (done.returncode, done.stdout) == (125, "")
            assert done.stderr.startswith("runjob: error: s1: ") and "changed" in done.stderr
            assert len(done.stderr.splitlines()) == 1


@pytest.mark.parametrize("options, reason", [("size=64k", "is there space left?"), ("noexec", "programs may not be executed")])
def test_a_home_that_cannot_take_the_agent(options, reason):
    with Testbed(hosts=[HostSpec(tmpfs={HOME: options}), HostSpec()]) as bed:
        done = run(bed, "-H", "s1,s2", "hostname")
        assert done.returncode == 125
        assert re.fullmatch(rf"runjob: error: s1: .*{re.escape(reason)}.*\n", done.stderr)
        assert f"{HOME}/.cache/runjob" in done.stderr


@pytest.mark.parametrize("garbage", [
    "printf '\\377\\377\\377\\377\\001\\000\\000\\000\\377\\377\\377\\377\\000\\000\\000\\000\\000\\000\\000\\000'",  # 4 GiB
    "printf '\\000\\000\\000\\000\\143\\000\\000\\000\\377\\377\\377\\377\\000\\000\\000\\000\\000\\000\\000\\000'",  # no such type
    "head -c 100000 /dev/zero",
    "echo hello; sleep 600",
])
def test_an_agent_that_speaks_nonsense_ends_the_job(garbage):
    """It is refused by name, and the other host's ranks end as always."""
    with Testbed(hosts=2) as bed:
        assert run(bed, "-H", "s1", "true").returncode == 0
        (agent,) = bed.hosts[0].path(f"{HOME}/.cache/runjob").iterdir()
        bed.hosts[0].write(f"{HOME}/.cache/runjob/{agent.name}", f"#!/bin/sh\nprintf '\\177runjob-frames1\\n'\n{garbage}\n", mode=0o755)
        with Running(bed, "-H", "s1,s2", "--connect-timeout", "2", *python("import time; time.sleep(600)")) as job:
            status, _, errors = job.finish()
            assert status == 125
            assert "s1" in errors and "Traceback" not in errors and "terminate" not in errors
            job.wait_until_gone(bed.hosts[1])


def test_hosts_that_have_nothing_of_ours():
    """The program comes over the connection: the hosts do not have it."""
    with Testbed(hosts=1, hide=[RUNJOB.rpartition("/")[0]]) as bed:
        assert bed.hosts[0].run(["test", "-e", RUNJOB]).returncode != 0
        assert run(bed, "-H", "s1", "hostname").stdout == "[0]<stdout>:s1\n"
