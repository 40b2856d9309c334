"""The dependency table of docs/architecture.md against every `#include`."""

import pathlib

import pytest
import source_tree

TABLE = source_tree.read_table(source_tree.read("docs/architecture.md"))
SUFFIXES = (".cc", ".hpp", ".h", ".cu")


def test_every_include_is_allowed_by_the_table():
    wrong = [
        f"{path}: {header}: {objection}"
        for path in source_tree.sources(*SUFFIXES)
        for header, quoted in source_tree.includes(source_tree.read(path))
        if (objection := TABLE.objection(path, header, quoted))
    ]
    assert not wrong, "\n".join(wrong)


def test_the_table_names_every_folder_with_sources():
    folders = {path.parts[0] for path in source_tree.sources(*SUFFIXES)} - {"tests"}
    assert folders and folders <= set(TABLE.folders)


def test_the_table_has_no_circle():
    seen = []

    def visit(folder, above):
        assert folder not in above, f"{' -> '.join(above)} -> {folder}"
        for target in TABLE.folders[folder]:
            visit(target.split("/")[0], [*above, folder])
        seen.append(folder)

    for folder in TABLE.folders:
        visit(folder, [])
    assert set(seen) == set(TABLE.folders)


@pytest.mark.parametrize(
    "path, header, quoted, objection",
    [
        ("hostfile/a.cc", "base/error.hpp", True, None),
        ("hostfile/a.cc", "hostfile/b.hpp", True, None),
        ("base/a.cc", "hostfile/b.hpp", True, "the table has no arrow from base to hostfile/b.hpp"),
        ("runtime/engine/a.cc", "launcher/frame.hpp", True, "the table has no arrow from runtime to launcher/frame.hpp"),
        ("launcher/a.cc", "runtime/engine/b.hpp", True, "the table has no arrow from launcher to runtime/engine/b.hpp"),
        ("runtime/engine/a.cc", "rendezvous/client.hpp", True, None),
        ("runtime/engine/a.cc", "rendezvous/service.hpp", True, "the table has no arrow from runtime to rendezvous/service.hpp"),
        ("cli/a.cc", "rendezvous/protocol.hpp", True, "the table has no arrow from cli to rendezvous/protocol.hpp"),
        ("cli/a.cc", "b.hpp", True, 'includes name the folder: "folder/header.hpp"'),
        ("cli/a.cc", "misc/b.hpp", True, "'misc' is no folder of the table"),
        ("cli/a.cc", "tests/catch.hpp", True, "only tests include tests"),
        ("cli/a.cc", "runjob/runjob.h", False, "the runtime's interface is for the runtime and its users"),
        ("examples/cpp/a.cc", "runjob/runjob.hpp", False, None),
        ("examples/cpp/a.cc", "base/error.hpp", True, "the table has no arrow from examples to base/error.hpp"),
        ("tests/hostfile/a.cc", "tests/catch.hpp", True, None),
        ("tests/hostfile/a.cc", "launcher/frame.hpp", True, "the table has no arrow from hostfile to launcher/frame.hpp"),
        ("tests/catch.hpp", "catch2/catch.hpp", False, None),
        ("base/a.cc", "catch2/catch.hpp", False, "catch2 has its home in tests"),
        ("base/log.cc", "spdlog/spdlog.h", False, None),
        ("launcher/a.cc", "spdlog/spdlog.h", False, "spdlog has its home in base"),
        ("tests/launcher/a.cc", "boost/asio.hpp", False, None),
        ("runtime/engine/a.cc", "gloo/allreduce.h", False, "gloo has its home in runtime/collectives/gloo"),
        ("runtime/collectives/gloo/a.cc", "gloo/allreduce.h", False, None),
        ("launcher/ssh/a.cc", "libssh2.h", False, None),
        ("launcher/a.cc", "libssh2.h", False, "libssh2 has its home in launcher/ssh"),
        ("tests/launcher/ssh/a.cc", "openssl/evp.h", False, None),
        ("rendezvous/a.cc", "openssl/evp.h", False, "openssl has its home in launcher/ssh"),
        ("base/a.cc", "absl/strings/cord.h", False, "a library that the table does not name"),
        ("base/a.cc", "nccl.h", False, "neither a system header nor a library of the table"),
        ("base/a.cc", "sys/socket.h", False, None),
        ("base/a.cc", "unistd.h", False, None),
        ("base/a.cc", "vector", False, None),
    ],
)
def test_objections(path, header, quoted, objection):
    assert TABLE.objection(pathlib.PurePath(path), header, quoted) == objection


def test_includes_are_found_however_they_are_written():
    text = '#include <vector>\n  #  include "base/error.hpp"  // why\n// #include <nothing>\nx #include <nothing>\n'
    assert source_tree.includes(text) == [("vector", False), ("base/error.hpp", True)]


def test_a_page_without_the_tables_is_an_error():
    with pytest.raises(ValueError, match="no table that begins with a column 'folder'"):
        source_tree.read_table("# Nothing\n")
