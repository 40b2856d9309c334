"""The entry points of the package in a folder for PYTHONPATH: tests run from the source tree, where Python finds none."""

import pathlib
import tomllib

ROOT = pathlib.Path(__file__).resolve().parents[1]


def install(folder: pathlib.Path) -> pathlib.Path:
    """Makes what an installation of the package leaves of pyproject.toml's entry points. Returns the folder."""
    info = folder / "runjob_launcher-99.dist-info"
    info.mkdir(parents=True)
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: runjob-launcher\nVersion: 99\n")
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    groups = [
        f"[{group}]\n" + "".join(f"{name} = {value}\n" for name, value in points.items())
        for group, points in project["entry-points"].items()
    ]
    (info / "entry_points.txt").write_text("\n".join(groups))
    return folder
