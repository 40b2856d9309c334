"""The table of Python packages in architecture.md against every import, and no circle of imports between modules."""

import ast
import graphlib

import source_tree

PYTHON = source_tree.ROOT / "python"
TABLE = source_tree.read_packages(source_tree.read("docs/developers/architecture.md"))


def module_name(path):
    parts = path.relative_to(PYTHON).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


MODULES = {module_name(path): path for path in sorted(PYTHON.rglob("*.py")) if "build" not in path.parts}


def package_of(module):
    return module if MODULES[module].name == "__init__.py" else module.rpartition(".")[0]


def imported_names(module, node):
    """The names that an import statement names, whole, be they modules or what lies in one."""
    if isinstance(node, ast.Import):
        return [alias.name for alias in node.names]
    if not isinstance(node, ast.ImportFrom):
        return []
    parts = package_of(module).split(".")
    above = ".".join(parts[: len(parts) - node.level + 1]) + "." if node.level else ""
    base = (above + (node.module or "")).rstrip(".")
    return [f"{base}.{alias.name}" for alias in node.names]


def imports(module):
    """The modules of ours that `module` imports, at any place in it. For type checkers alone does not count."""
    tree = ast.parse(MODULES[module].read_text(encoding="utf-8"))
    for node in ast.walk(tree):
        if isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING":
            node.body = []
    names = {name for node in ast.walk(tree) for name in imported_names(module, node)}
    found = {name if name in MODULES else name.rpartition(".")[0] for name in names}
    return {name for name in found if name in MODULES} - {module}


def row_of(package):
    """The row of a package: its own, or that of the package around it."""
    while package and package not in TABLE:
        package = package.rpartition(".")[0]
    return package


def arrows():
    pairs = ((row_of(package_of(one)), row_of(package_of(other))) for one in MODULES for other in imports(one))
    return {(one, other) for one, other in pairs if one != other}


def test_every_import_is_allowed_by_the_table_and_every_arrow_is_needed():
    allowed = {(package, target) for package, targets in TABLE.items() for target in targets}
    assert arrows() == allowed


def test_every_package_is_named_by_the_table():
    assert {row_of(package_of(module)) for module in MODULES} == set(TABLE)


def test_packages_and_modules_have_no_circle():
    """A package may offer what the packages in it hold, which use it themselves: the modules tell whether that is a circle."""
    others = {one: [other for other in targets if not other.startswith(f"{one}.")] for one, targets in TABLE.items()}
    graphlib.TopologicalSorter(others).prepare()
    graphlib.TopologicalSorter({module: imports(module) for module in MODULES}).prepare()


def test_imports_are_found():
    assert "runjob._library" in imports("runjob.handles")
    assert "runjob" in MODULES and "horovod.torch" in MODULES
