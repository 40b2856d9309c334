"""init(comm=...) and init(exchange=...): a job of the ranks of an mpi4py communicator, of some of the ranks that a launcher
has started, or of processes that have an exchange of their own.

The ranks find each other by MPI, by the launcher's rendezvous or by that exchange, which they have already: see
exchange.py. Afterwards they are an ordinary job, of which MPI knows nothing.
"""

from __future__ import annotations

import itertools
import os
import sys
import threading
import time
import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any

from . import job
from ._library import library
from .exceptions import UnavailableError, WaitTimeoutError
from .exchange import Exchange, Exchanger, ServedHere

#: The variables that an MPI gives to each of its ranks: the rank's number and the number of ranks.
_MPI_PAIRS = (("OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE"), ("PMI_RANK", "PMI_SIZE"))
_START_TIMEOUT_SECONDS = 120.0
_POLL_SECONDS = 0.002

_numbers: dict[tuple[int, ...], Iterator[int]] = {}  # the numbers of exchanges, by the ranks that took part in them


def is_communicator(comm: Any) -> bool:
    """True if `comm` looks like a communicator of mpi4py."""
    return hasattr(comm, "Get_group") and hasattr(comm, "Get_rank")


def placed(comm: Any, sets: tuple[Any, ...]) -> Callable[[], None]:
    """Returns the function by which init(comm) joins the job. `sets` are the library's arguments for process sets.

    Errors  ValueError for an invalid comm; RuntimeError for ranks that have no means to find each other.
    """
    environment = os.environ
    if comm is None or comm == []:
        return lambda: _join_by_environment(environment, sets)
    if is_communicator(comm):
        if environment.get("RUNJOB_RENDEZVOUS"):
            return _check_same_ranks(comm, environment, sets)
        return lambda: _join_over_mpi(comm, sets)
    ranks = _listed(comm)
    if environment.get("RUNJOB_RENDEZVOUS"):
        return lambda: _join_over_agent(ranks, environment, sets)
    if _started_by_mpi(environment) < 2:
        if ranks == [0]:
            return lambda: _join_as_started(sets)
        raise ValueError(f"init(comm={ranks}): this process was started alone; start ranks with runjob -np N, or with mpirun -np N")
    return lambda: _join_over_mpi(_subset_of_world(ranks), sets)


def _join_as_started(sets: tuple[Any, ...]) -> None:
    job.join_job(lambda: library().runjob_init_with_process_sets(*sets))


def _join_by_environment(environment: Mapping[str, str], sets: tuple[Any, ...]) -> None:
    """The library finds the other ranks by itself. With an MPI whose launcher it cannot use, mpi4py finds them."""
    try:
        _join_as_started(sets)
    except UnavailableError as error:
        if environment.get("RUNJOB_RENDEZVOUS") or _started_by_mpi(environment) < 2:
            raise
        try:
            world = _world()
        except RuntimeError:
            raise error from None
        _join_over_mpi(world, sets)


def _started_by_mpi(environment: Mapping[str, str]) -> int:
    """The number of ranks of the MPI that has started this process; 0 if none has."""
    for rank, size in _MPI_PAIRS:
        if environment.get(rank, "").isdigit() and environment.get(size, "").isdigit():
            return int(environment[size])
    return 0


def is_mpi_threaded() -> bool:
    """True if an MPI has started this process, and threads of the process may call MPI. runjob itself makes no MPI call."""
    if os.environ.get("RUNJOB_RENDEZVOUS") or not _started_by_mpi(os.environ):
        return False
    MPI = _initialized_mpi()
    return MPI is None or bool(MPI.Query_thread() == MPI.THREAD_MULTIPLE)


def warn_of_another_world() -> None:
    """Warns on rank 0 if the program has initialized an MPI whose world is not the job, such as one that did not start
    the ranks.
    """
    MPI = _initialized_mpi()
    if MPI is None or job.rank() != 0 or MPI.COMM_WORLD.Get_size() == job.size():
        return
    warnings.warn(
        f"the job has {job.size()} ranks, but mpi4py's MPI.COMM_WORLD has {MPI.COMM_WORLD.Get_size()}: MPI did not start these "
        f"ranks, so mpi4py does not connect them and each would get results of its own. Start the program with `mpirun -np "
        f"{job.size()} python ...` instead, or replace mpi4py's calls by those of runjob, such as allgather_object()",
        stacklevel=3,
    )


