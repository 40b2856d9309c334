"""python/runjob/elastic/commit_file.py, in one process"""

import contextlib
import io
import json
import struct

import numpy as np
import pytest
from hostile_bytes import changed

from runjob.elastic import array_kinds, commit_file, snapshot

VALUES = {
    "weights": np.arange(6, dtype="float32").reshape(2, 3),
    "nested": [{"mask": np.array([True, False, True])}, np.float64(2.5), np.zeros((0, 4))],
    "scalar": np.array(7),
    "words": np.array(["one", "three"]),
    "swapped": np.arange(3, dtype=">i4"),
    "struct": np.array([(1, 2.0)], dtype=[("a", "i2"), ("b", "f8")]),
    "time": np.array(["2026-01-01"], dtype="datetime64[D]"),
    "step": 12,
}


def written(path, values=None):
    copies = snapshot.Snapshot()
    copies.keep(copies.prepare(values or VALUES))
    with open(path, "wb") as file:
        commit_file.write(file, copies.outline, copies.forms(), copies.array_bytes(is_copied=True))
    return copies


def read(path):
    copies = snapshot.Snapshot()
    with open(path, "rb") as file:
        header = commit_file.read_header(file)
        outline = commit_file.read_objects(file, header)
        commit_file.read_arrays(file, header, copies.make_room(outline, header.forms))
    return header, copies


def test_a_commit_comes_back_as_it_was(tmp_path):
    source = written(tmp_path / "commit")
    header, target = read(tmp_path / "commit")
    assert header.names == list(VALUES)
    assert target.is_whole and target.outline == source.outline and target.forms() == source.forms()
    assert all((one == other).all() for one, other in zip(source.copies(), target.copies()))
    numbers = [(form, offset) for form, offset in zip(header.forms, header.offsets) if form.dtype.kind in "bif" and form.dtype.isnative]
    assert len(numbers) == 4 and all(offset % form.dtype.itemsize == 0 for form, offset in numbers)


def test_bfloat16(tmp_path):
    dtype = pytest.importorskip("ml_dtypes").bfloat16
    written(tmp_path / "commit", {"x": np.ones(3, dtype)})
    header, target = read(tmp_path / "commit")
    assert header.forms[0].dtype == dtype and target.copies()[0].tolist() == [1, 1, 1]


def test_without_arrays(tmp_path):
    written(tmp_path / "commit", {"step": 3})
    assert read(tmp_path / "commit")[1].outline == {"step": 3}


def test_equal_names_of_arrays_become_different_ones(tmp_path):
    source = written(tmp_path / "commit", {"a.b": np.ones(1), "a": {"b": np.zeros(1)}, "runjob.objects": np.ones(2)})
    assert [copy.tolist() for copy in read(tmp_path / "commit")[1].copies()] == [copy.tolist() for copy in source.copies()]


def test_safetensors_reads_the_arrays(tmp_path):
    load_file = pytest.importorskip("safetensors.numpy").load_file
    written(tmp_path / "commit")
    arrays = load_file(tmp_path / "commit")
    assert (arrays["weights"] == VALUES["weights"]).all() and (arrays["nested.0.mask"] == VALUES["nested"][0]["mask"]).all()
    assert arrays["scalar"] == 7 and arrays["words"].tobytes() == VALUES["words"].tobytes()


def test_each_shorter_file_is_broken(tmp_path):
    written(tmp_path / "commit")
    whole = (tmp_path / "commit").read_bytes()
    for size in [*range(0, len(whole) - 1, 97), len(whole) - 1]:
        (tmp_path / "commit").write_bytes(whole[:size])
        with pytest.raises(commit_file.BrokenCommitError):
            read(tmp_path / "commit")


def with_header(change, path):
    """The file with another header."""
    data = path.read_bytes()
    (length,) = struct.unpack("<Q", data[:8])
    header = json.loads(data[8 : 8 + length])
    change(header)
    text = json.dumps(header).encode()
    path.write_bytes(struct.pack("<Q", len(text)) + text + data[8 + length :])


@pytest.mark.parametrize(
    "change, problem",
    [
        (lambda header: header.clear(), "KeyError"),
        (lambda header: header.update(weights=[]), "TypeError"),
        (lambda header: header["weights"].update(data_offsets=[0, 10**9]), "describes"),
        (lambda header: header["__metadata__"].update(runjob="{}"), "KeyError: 'version'"),
        (lambda header: header["__metadata__"].update(runjob='{"version": 2}'), "it has version 2 of the format, and this runjob reads version 1"),
        (lambda header: header["__metadata__"].update(runjob="["), "JSONDecodeError"),
        (lambda header: header["weights"].update(data_offsets=[24, 0]), r"\[24, 0\] is no place in it"),
        (lambda header: header["weights"].update(data_offsets=[-8, 16]), r"\[-8, 16\] is no place in it"),
        (lambda header: header["weights"].update(data_offsets=[0.0, 24.0]), "is no place in it"),
        (lambda header: header["weights"].update(data_offsets=[0, 8, 24]), "ValueError: too many values"),
    ],
)
def test_a_header_that_makes_no_sense_is_broken(tmp_path, change, problem):
    written(tmp_path / "commit")
    with_header(change, tmp_path / "commit")
    with pytest.raises(commit_file.BrokenCommitError, match=problem):
        read(tmp_path / "commit")


def test_any_header_is_read_or_broken(tmp_path):
    written(tmp_path / "commit")
    data = (tmp_path / "commit").read_bytes()
    (length,) = struct.unpack("<Q", data[:8])
    for seed in range(1000):
        header = changed(data[8 : 8 + length], seed) if seed % 10 else changed(data, seed)
        (tmp_path / "commit").write_bytes(struct.pack("<Q", len(header)) + header + data[8 + length :] if seed % 10 else header)
        with open(tmp_path / "commit", "rb") as file, contextlib.suppress(commit_file.BrokenCommitError, array_kinds.UnknownKindError):
            read = commit_file.read_header(file)
            assert all(0 <= offset <= offset + form.nbytes <= len(data) + 200 for form, offset in zip(read.forms, read.offsets))


def test_objects_that_cannot_be_unpickled_are_broken(tmp_path):
    written(tmp_path / "commit", {"step": "a text"})
    data = (tmp_path / "commit").read_bytes()
    (tmp_path / "commit").write_bytes(data[:-20] + b"\0" * 20)
    with pytest.raises(commit_file.BrokenCommitError, match="cannot be unpickled"):
        read(tmp_path / "commit")


def test_an_object_that_cannot_be_pickled_is_an_error_before_anything_is_written():
    file = io.BytesIO()
    with pytest.raises(TypeError):
        commit_file.write(file, {"generator": (each for each in [])}, [], [])
    assert file.getvalue() == b""
