"""What another user of a host can put in a job's way: files of ssh's, and the folder of the agent."""

import subprocess

import pytest
from remote_jobs import PYTHON, ROOT, run
from testbed import HOME, Testbed

CONFIG, KEY, CACHE = f"{HOME}/.ssh/config", f"{HOME}/.ssh/id_ed25519", f"{HOME}/.cache/runjob"
NOBODY = "65534"


@pytest.fixture(scope="module")
def bed():
    with Testbed(hosts=1) as bed:
        assert run(bed, "-H", "s1", "true").returncode == 0
        yield bed


def as_root(host, *command):
    host.run(list(command), user="root", check=True)


@pytest.mark.parametrize("change, reason", [(("chmod", "0666"), "others may write to it"), (("chown", NOBODY), f"it belongs to user {NOBODY}")])
def test_a_configuration_that_ssh_refuses_is_refused(bed, change, reason):
    bed.head.write(CONFIG, "Host s1\n  Port 22\n", mode=0o644)
    try:
        assert run(bed, "-H", "s1", "true").returncode == 0
        as_root(bed.head, *change, CONFIG)
        by_ssh = bed.head.run(["ssh", "s1", "true"])
        done = run(bed, "-H", "s1", "true")
        refused = f"Bad owner or permissions on {CONFIG}"
        assert by_ssh.returncode == 255 and refused in by_ssh.stderr
        assert done.returncode == 125 and f"{refused}: {reason}" in done.stderr
    finally:
        as_root(bed.head, "rm", CONFIG)


def test_a_key_that_ssh_ignores_is_ignored(bed):
    bed.head.run(["chmod", "0644", KEY], check=True)
    try:
        by_ssh = bed.head.run(["ssh", "-o", "BatchMode=yes", "s1", "true"])
        done = run(bed, "-H", "s1", "true")
        refused = f"Permissions 0644 for '{KEY}' are too open"
        assert by_ssh.returncode == 255 and refused in by_ssh.stderr
        assert done.returncode == 125
        assert done.stderr.startswith(f"runjob: warning: {refused}: this private key is ignored")
        assert f"runjob: error: s1: it accepts no key of ours for user user (none was tried); {refused}" in done.stderr
    finally:
        bed.head.run(["chmod", "0600", KEY], check=True)
    assert run(bed, "-H", "s1", "true").returncode == 0


def test_an_agent_that_another_user_has_put_into_the_cache_is_not_run(bed):
    (agent,) = bed.hosts[0].path(CACHE).glob("agent-*")
    as_root(bed.hosts[0], "mv", CACHE, f"{CACHE}.ours")
    as_root(bed.hosts[0], "install", "-d", "-o", NOBODY, CACHE)
    plant = f"printf '#!/bin/sh\\ntouch {HOME}/stolen\\n' > {agent.name}; chmod 755 {agent.name}"
    as_root(bed.hosts[0], "env", "-C", CACHE, "setpriv", f"--reuid={NOBODY}", "--clear-groups", "sh", "-c", plant)
    try:
        for arguments in (["true"], ["--clean-cache"]):
            done = run(bed, "-H", "s1", *arguments)
            assert done.returncode == 125
            assert f"runjob: error: s1: {CACHE} belongs to user {NOBODY}, and not to you; remove it, or set XDG_CACHE_HOME" in done.stderr
        assert not bed.hosts[0].path(f"{HOME}/stolen").exists()
        assert bed.hosts[0].path(f"{CACHE}/{agent.name}").exists()
    finally:
        as_root(bed.hosts[0], "rm", "-r", CACHE)
        as_root(bed.hosts[0], "mv", f"{CACHE}.ours", CACHE)
    assert run(bed, "-H", "s1", "true").returncode == 0


def by_other_user(host, folder, command):
    as_root(host, "install", "-d", "-m", "0777", folder)
    as_root(host, "env", "-C", folder, "setpriv", f"--reuid={NOBODY}", "--clear-groups", "sh", "-c", command)


def test_a_config_file_of_another_user_runs_nothing(bed):
    folder = "/tmp/config"
    by_other_user(bed.head, folder, f"echo host-discovery-script = '\"touch {folder}/ran; echo s1\"' > job.toml")
    done = run(bed, "-np", "1", "--min-np", "1", "--config-file", f"{folder}/job.toml", "true")
    reason = f"it belongs to user {NOBODY}; make a copy of your own: cp {folder}/job.toml COPY"
    assert (done.returncode, done.stderr) == (2, f"runjob: error: --config-file: bad owner or permissions on {folder}/job.toml: {reason}\n")
    assert not bed.head.path(f"{folder}/ran").exists()


