"""python/runjob/elastic/commit_folder.py, in one process, and in one that is killed"""

import os
import signal
import stat
import subprocess
import sys

import pytest

import ranks
from runjob.elastic.commit_folder import CommitFolder
from runjob.exceptions import InvalidArgumentError

OTHER_USER = 65534  # nobody
is_root = pytest.mark.skipif(os.geteuid() != 0, reason="only root can give files to another user")


def add(folder, data):
    return folder.add(lambda file: file.write(data))


def contents(folder):
    result = []
    for name in folder.names():
        with folder.open(name) as file:
            result.append(file.read())
    return result


def test_the_last_two_files_remain_and_are_this_users_alone(tmp_path):
    folder = CommitFolder(str(tmp_path / "new" / "commits") + "/")
    assert folder.names() == []
    for data in (b"1", b"2", b"3"):
        add(folder, data)
    assert contents(folder) == [b"3", b"2"] and folder.names()[0] == "commit-00000003.safetensors"
    assert stat.S_IMODE((tmp_path / "new" / "commits").stat().st_mode) == 0o700
    assert {stat.S_IMODE(each.stat().st_mode) for each in (tmp_path / "new" / "commits").iterdir()} == {0o600}


def test_files_of_others_names_remain(tmp_path):
    (tmp_path / "notes").write_text("mine")
    folder = CommitFolder(str(tmp_path))
    for data in (b"1", b"2", b"3"):
        add(folder, data)
    assert (tmp_path / "notes").read_text() == "mine"


def test_a_write_that_fails_leaves_no_file(tmp_path):
    folder = CommitFolder(str(tmp_path))
    add(folder, b"1")

    def fail(file):
        file.write(b"a part")
        raise OSError("no space")

    with pytest.raises(OSError, match="no space"):
        folder.add(fail)
    assert os.listdir(tmp_path) == folder.names() and contents(folder) == [b"1"]


def test_a_process_that_is_killed_while_it_writes_leaves_the_file_before(tmp_path):
    code = (
        "import os, signal, sys; from runjob.elastic.commit_folder import CommitFolder; folder = CommitFolder(sys.argv[1])\n"
        "folder.add(lambda file: file.write(b'1'))\n"
        "def half(file):\n  file.write(b'half'); file.flush(); os.kill(os.getpid(), signal.SIGKILL)\n"
        "folder.add(half)"
    )
    done = subprocess.run([sys.executable, "-c", code, tmp_path], env=ranks.environment(), timeout=60, check=False)
    assert done.returncode == -signal.SIGKILL
    folder = CommitFolder(str(tmp_path))
    assert contents(folder) == [b"1"] and len(os.listdir(tmp_path)) == 2
    add(folder, b"2")
    assert contents(folder) == [b"2", b"1"] and len(os.listdir(tmp_path)) == 2, "what was left is removed"


def test_a_folder_that_is_a_link_or_a_file_is_refused(tmp_path):
    (tmp_path / "real").mkdir()
    (tmp_path / "link").symlink_to("real")
    (tmp_path / "file").write_text("")
    with pytest.raises(InvalidArgumentError, match="cannot use .*/link: it is a link; name a folder of your own"):
        CommitFolder(str(tmp_path / "link")).names()
    with pytest.raises(InvalidArgumentError, match="cannot use .*/file: Not a directory; name a folder"):
        CommitFolder(str(tmp_path / "file")).names()
    with pytest.raises(InvalidArgumentError, match="cannot use .*/file/commits: Not a directory; name a folder"):
        CommitFolder(str(tmp_path / "file" / "commits")).names()


def test_a_file_that_is_a_link_or_that_others_may_write_to_is_not_read(tmp_path):
    folder = CommitFolder(str(tmp_path))
    name = add(folder, b"1")
    (tmp_path / name).chmod(0o602)
    with pytest.raises(OSError, match="others may write to it .mode 602."):
        folder.open(name)
    (tmp_path / name).rename(tmp_path / "elsewhere")
    (tmp_path / name).symlink_to("elsewhere")
    with pytest.raises(OSError, match="Too many levels of symbolic links"):
        folder.open(name)
    (tmp_path / name).unlink()
    os.mkfifo(tmp_path / name)
    with pytest.raises(OSError, match="it is no file"):
        folder.open(name)


def test_a_folder_that_others_may_write_to_is_refused(tmp_path):
    folder = CommitFolder(str(tmp_path / "commits"))
    name = add(folder, b"1")
    (tmp_path / "commits").chmod(0o1777)
    for use in (folder.names, lambda: folder.open(name), lambda: add(folder, b"2")):
        with pytest.raises(InvalidArgumentError, match="--commit-dir: others may write to (.*/commits); chmod go-w \\1$"):
            use()
    (tmp_path / "commits").chmod(0o755)
    assert contents(folder) == [b"1"]


@is_root
def test_a_link_of_another_user_in_the_path_is_not_followed(tmp_path):
    shared, ours = tmp_path / "shared", tmp_path / "ours"
    shared.mkdir()
    shared.chmod(0o777)
    folder = CommitFolder(str(ours / "commits"))
    add(folder, b"1")
    (shared / "link").symlink_to("../ours")
    assert contents(CommitFolder(str(shared / "link" / "commits"))) == [b"1"], "one's own link is followed"
    os.chown(shared / "link", OTHER_USER, OTHER_USER, follow_symlinks=False)
    reason = f"the link .*/shared/link belongs to user {OTHER_USER}, and this process to user 0; name a folder of your own"
    for path in (shared / "link" / "commits", shared / "link" / "new" / "commits"):
        with pytest.raises(InvalidArgumentError, match=f"--commit-dir: cannot use {path}: {reason}"):
            add(CommitFolder(str(path)), b"2")
    assert contents(folder) == [b"1"] and os.listdir(ours) == ["commits"]


@is_root
def test_a_group_of_the_user_alone_is_nobody_else(tmp_path):
    folder = CommitFolder(str(tmp_path / "commits"))
    name = add(folder, b"1")
    (tmp_path / "commits").chmod(0o775)  # as mkdir makes it with umask 002
    (tmp_path / "commits" / name).chmod(0o664)
    assert contents(folder) == [b"1"]
    os.chown(tmp_path / "commits", 0, OTHER_USER)
    with pytest.raises(InvalidArgumentError, match="others may write to"):
        folder.names()


@is_root
def test_what_belongs_to_another_user_is_not_used(tmp_path):
    folder = CommitFolder(str(tmp_path / "commits"))
    name = add(folder, b"1")
    os.chown(tmp_path / "commits" / name, OTHER_USER, -1)
    with pytest.raises(OSError, match=f"it belongs to user {OTHER_USER}, and this process to user 0"):
        folder.open(name)
    os.chown(tmp_path / "commits", OTHER_USER, -1)
    with pytest.raises(InvalidArgumentError, match=f"/commits belongs to user {OTHER_USER}, and this process to user 0; name a folder"):
        folder.names()
    with pytest.raises(InvalidArgumentError, match="name a folder of your own"):
        add(folder, b"2")
