"""The dependency table of docs/developers/architecture.md against every `#include`."""

import pathlib

import pytest
import source_tree

TABLE = source_tree.read_table(source_tree.read("docs/developers/architecture.md"))
SUFFIXES = (".cc", ".hpp", ".h", ".cu")


def test_every_include_is_allowed_by_the_table():
    wrong = [
        f"{path}: {header}: {objection}"
        for path in source_tree.sources(*SUFFIXES)
        for header, quoted in source_tree.includes(source_tree.read(path))
        if (objection := TABLE.objection(path, header, quoted))
    ]
    assert not wrong, "\n".join(wrong)


def arrows():
    """Every arrow that a file needs: (folder, the folder of a header that it includes, the header)."""
    return {
        (TABLE.folder_of(str(path)), TABLE.folder_of(header), header)
        for path in source_tree.sources(*SUFFIXES)
        for header, quoted in source_tree.includes(source_tree.read(path))
        if quoted and path.parts[0] != "tests"
    }


def test_the_table_names_every_folder_with_sources():
    folders = {TABLE.folder_of(str(path)) for path in source_tree.sources(*SUFFIXES) if path.parts[0] != "tests"}
    assert folders == set(TABLE.folders)


def test_every_arrow_of_the_table_is_needed():
    needed = {(folder, name) for folder, target, header in arrows() for name in (target, header)}
    assert not [(folder, name) for folder, names in TABLE.folders.items() for name in names if (folder, name) not in needed]


def test_the_table_has_no_circle():
    seen = []

    def visit(folder, above):
        assert folder not in above, f"{' -> '.join(above)} -> {folder}"
        for target in TABLE.folders[folder]:
            visit(target if target in TABLE.folders else TABLE.folder_of(target), [*above, folder])
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
        ("runtime/engine/a.cc", "launcher/channel/b.hpp", True, "the table has no arrow from runtime/engine to launcher/channel/b.hpp"),
        ("launcher/job/a.cc", "runtime/engine/b.hpp", True, "the table has no arrow from launcher/job to runtime/engine/b.hpp"),
        ("runtime/job/a.cc", "rendezvous/client.hpp", True, None),
        ("runtime/job/a.cc", "rendezvous/server/service.hpp", True, "the table has no arrow from runtime/job to rendezvous/server/service.hpp"),
        ("runtime/engine/a.cc", "runtime/job/b.hpp", True, "the table has no arrow from runtime/engine to runtime/job/b.hpp"),
        ("runtime/collectives/a.cc", "runtime/collectives/shm/b.hpp", True,
         "the table has no arrow from runtime/collectives to runtime/collectives/shm/b.hpp"),
        ("launcher/misc/a.cc", "base/b.hpp", True, "'launcher/misc' is no folder of the table"),
        ("tests/launcher/job/a.cc", "launcher/agent/b.hpp", True, None),
        ("cli/a.cc", "rendezvous/protocol.hpp", True, "the table has no arrow from cli to rendezvous/protocol.hpp"),
        ("cli/a.cc", "b.hpp", True, 'includes name the folder: "folder/header.hpp"'),
        ("cli/a.cc", "misc/b.hpp", True, "'misc' is no folder of the table"),
        ("cli/a.cc", "tests/catch.hpp", True, "only tests include tests"),
        ("cli/a.cc", "runjob/runjob.h", False, "the runtime's interface is for the runtime and its users"),
        ("examples/cpp/a.cc", "runjob/runjob.hpp", False, None),
        ("examples/cpp/a.cc", "base/error.hpp", True, "the table has no arrow from examples/cpp to base/error.hpp"),
        ("tests/hostfile/a.cc", "tests/catch.hpp", True, None),
        ("tests/hostfile/a.cc", "launcher/channel/frame.hpp", True, "the table has no arrow from tests/hostfile to launcher/channel/frame.hpp"),
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
        ("base/a.cc", "nccl.h", False, "nccl has its home in tests"),
        ("base/a.cc", "pmi2.h", False, "neither a system header nor a library of the table"),
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