def _initialized_mpi() -> Any:
    """The module mpi4py.MPI if the program has imported it and MPI is in use, else None."""
    MPI = sys.modules.get("mpi4py.MPI")
    return MPI if MPI is not None and MPI.Is_initialized() and not MPI.Is_finalized() else None


def _world() -> Any:
    try:
        from mpi4py import MPI
    except ImportError as error:
        raise RuntimeError(
            f"init(comm=...): mpirun started {_started_by_mpi(os.environ)} processes, and joining some of them needs the package mpi4py "
            f"({error}); install it, or start the program with runjob -np N instead of mpirun"
        ) from None
    return MPI.COMM_WORLD


def _listed(comm: Any) -> list[int]:
    if not isinstance(comm, Iterable) or isinstance(comm, (str, bytes)):
        raise ValueError(f"init(comm={comm!r}): give an mpi4py communicator or a list of ranks")
    given = list(comm)
    if any(isinstance(rank, bool) or not hasattr(rank, "__index__") for rank in given):
        raise ValueError(f"init(comm={given!r}): give an mpi4py communicator or a list of ranks")
    ranks = [int(rank) for rank in given]
    if len(set(ranks)) != len(ranks) or min(ranks) < 0:
        raise ValueError(f"init(comm={ranks}): ranks are given once each, from 0 on")
    return ranks


def _check_member(ranks: list[int], rank: int, size: int) -> None:
    if max(ranks) >= size:
        raise ValueError(f"init(comm={ranks}): there are {size} ranks, 0 to {size - 1}")
    if rank not in ranks:
        raise ValueError(f"init(comm={ranks}): this is rank {rank}, which is not in it; it may call init() with a list of its own")


def _subset_of_world(ranks: list[int]) -> Any:
    world = _world()
    _check_member(ranks, world.Get_rank(), world.Get_size())
    return world.Create_group(world.Get_group().Incl(ranks))


def _check_same_ranks(comm: Any, environment: Mapping[str, str], sets: tuple[Any, ...]) -> Callable[[], None]:
    place, ours = (comm.Get_rank(), comm.Get_size()), (int(environment["RUNJOB_RANK"]), int(environment["RUNJOB_SIZE"]))
    if place != ours:
        raise ValueError(
            f"init(comm=...): this is rank {place[0]} of {place[1]} of the communicator, and runjob started it as rank {ours[0]} of "
            f"{ours[1]}; leave comm out, or start the program with mpirun instead of runjob"
        )
    return lambda: _join_as_started(sets)


def _join_over_mpi(comm: Any, sets: tuple[Any, ...]) -> None:
    from mpi4py import MPI

    if comm == MPI.COMM_NULL:
        raise ValueError("init(comm=MPI.COMM_NULL): this process is not in the communicator, and must not call init() with it")
    if job.is_initialized():
        return
    timeout = _start_timeout()
    try:
        _wait_for_all(comm, timeout)
    except TimeoutError as error:
        raise WaitTimeoutError(str(error)) from None
    own = comm.Dup()  # keeps runjob's messages apart from the program's
    try:
        exchange = ServedHere(_mpi_exchange(own, timeout))
        join_over(own.Get_rank(), own.Get_size(), exchange, sets, meanwhile=exchange.serve_until)
    finally:
        own.Free()


def _mpi_exchange(comm: Any, timeout: float) -> Exchange:
    def exchange(blob: bytes) -> list[bytes]:
        _wait_for_all(comm, timeout)
        return comm.allgather(blob)  # type: ignore[no-any-return]

    return exchange


def _wait_for_all(comm: Any, timeout: float) -> None:
    """A barrier during which signal handlers run, and which has a time limit. Errors  TimeoutError."""
    arrived = comm.Ibarrier()
    deadline = time.monotonic() + timeout
    while not arrived.Test():
        if time.monotonic() > deadline:
            raise TimeoutError(f"init() over MPI: not all {comm.Get_size()} ranks of the communicator have come in {timeout:g} s")
        time.sleep(_POLL_SECONDS)


