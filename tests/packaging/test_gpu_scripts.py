"""packaging/gpu_check.sh and gpu_bundle.sh over the stand-ins of CUDA and NCCL: what will run where there is a GPU."""

import lzma
import pathlib
import re
import shutil
import struct
import subprocess
import sys

import pytest

import scripts

ROOT = pathlib.Path(__file__).resolve().parents[2]
STAND_INS = ROOT / "build/release/lib/gpu_stand_in"
LIMIT_SECONDS = 400

pytestmark = pytest.mark.skipif(not (STAND_INS / "libcuda.so.1").exists(), reason="the stand-ins of CUDA and NCCL are not built")


def check(script, *arguments, **environment):
    return scripts.run([script, "--stand-ins", "--no-figures", *arguments], LIMIT_SECONDS, PYTHON=sys.executable, **environment)


def outcomes(folder):
    lines = (folder / "steps.tsv").read_text().splitlines()
    return {name: outcome for name, outcome, *_ in (line.split("\t") for line in lines)}


def test_the_check_passes_over_the_stand_ins(tmp_path):
    done = check(ROOT / "packaging/gpu_check.sh", tmp_path)
    assert done.returncode == 0, done.stdout + (tmp_path / "check.log").read_text()
    assert done.stdout.startswith("over stand-ins of CUDA and NCCL: no GPU is checked here\n")
    passed, skipped = map(int, re.search(r"^(\d+) passed, (\d+) skipped, in ", done.stdout.splitlines()[-1]).groups())
    found = outcomes(tmp_path)
    assert list(found.values()).count("passed") == passed >= 8 and list(found.values()).count("skipped") == skipped
    for step in ("one rank", "two ranks as two hosts", "two ranks that NCCL lets share", "two ranks through the host"):
        assert found[f"{step}, every collective"] == "passed"
    assert found["a killed rank"] == "passed"
    assert "| a killed rank | passed |" in (tmp_path / "tables.md").read_text()


def test_a_step_that_fails_is_named_and_the_others_run(tmp_path):
    done = check(ROOT / "packaging/gpu_check.sh", tmp_path, RUNJOB_STAND_IN_FAIL="ncclReduceScatter:1")
    found = outcomes(tmp_path)
    assert done.returncode == 1 and " failed" in done.stdout.splitlines()[-1]
    assert found["one rank, every collective"] == "FAILED" and found["a killed rank"] == "passed"
    assert "FAILED" in done.stdout and "one rank, every collective: status 1" in done.stdout


def test_without_time_left_nothing_counts_as_passed(tmp_path):
    done = check(ROOT / "packaging/gpu_check.sh", "--seconds", "1", tmp_path)
    assert done.returncode == 1 and done.stdout.splitlines()[-1].startswith("0 passed, ")
    assert "no time is left of 1 s" in done.stdout


def container(*bodies):
    entries = b"".join(struct.pack("<HHIQIIHHI", 2, 1, 64, len(body), 0, 0, 0, 1, of) + bytes(32) + body for of, body in bodies)
    return struct.pack("<IHHQ", 0xBA55ED50, 1, 16, len(entries)) + entries


def test_a_library_is_cut_down_to_one_kind_of_gpu(tmp_path):
    first, second = container((80, b"a" * 64), (90, b"b" * 64)), container((90, b"c" * 64), (100, b"d" * 64))
    (tmp_path / "code").write_bytes(first + bytes(16) + second)
    (tmp_path / "relocatable").write_bytes(b"e" * 640)
    assembly = """
        .section .nv_fatbin, "a"
        .incbin "code"
        .section __nv_relfatbin, "a"
        .incbin "relocatable"
        .text
        .globl answer
        answer: mov $42, %eax
        ret
    """
    subprocess.run(["cc", "-shared", "-x", "assembler", "-o", "libnccl.so.2", "-"], input=assembly, text=True, check=True, cwd=tmp_path)
    command = [sys.executable, ROOT / "packaging/cut_nccl.py", tmp_path / "libnccl.so.2"]
    done = subprocess.run([*command, "90", tmp_path / "out.xz"], capture_output=True, text=True, check=True)
    assert done.stdout.startswith("2 modules of 0.0 MB for architecture 90; ")
    library = lzma.open(tmp_path / "out.xz").read()
    assert all(letter * 64 in library for letter in (b"b", b"c"))
    assert not any(letter * 64 in library for letter in (b"a", b"d", b"e"))
    (tmp_path / "cut.so").write_bytes(library)
    answer = "import ctypes, sys; print(ctypes.CDLL(sys.argv[1]).answer())"
    assert subprocess.check_output([sys.executable, "-c", answer, tmp_path / "cut.so"], text=True) == "42\n"
    refused = subprocess.run([*command, "75", tmp_path / "none.xz"], capture_output=True, text=True, check=False)
    assert refused.returncode == 1 and "has no code for architecture 75" in refused.stderr


@pytest.mark.thorough
def test_a_bundle_checks_itself_away_from_the_source_tree(tmp_path):
    if not (ROOT / ".venv/bin/python").exists():
        pytest.skip("there is no .venv")
    made = scripts.run([ROOT / "packaging/gpu_bundle.sh", tmp_path / "bundle"], LIMIT_SECONDS)
    assert made.returncode == 0, made.stdout + made.stderr
    megabytes = int(re.search(r"bundle: (\d+) MiB", made.stdout).group(1))
    assert megabytes <= 48
    assert (tmp_path / "bundle/libnccl.so.2.xz").exists() or "no NCCL is brought along" in made.stdout
    again = scripts.run([ROOT / "packaging/gpu_bundle.sh", tmp_path / "bundle"], LIMIT_SECONDS)
    assert again.returncode == 1 and "is not empty" in again.stderr
    elsewhere = shutil.copytree(tmp_path / "bundle", tmp_path / "elsewhere")
    done = check(elsewhere / "gpu_check.sh", tmp_path / "out", LD_LIBRARY_PATH=str(STAND_INS))
    assert done.returncode == 0, done.stdout + (tmp_path / "out/check.log").read_text()
    assert outcomes(tmp_path / "out")["installing the wheel"] == "passed"
