"""The dtypes of runjob.h against every table of them: the runtime's, runjob.hpp's, Python's and TensorFlow's."""

import re

import pytest
import source_tree

# What TensorFlow calls by another name.
TENSORFLOW_NAMES = {"float16": "half", "float32": "float", "float64": "double"}


def numbers():
    """By name, as runjob.h has them."""
    header = source_tree.read("runtime/include/runjob/runjob.h")
    block = header[header.index("typedef enum runjob_dtype") : header.index("} runjob_dtype")]
    found = {name.lower(): int(number) for name, number in re.findall(r"RUNJOB_(\w+) = (\d+)", block)}
    assert "float32" in found
    return found


def rows():
    """The table of the runtime: by name, the dtype's enumerator, the constant of runjob.h that it is, and the size."""
    text = source_tree.read("runtime/collectives/dtype.hpp")
    constants = dict(re.findall(r"(k\w+) = RUNJOB_(\w+)", text))
    found = re.findall(r'case DType::(k\w+):\s+return \{"(\w+)", (\d+), ElementKind::k\w+\};', text)
    return {name: (enumerator, constants[enumerator], int(size)) for enumerator, name, size in found}


def test_the_runtime_has_a_row_for_each_dtype_of_the_c_interface():
    assert set(rows()) == set(numbers())
    assert {name: constant.lower() for name, (_, constant, _) in rows().items()} == {name: name for name in numbers()}


def test_the_sizes_in_the_comment_of_the_c_interface_are_those_of_the_table():
    (sizes,) = re.findall(r"Sizes: ([\d ]+) bytes", source_tree.read("runtime/include/runjob/runjob.h"))
    table = rows()
    assert [int(size) for size in sizes.split()] == [table[name][2] for name in sorted(numbers(), key=numbers().get)]


def test_the_cpp_interface_has_an_element_type_for_each_dtype():
    text = source_tree.read("runtime/include/runjob/runjob.hpp")
    assert {name.lower() for name in re.findall(r"DTypeIs<RUNJOB_(\w+)>", text)} == set(numbers())


def test_python_has_the_numbers_of_the_c_interface():
    text = source_tree.read("python/runjob/dtypes.py")
    assert {name: int(number) for name, number in re.findall(r'"(\w+)": (\d+),', text)} == numbers()


def test_tensorflow_has_a_row_for_each_dtype_of_the_c_interface():
    text = source_tree.read("bindings/tensorflow/dtypes.hpp")
    found = re.findall(r'\{DataType::k\w+, RUNJOB_(\w+), "(\w+)", (\d+)\}', text)
    expected = {name: (TENSORFLOW_NAMES.get(name, name), size) for name, (_, _, size) in rows().items()}
    assert {constant.lower(): (name, int(size)) for constant, name, size in found} == expected
    types = source_tree.read("bindings/tensorflow/c_interface.hpp")
    block = types[types.index("enum class DataType") : types.index("/// TF_Code")]
    assert set(re.findall(r"\b(k\w+) = \d+", block)) == set(re.findall(r"\{DataType::(k\w+),", text))


#: Each list of all dtypes, as a pattern of the text that has it.
LISTS = {
    "docs/numpy.md": r"\*\*dtypes\*\*:(.*?)\.",
    "docs/tensorflow.md": r"\*\*dtypes\*\*:(.*?)\.",
    "python/runjob/operations.py": r"^dtype (.*?);",
    "python/runjob/tensorflow/operations.py": r"^dtype (.*?), the same",
    "packaging/gpu_check/collectives.py": r"^DTYPES = \[(.*?)\]",
    "tests/python/collective_cases.py": r"^DTYPES = \{(.*?)^\}",
}


@pytest.mark.parametrize("path", LISTS)
def test_each_list_of_all_dtypes_is_complete(path):
    text = re.search(LISTS[path], source_tree.read(path), re.DOTALL | re.MULTILINE).group(1)
    assert not set(numbers()) - set(re.findall(r"\w+", text))


def test_no_switch_over_dtypes_has_a_default():
    """A default would take the place of the compiler's complaint about a dtype without a case."""
    sources = source_tree.sources(".cc", ".hpp", folders=("runtime", "bindings"))
    switches = [
        (str(path), body)
        for path in sources
        for body in re.findall(r"switch \([^)]*\) \{(.*?)\n *\}", source_tree.read(path), re.DOTALL)
        if re.search(r"case (DType|DataType|ElementKind)::", body)
    ]
    assert "runtime/collectives/reduce.cc" in {path for path, _ in switches}
    assert not [path for path, body in switches if re.search(r"\bdefault:", body)]
