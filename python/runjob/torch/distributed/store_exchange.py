"""The exchange of runjob_exchange over a store of torch.distributed."""

from __future__ import annotations

import contextlib
import itertools
import time
from datetime import timedelta
from typing import Any

import torch.distributed as dist

from ...exchange import Exchange

#: How long rank 0 waits for the others to read. A rank that takes longer was stopped or has ended, for which the library
#: has errors of its own.
_READ_SECONDS = 5.0


def over_store(store: Any, rank: int, size: int, limit: float, what: str) -> Exchange:
    """An exchange among `size` processes that give the same store, each with an own rank. `what` names it in errors.

    Errors  TimeoutError names the ranks whose bytes have not come after `limit` seconds; those of the store.
    """
    numbers = itertools.count()

    def exchange(blob: bytes) -> list[bytes]:
        prefix, began = f"runjob/{next(numbers)}", time.monotonic()
        keys = [f"{prefix}/{other}" for other in range(size)]
        store.set(keys[rank], blob)
        try:
            store.wait(keys, timedelta(seconds=limit))
        except dist.DistStoreError:
            missing = [str(other) for other, key in enumerate(keys) if not store.check([key])]
            if not missing or time.monotonic() - began < limit / 2:
                raise
            raise TimeoutError(f"{what}: of {size} ranks, these have not come in {limit:g} s: {', '.join(missing)}") from None
        answers = [bytes(store.get(key)) for key in keys]
        if store.add(f"{prefix}/read", 1) == size:
            store.set(f"{prefix}/done", b"")
        if rank == 0:  # the store may be a server of this rank, which must not end before the others have read
            with contextlib.suppress(dist.DistStoreError):
                store.wait([f"{prefix}/done"], timedelta(seconds=_READ_SECONDS))
        return answers

    return exchange