def test_a_hostfile_of_another_user_is_used_with_a_warning_and_one_that_he_opened_is_not(bed):
    folder = "/tmp/hostfile"
    by_other_user(bed.head, folder, "echo s1 > hosts; echo s1 > open; chmod 0666 open")
    done = run(bed, "--hostfile", f"{folder}/hosts", "hostname")
    warning = f"runjob: warning: --hostfile: {folder}/hosts belongs to user {NOBODY}, who chooses the hosts of this job\n"
    assert (done.returncode, done.stderr) == (0, warning) and "s1" in done.stdout
    done = run(bed, "--hostfile", f"{folder}/open", "hostname")
    reason = f"others may write to it; chmod go-w {folder}/open"
    assert (done.returncode, done.stderr) == (2, f"runjob: error: bad permissions on hostfile {folder}/open: {reason}\n")


LISTENER = """import os, socket, sys
os.mkdir(sys.argv[1], 0o755)
listener = socket.socket(socket.AF_UNIX)
listener.bind(sys.argv[1] + "/0123.4242.sock")
os.chmod(sys.argv[1] + "/0123.4242.sock", 0o666)
listener.listen()
print("listens", flush=True)
print("asked for", listener.accept()[0].recv(100), flush=True)"""


def test_resize_asks_no_launcher_of_another_user(bed):
    user = bed.head.run(["id", "-u"]).stdout.strip()
    folder = f"/tmp/runjob-{user}"
    as_root(bed.head, "rm", "-rf", folder)
    listener = bed.head.popen(["setpriv", f"--reuid={NOBODY}", "--clear-groups", PYTHON, "-c", LISTENER, folder], user="root", stdout=subprocess.PIPE, text=True)
    try:
        assert listener.stdout.readline() == "listens\n"
        done = run(bed, "resize", "0123", "-np", "2")
        reason = f"it belongs to user {NOBODY}; only that user and root can remove it: rm -r {folder}"
        assert (done.returncode, done.stdout, done.stderr) == (2, "", f"runjob: error: {folder} is not a folder of this user alone: {reason}\n")
    finally:
        listener.kill()
        assert listener.communicate()[0] == ""
        as_root(bed.head, "rm", "-r", folder)


def test_status_and_trace_are_not_written_where_another_user_leads(bed):
    folder, ours = "/tmp/shared", f"{HOME}/ours"
    as_root(bed.head, "install", "-d", "-m", "0777", folder)
    bed.head.write(ours, "precious")
    as_root(bed.head, "env", "-C", folder, "setpriv", f"--reuid={NOBODY}", "--clear-groups", "sh", "-c", f"ln -s {ours} status; ln -s {ours} trace")
    refused = "'{}': the link there belongs to user 65534, and not to user {}; remove it, or name another file"
    user = bed.head.run(["id", "-u"]).stdout.strip()
    done = run(bed, "-np", "1", "--status-file", f"{folder}/status", "true")
    assert (done.returncode, done.stderr) == (0, f"runjob: error: --status-file: cannot create {refused.format(f'{folder}/status', user)}\n")
    done = run(bed, "-np", "1", "--timeline-filename", f"{folder}/trace", PYTHON, "-c", "import runjob.basics as basics; basics.init()", variables={"PYTHONPATH": str(ROOT / "python")})
    assert done.returncode != 0 and f"cannot create {refused.format(f'{folder}/trace', user)}" in done.stderr
    by_other_user(bed.head, folder, f"ln -s {HOME} middle")
    done = run(bed, "-np", "1", "--status-file", f"{folder}/middle/ours", "true")
    middle = f"the link {folder}/middle belongs to user {NOBODY}, and not to user {user}; name the folder to which it leads"
    assert (done.returncode, done.stderr) == (0, f"runjob: error: --status-file: cannot create '{folder}/middle/ours': {middle}\n")
    done = run(bed, "-np", "1", "--output-filename", f"{folder}/middle/out", "true")
    assert done.returncode == 2 and f"--output-filename: cannot make {folder}/middle/out: {middle}" in done.stderr
    assert bed.head.path(ours).read_text() == "precious"
