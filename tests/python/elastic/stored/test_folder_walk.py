"""python/runjob/elastic/folder_walk.py, which follows the rules of base/files/folder_walk.hpp"""

import contextlib
import os
import subprocess

import pytest

from runjob.elastic.folder_walk import open_folder, others_may_write

OTHER_USER = 65534  # nobody
is_root = pytest.mark.skipif(os.geteuid() != 0, reason="only root can become another user")


@pytest.fixture
def shared(tmp_path):
    """A folder that everybody may write to."""
    tmp_path.chmod(0o777)
    return tmp_path


def mark(path):
    """Goes to `path` and makes the folder `mark` there."""
    folder = open_folder(str(path))
    try:
        os.mkdir("mark", dir_fd=folder)
    finally:
        os.close(folder)


def by_other_user(folder, command):
    subprocess.run(["setpriv", f"--reuid={OTHER_USER}", f"--regid={OTHER_USER}", "--clear-groups", "sh", "-c", command], cwd=folder, check=True)


def test_own_links_are_followed_and_missing_folders_are_made(shared, monkeypatch):
    (shared / "real").mkdir()
    (shared / "own").symlink_to("real")
    (shared / "absolute").symlink_to(shared / "own")
    mark(shared / "absolute")
    mark(f"{shared}/own/new/./below//")
    monkeypatch.chdir(shared)
    mark("own/relative")
    gone = shared / "gone"
    gone.mkdir()
    monkeypatch.chdir(gone)
    gone.rmdir()
    mark(shared / "real" / "from-nowhere")
    assert [(shared / "real" / each / "mark").is_dir() for each in ("", "new/below", "relative", "from-nowhere")] == 4 * [True]


def test_a_path_that_leads_nowhere_has_the_systems_error(shared):
    (shared / "file").touch()
    (shared / "circle").symlink_to("circle")
    with pytest.raises(NotADirectoryError):
        mark(shared / "file" / "below")
    with pytest.raises(OSError, match="Too many levels of symbolic links"):
        mark(shared / "circle")


@is_root
def test_another_users_link_is_not_followed_below_a_folder_that_others_may_write_to():
    # pytest's own folders let no other user in
    folder = f"/tmp/runjob-folder-walk-{os.getpid()}"
    os.mkdir(folder)
    try:
        os.chmod(folder, 0o777)
        os.mkdir(f"{folder}/ours")
        by_other_user(folder, "ln -s ours link; mkdir his; ln -s ../ours his/link")
        os.symlink("link", f"{folder}/to-his")
        for path, link in (("link", "link"), ("link/new", "link"), ("his/link", "his/link"), ("to-his", "link")):
            with pytest.raises(OSError, match=f"the link {folder}/{link} belongs to user {OTHER_USER}, and this process to user 0"):
                mark(f"{folder}/{path}")
        assert os.listdir(f"{folder}/ours") == []
    finally:
        subprocess.run(["rm", "-r", folder], check=True)


def may_write(path, mode, group=0):
    os.chown(path, -1, group)
    os.chmod(path, mode)
    with open(path, "rb") as file:
        return others_may_write(file.fileno())


@is_root
def test_a_group_of_the_user_alone_is_nobody_else_unless_there_is_an_access_list(tmp_path):
    path = tmp_path / "file"
    path.touch()
    assert [may_write(path, mode) for mode in (0o644, 0o664, 0o646)] == [False, False, True]
    assert may_write(path, 0o664, group=OTHER_USER)
    none = 0xFFFFFFFF
    entries = ((1, 6, none), (2, 6, OTHER_USER), (4, 4, none), (16, 6, none), (32, 4, none))  # linux/posix_acl_xattr.h
    text = (2).to_bytes(4, "little") + b"".join(
        tag.to_bytes(2, "little") + rights.to_bytes(2, "little") + user.to_bytes(4, "little") for tag, rights, user in entries
    )
    with contextlib.suppress(OSError):  # where there are no such lists
        os.setxattr(path, "system.posix_acl_access", text)
        assert may_write(path, 0o664)
