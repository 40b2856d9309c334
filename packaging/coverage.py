"""Which part of the lines of each folder ran in a build of the preset `coverage`, as gcov has counted: coverage.py BUILD-FOLDER.

Lines of the product only, and those that ran in C++ tests: the Python tests use another build. A process that is killed counts none.
"""

import collections
import concurrent.futures
import json
import os
import pathlib
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parents[1]
FOLDERS = ("base", "hostfile", "rendezvous", "sealed", "launcher", "runtime", "bindings", "cli")


def counted(data):
    """{(source, line): how often it ran} of the product's lines in one .gcda file."""
    done = subprocess.run(["gcov", "--json-format", "--stdout", data], capture_output=True, text=True, check=True, cwd=data.parent)
    counts = {}
    for text in done.stdout.splitlines():
        document = json.loads(text)
        for file in document["files"]:
            source = pathlib.Path(os.path.normpath(os.path.join(document["current_working_directory"], file["file"])))
            if not source.is_relative_to(ROOT) or source.relative_to(ROOT).parts[0] not in FOLDERS:
                continue
            for line in file["lines"]:
                key = (str(source.relative_to(ROOT)), line["line_number"])
                counts[key] = counts.get(key, 0) + line["count"]
    return counts


def by_folder(counts):
    """{folder: (lines, lines that ran)}, and the same of all under ""."""
    sums = collections.defaultdict(lambda: [0, 0])
    for (source, _), count in counts.items():
        for folder in ("", source.rpartition("/")[0]):
            sums[folder][0] += 1
            sums[folder][1] += count > 0
    return sums


def main(build):
    data = sorted(pathlib.Path(build).resolve().rglob("*.gcda"))
    if not data:
        sys.exit(f"coverage.py: {build} has no counts: build the preset `coverage` and run its tests first")
    total = collections.Counter()
    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        for counts in pool.map(counted, data):
            total.update(counts)
    sums = by_folder(total)
    for folder, (lines, ran) in sorted(sums.items(), key=lambda row: row[1][1] / row[1][0]):
        print(f"{100 * ran / lines:5.1f}% of {lines:6} lines  {folder or 'all folders'}")


if __name__ == "__main__":
    main(sys.argv[1])
