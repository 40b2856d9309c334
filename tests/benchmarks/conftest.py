import pathlib
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT), str(ROOT / "python")]  # `import benchmarks.collectives`, which uses `runjob.benchmark`
