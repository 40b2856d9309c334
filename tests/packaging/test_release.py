"""packaging/release.sh: what it refuses, and what a user can check of its results."""

import os
import pathlib
import shutil
import subprocess

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]

# In place of python3: makes an environment whose python writes a wheel. With DIFFER each wheel is another one.
PYTHON = """#!/usr/bin/env bash
case "$*" in
  "-m venv "*) mkdir -p "$3/bin" && cp "$0" "$3/bin/python" ;;
  *"pip wheel"*) while [ "$1" != --wheel-dir ]; do shift; done; echo "$PWD ${DIFFER:+$RANDOM$RANDOM}" >"$2/runjob_launcher-1-py3-none-any.whl" ;;
  *version_info*) echo 3.11 ;;
esac
"""


def git(folder, *words):
    identity = ["-c", "user.name=x", "-c", "user.email=x@example.org"]
    return subprocess.run(["git", *identity, *words], cwd=folder, check=True, capture_output=True, text=True).stdout


@pytest.fixture
def tree(tmp_path):
    """A checkout with nothing but packaging/, and a stand-in for python3."""
    folder = tmp_path / "tree"
    shutil.copytree(ROOT / "packaging", folder / "packaging")
    (folder / ".gitignore").write_text("build\n")
    git(folder, "init", "-q")
    git(folder, "add", ".")
    git(folder, "commit", "-q", "-m", "all")
    programs = tmp_path / "programs"
    programs.mkdir()
    (programs / "python3").write_text(PYTHON)
    (programs / "python3").chmod(0o755)
    return folder


def release(tree, *arguments, **environment):
    path = f"{tree.parent / 'programs'}:{os.environ['PATH']}"
    command = [tree / "packaging/release.sh", "--no-packages", *arguments]
    return subprocess.run(command, capture_output=True, text=True, check=False, timeout=120, env={**os.environ, "PATH": path, **environment})


@pytest.fixture
def minisign(tmp_path):
    """The files of a key that has no password."""
    if not shutil.which("minisign"):
        pytest.skip("minisign is not installed")
    secret, public = tmp_path / "secret.key", tmp_path / "public.key"
    subprocess.run(["minisign", "-G", "-W", "-s", secret, "-p", public], check=True, capture_output=True, timeout=60)
    return secret, public


def test_a_user_can_check_the_wheels_with_the_public_key(tree, tmp_path, minisign):
    secret, public = minisign
    results = tmp_path / "results"
    done = release(tree, "--key", f"minisign:{secret}", results)
    assert done.returncode == 0, done.stdout + done.stderr
    assert sorted(each.name for each in results.iterdir()) == ["SHA256SUMS", "SHA256SUMS.minisig", "runjob_launcher-1-py3-none-any.whl"]
    verify = ["minisign", "-V", "-p", public, "-m", "SHA256SUMS"]
    checked = subprocess.run(verify, cwd=results, capture_output=True, text=True, check=False, timeout=60)
    assert checked.returncode == 0 and git(tree, "rev-parse", "HEAD").strip() in checked.stdout, checked
    assert subprocess.run(["sha256sum", "-c", "SHA256SUMS"], cwd=results, check=False, capture_output=True, timeout=60).returncode == 0
    (results / "SHA256SUMS").write_text("0 runjob_launcher-1-py3-none-any.whl\n")
    assert subprocess.run(verify, cwd=results, check=False, capture_output=True, timeout=60).returncode != 0


def test_signify_signs_too(tree, tmp_path):
    signify = shutil.which("signify-openbsd")
    if not signify:
        pytest.skip("signify-openbsd is not installed")
    secret, public, results = tmp_path / "key.sec", tmp_path / "key.pub", tmp_path / "results"
    subprocess.run([signify, "-G", "-n", "-s", secret, "-p", public], check=True, capture_output=True, timeout=60)
    done = release(tree, "--key", f"signify:{secret}", results)
    assert done.returncode == 0, done.stdout + done.stderr
    verify = [signify, "-V", "-p", public, "-m", "SHA256SUMS", "-x", "SHA256SUMS.sig"]
    assert subprocess.run(verify, cwd=results, check=False, capture_output=True, timeout=60).returncode == 0


def test_two_builds_that_differ_are_no_release(tree, tmp_path, minisign):
    done = release(tree, "--key", f"minisign:{minisign[0]}", tmp_path / "results", DIFFER="1")
    assert done.returncode == 1 and "two builds of runjob_launcher-1-py3-none-any.whl differ" in done.stderr
    assert not (tmp_path / "results").exists()


@pytest.mark.parametrize("arguments, reason", [
    (["results"], "a release is signed: --key minisign:FILE or --key signify:FILE"),
    (["--key", "minisign:/no/such/key", "results"], "there is no key /no/such/key; 'minisign -G' makes one"),
    (["--key", "gpg:x", "results"], "the tool of --key is minisign or signify, not 'gpg'"),
    (["--key"], "--key needs a value"),
    (["--sign", "x", "results"], "unknown option --sign"),
    ([], "where do the results go?"),
])  # fmt: skip
def test_what_it_needs_is_named(tree, arguments, reason):
    done = release(tree, *arguments)
    assert done.returncode == 1 and reason in done.stderr, done


def test_a_tree_that_differs_from_its_commit_is_refused_with_the_files(tree, tmp_path, minisign):
    (tree / "packaging/steps.sh").open("a").write("# changed\n")
    done = release(tree, "--key", f"minisign:{minisign[0]}", tmp_path / "results")
    assert done.returncode == 1 and "a release is made of a commit" in done.stderr and "packaging/steps.sh" in done.stderr


def test_a_folder_with_files_is_refused(tree, tmp_path, minisign):
    done = release(tree, "--key", f"minisign:{minisign[0]}", tmp_path)
    assert done.returncode == 1 and f"{tmp_path} is not empty" in done.stderr


@pytest.mark.thorough
def test_the_real_wheels_have_the_same_bytes_twice(tmp_path, minisign):
    tree = tmp_path / "clone"
    subprocess.run(["git", "clone", "-q", ROOT, tree], check=True, timeout=120)
    command = [tree / "packaging/release.sh", "--no-packages", "--key", f"minisign:{minisign[0]}", tmp_path / "results"]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=3000)
    assert done.returncode == 0, done.stdout + done.stderr
    assert len(list((tmp_path / "results").glob("*.whl"))) == 2
