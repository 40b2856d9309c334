"""What run_ranks starts as a rank: calls a function of a test module and leaves what it returns for the test."""

import importlib.util
import os
import pathlib
import pickle
import sys

folder = pathlib.Path(sys.argv[1])
source, name, arguments = pickle.loads((folder / "call").read_bytes())
sys.path.append(str(pathlib.Path(source).parent))  # as pytest does
spec = importlib.util.spec_from_file_location(pathlib.Path(source).stem, source)
module = importlib.util.module_from_spec(spec)
sys.modules[spec.name] = module
spec.loader.exec_module(module)
result = getattr(module, name)(*arguments)
(folder / f"rank.{os.environ.get('RUNJOB_RANK', '0')}").write_bytes(pickle.dumps(result))
