"""docs/environment.md names every variable that the sources read or set, and no other."""

import re

import option_table
import source_tree

PAGE = source_tree.read("docs/environment.md")
MANUAL = "docs/manual.md"
NAME = re.compile(r"\b((?:RUNJOB|HOROVOD)_[A-Z][A-Z_]*[A-Z])\b")
FOLDERS = ("base", "launcher", "rendezvous", "runtime", "sealed", "bindings", "cli", "python")


def texts():
    return {str(path): source_tree.read(path) for path in source_tree.sources(".cc", ".hpp", ".py", folders=FOLDERS)}


def quoted_names(text):
    """Whole names in string literals: what is read or set."""
    return {name for literal in re.findall(r'"([^"\n]*)"|\'([^\'\n]*)\'', text) for part in literal for name in NAME.findall(part)}


def constants():
    """What C's interface calls RUNJOB_ too."""
    return set(NAME.findall(source_tree.read("runtime/include/runjob/runjob.h")))


def documented():
    """The names on this page and in the manual, and the variables that follow from the names of options, as the manual describes."""
    return {*NAME.findall(PAGE), *NAME.findall(source_tree.read(MANUAL)), *(row.own_variable() for row in option_table.rows())}


def test_every_variable_of_the_sources_is_on_the_page():
    # The runtime's configuration names its variables without their prefix in the source, whole in its header.
    config = {path: text for path, text in texts().items() if path.endswith("runtime_config.hpp")}
    used = set().union(*(quoted_names(text) for text in texts().values()), *(NAME.findall(text) for text in config.values()))
    assert used
    assert not used - documented() - constants()


def test_every_variable_of_the_page_is_in_the_sources():
    everything = "\n".join(texts().values())
    named = set(NAME.findall(PAGE)) - constants()
    assert "RUNJOB_LOCAL_RANK" in named

    def is_used(name):
        ending = name.partition("_")[2]
        return f'"{ending}"' in everything or re.search(rf"\b{name}\b", everything)

    assert not [name for name in sorted(named) if not is_used(name)]


# The launcher sets these itself, so that no rank's user can give a wrong value.
SET_BY_THE_LAUNCHER = {
    "ADDRESS", "AUTOTUNE_LOG", "ELASTIC", "GLOO_IFACE", "JOB_KEY_FILE", "PROCESS_NUMBER", "RANK", "RENDEZVOUS", "SIZE", "TIMELINE",
}  # fmt: skip


def names_in_table(path, table):
    found = re.search(rf"\b{table}\[\] = \{{(.*?)\n\}};", source_tree.read(path), re.DOTALL)
    assert found
    return set(re.findall(r'"([A-Z_]+)"', found.group(1)))


def test_the_launcher_checks_every_variable_that_the_runtime_reads():
    read = names_in_table("runtime/job/runtime_config.cc", "kRead")
    assert read - names_in_table("cli/settings/rank_variables.cc", "kChecks") == SET_BY_THE_LAUNCHER
