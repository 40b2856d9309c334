"""One rank of the output benchmark: writes the same block of lines again and again. writer.py RANK_VARIABLE BLOCKS"""

import os
import sys

LINES = 1000
LINE_BYTES = 100


def lines_of(rank):
    """The block: LINES lines of LINE_BYTES bytes, each with the rank and its own number."""
    return [b"%-*s\n" % (LINE_BYTES - 1, b"rank %d line %03d" % (rank, line)) for line in range(LINES)]


def main():
    data = b"".join(lines_of(int(os.environ[sys.argv[1]])))
    for _ in range(int(sys.argv[2])):
        rest = memoryview(data)
        while rest:
            rest = rest[os.write(1, rest) :]


if __name__ == "__main__":
    main()
