"""The rows of the option table in cli/options, as the sources have them: what the tests about pages compare with."""

import dataclasses
import re

import source_tree

FILES = ("cli/options/option_table.cc", "cli/options/elastic_options.cc")
HIDDEN = ("kHorovodrun", "kMpirun", "kInternal")


@dataclasses.dataclass(frozen=True)
class Row:
    """One option that --help shows. Its other names are those that --help shows too, with their dashes."""

    name: str
    other_names: tuple
    value: str
    variables: tuple
    horovodrun_key: str
    default: str
    is_action: bool
    may_lack_value: bool

    def own_variable(self):
        """The variable that each option has."""
        return "RUNJOB_" + self.name.replace("-", "_").upper()


def _texts(text):
    return tuple(re.findall(r'"((?:[^"\\]|\\.)*)"', text))


def _field(row, name, kind):
    found = re.search(rf"\.{name} =\s*({kind})", row)
    return "".join(_texts(found.group(1))) if found else ""


def _list(row, name):
    found = re.search(rf"\.{name} =\s*\{{(.*?)\}}", row, re.DOTALL)
    return _texts(found.group(1)) if found else ()


def rows():
    text = "".join(source_tree.read(path) for path in FILES)
    quoted = r'(?:"(?:[^"\\]|\\.)*"\s*)+'
    found = []
    for row in re.split(r"\{(?=\.name = )", text)[1:]:
        if any(f"OptionGroup::{group}" in row for group in HIDDEN):
            continue
        found.append(
            Row(
                _field(row, "name", quoted), _list(row, "short_names"), _field(row, "value", quoted), _list(row, "variables"),
                _field(row, "horovodrun_key", quoted), _field(row, "default_text", quoted), ".is_action = true" in row, ".implied" in row,
            )
        )  # fmt: skip
    return found
