"""What run_ranks starts as a rank: calls a function of a test module and leaves what it returns for the test."""

import importlib.util
import os
import pathlib
import pickle
import sys


def call(source, name, arguments):
    """The function called `name` of the module in the file `source`, which is loaded once."""
    module_name = pathlib.Path(source).stem
    if module_name not in sys.modules:
        sys.path += [str(pathlib.Path(source).parent), str(pathlib.Path(__file__).parents[1])]  # as pytest does
        spec = importlib.util.spec_from_file_location(module_name, source)
        sys.modules[module_name] = importlib.util.module_from_spec(spec)
        if folder := os.environ.get("TEST_STAND_IN_GPU"):  # tests/python/torch/gpu
            sys.path.append(folder)
            importlib.import_module("stand_in_gpu").install()
        spec.loader.exec_module(sys.modules[module_name])
    return getattr(sys.modules[module_name], name)(*arguments)


def main():
    folder = pathlib.Path(sys.argv[1])
    result = call(*pickle.loads((folder / "call").read_bytes()))
    (folder / f"rank.{os.environ.get('RUNJOB_RANK', '0')}").write_bytes(pickle.dumps(result))


if __name__ == "__main__":
    main()
