"""What is measured: one case is one operation, dtype and mode at one number of ranks, over all sizes. Pure functions."""

import dataclasses

from runjob.benchmark.arguments import OPERATIONS

DTYPES = ("float32", "float16", "bfloat16")
MODES = ("blocking", "asynchronous", "many", "future")
#: Measured when asked for: each rank sends to the next one. Only torch.distributed has it.
MESSAGES = "sendrecv"

IN_FLIGHT = 8  # operations, with the mode asynchronous
IN_FLIGHT_BYTES = 256 << 20  # and not more than so much of them
MANY = 1000
MANY_BYTES = 4096


@dataclasses.dataclass(frozen=True)
class Case:
    np: int
    op: str
    dtype: str
    mode: str
    sizes: tuple

    @property
    def title(self):
        what = [self.op] if self.op == "barrier" else [self.op, self.dtype]
        mode = f"{MANY} x 4 KiB in flight" if self.mode == "many" else self.mode
        return ", ".join([*what, mode, f"np {self.np}"])

    def in_flight(self, nbytes):
        """How many operations of a size are started before the first is waited for."""
        if self.mode == "many":
            return MANY
        return max(1, min(IN_FLIGHT, IN_FLIGHT_BYTES // max(nbytes, 1))) if self.mode == "asynchronous" else 1

    def limit_sizes(self):
        """The bytes that t_copy and t_scale of this case are about, by size."""
        return {nbytes: nbytes * (MANY if self.mode == "many" else 1) for nbytes in self.sizes if nbytes}

    def words(self):
        """The arguments of a program."""
        mode = "asynchronous" if self.mode == "many" else self.mode
        flights = [self.in_flight(nbytes) for nbytes in self.sizes]
        return [
            "--op", self.op, "--dtype", self.dtype, "--mode", mode, "--bytes", ",".join(map(str, self.sizes)),
            "--in-flight", ",".join(map(str, flights)),
        ]  # fmt: skip

    def unit_time(self, sample_us, operations):
        """Microseconds of one operation, of a sample of `operations`; with the mode many, of all of them."""
        return sample_us if self.mode == "many" else sample_us / operations


def choose(nps, operations, dtypes, modes, sizes):
    """All combinations. A barrier has neither dtype nor size, and is only waited for."""
    found = []
    for np in nps:
        for op in operations:
            if op == "barrier":
                found.append(Case(np, op, dtypes[0], "blocking", (0,)))
                continue
            for dtype in dtypes:
                found += [Case(np, op, dtype, mode, (MANY_BYTES,) if mode == "many" else tuple(sizes)) for mode in modes]
    return found


def bytes_needed(case, nbytes):
    """About what all ranks take at a size: their buffers, and as much again in the library."""
    result = case.np if case.op == "allgather" else 1
    return 2 * case.np * nbytes * (1 + result) * case.in_flight(nbytes)


def fit(case, available_bytes):
    """The case without the sizes that do not fit into memory, and these."""
    too_large = [nbytes for nbytes in case.sizes if bytes_needed(case, nbytes) > available_bytes]
    return dataclasses.replace(case, sizes=tuple(nbytes for nbytes in case.sizes if nbytes not in too_large)), too_large