def _join_over_agent(ranks: list[int], environment: Mapping[str, str], sets: tuple[Any, ...]) -> None:
    from .launch.agent_connection import AgentConnection

    rank, size = int(environment["RUNJOB_RANK"]), int(environment["RUNJOB_SIZE"])
    _check_member(ranks, rank, size)
    if ranks == list(range(size)):
        return _join_as_started(sets)
    if job.is_initialized():
        return None
    address = environment["RUNJOB_RENDEZVOUS"]
    if not address.startswith("unix:"):
        raise RuntimeError(f"init(comm={ranks}) needs an agent of runjob on each host; start the job with runjob -np N")
    agent, index, timeout = AgentConnection(address, rank), ranks.index(rank), _start_timeout()
    numbers = _numbers.setdefault(tuple(ranks), itertools.count())
    prefix = "python.comm." + "-".join(map(str, ranks))

    def exchange(blob: bytes) -> list[bytes]:
        return agent.gather(f"{prefix}.{next(numbers)}", blob, index, len(ranks), timeout)

    return join_over(index, len(ranks), exchange, sets)


def _start_timeout() -> float:
    for name in ("RUNJOB_START_TIMEOUT", "HOROVOD_START_TIMEOUT"):
        try:
            return float(os.environ.get(name, ""))
        except ValueError:  # the variable is unset, or has a unit, which the library reads
            continue
    return _START_TIMEOUT_SECONDS


def by_exchange(exchange: Any, rank: Any, size: Any, sets: tuple[Any, ...]) -> Callable[[], None]:
    """Returns the function by which init(exchange=, rank=, size=) joins the job.

    Errors  ValueError for arguments that are no exchange and no place in a job.
    """
    if not callable(exchange):
        raise ValueError(f"init(exchange={exchange!r}): give a function that takes bytes, and returns those of all ranks in a list")
    for number in (rank, size):
        if isinstance(number, bool) or not hasattr(number, "__index__"):
            raise ValueError(f"init(exchange=..., rank={rank!r}, size={size!r}): rank and size are whole numbers")
    if size < 1:
        raise ValueError(f"init(exchange=..., rank={rank}, size={size}): the size is at least 1")
    if not 0 <= rank < size:
        raise ValueError(f"init(exchange=..., rank={rank}, size={size}): ranks of {size} are 0 to {size - 1}")
    return lambda: join_over(int(rank), int(size), exchange, sets)


def join_over(
    rank: int,
    size: int,
    exchange: Exchange,
    sets: tuple[Any, ...] = (None, None, 0, 0),
    limit: float | None = None,
    meanwhile: Callable[[threading.Event], None] | None = None,
) -> None:
    """Joins a job of the `size` processes that take part in the exchange, as the rank `rank`. See call_over() for the other
    arguments. Does nothing if this process is already in a job.

    Errors  those of call_over() and of init().
    """
    join = library().runjob_init_with_exchange
    what = f"the exchange of init(), on rank {rank} of {size},"
    call_over(exchange, what, lambda function: join(rank, size, function, None, *sets), job.join_job, limit, meanwhile)


def call_over(
    exchange: Exchange,
    what: str,
    call: Callable[[Any], int],
    run: Callable[[Callable[[], int], Callable[[threading.Event], None]], None],
    limit: float | None = None,
    meanwhile: Callable[[threading.Event], None] | None = None,
) -> None:
    """Runs `call`, which gives its argument, an exchange, to the library.

    what       names the exchange in errors.
    run        job.join_job() or job.call_interruptibly(), which call the library in a thread of its own.
    limit      the time that one exchange may take, in seconds; None: the job's start timeout.
    meanwhile  what this thread does until the library's call has returned; by default it watches the time.
    Errors     WaitTimeoutError when an exchange takes longer, or raises TimeoutError; its other exceptions; those of `run`.
    """
    exchanger = Exchanger(exchange, what, _start_timeout() if limit is None else limit)
    try:
        run(lambda: call(exchanger.function()), meanwhile or exchanger.watch_until)
    except Exception:
        exchanger.raise_error()
        raise
