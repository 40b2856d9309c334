"""tensorflow_idioms.py, all of it in one job for each launcher."""

import re

import pytest
import test_tutorials

import ranks

SCRIPT = ranks.ROOT / "tests" / "python" / "tensorflow" / "tensorflow_idioms.py"

folder = test_tutorials.folder


@pytest.mark.parametrize("launcher", [pytest.param("runjob", marks=pytest.mark.thorough), "horovodrun", pytest.param("mpirun", marks=pytest.mark.thorough)])
def test_every_idiom(folder, launcher):
    commands = {"runjob": test_tutorials.RUNJOB, "horovodrun": test_tutorials.HOROVODRUN, "mpirun": test_tutorials.MPIRUN}
    output = test_tutorials.run(folder, *commands[launcher], "python", str(SCRIPT))
    assert sorted(re.findall(r"rank (\d) of 2: 9 idioms", output)) == ["0", "1"], output
