"""Processes that no launcher has started, and that are a job by an exchange over pipes.

    exchanging.py FUNCTION SIZE      prints what the function of this module gives for each rank, in the order of the ranks

Each function gets the rank, the size and the exchange.
"""

import multiprocessing
import sys
import time

import runjob.numpy as hvd


def trained(rank, size, exchange):
    found = []
    for turn in range(2):
        odd = hvd.ProcessSet([1])
        hvd.init(exchange=exchange, rank=rank, size=size, process_sets=[odd])
        total = hvd.allreduce([rank + 1.0] * 70_000, op=hvd.Sum)[-1].item()
        found.append((hvd.rank(), hvd.size(), hvd.local_rank(), hvd.local_size(), total, odd.included()))
        hvd.shutdown()
    return found


def failing(call):
    try:
        call()
    except Exception as error:
        return f"{type(error).__name__}: {error}"
    return "no error"


def one_raises(rank, size, exchange):
    def failing_exchange(blob):
        raise OSError("the store is gone")

    return failing(lambda: hvd.init(exchange=failing_exchange if rank == 1 else exchange, rank=rank, size=size))


def gives_too_few(rank, size, exchange):
    return failing(lambda: hvd.init(exchange=lambda blob: exchange(blob)[:-1], rank=rank, size=size))


def gives_too_many(rank, size, exchange):
    return failing(lambda: hvd.init(exchange=lambda blob: [*exchange(blob), b"more"], rank=rank, size=size))


def gives_texts(rank, size, exchange):
    return failing(lambda: hvd.init(exchange=lambda blob: [str(each) for each in exchange(blob)], rank=rank, size=size))


def same_rank(rank, size, exchange):
    return failing(lambda: hvd.init(exchange=exchange, rank=0, size=size))


def one_does_not_come(rank, size, exchange):
    if rank == 1:
        time.sleep(4)
        return "did not come"
    began = time.monotonic()
    texts = [failing(lambda: hvd.init(exchange=exchange, rank=rank, size=size)) for _ in range(2)]
    return *texts, time.monotonic() - began


def _run(function, rank, size, pipes, results):
    def exchange(blob):
        for pipe in pipes.values():
            pipe.send_bytes(blob)
        return [blob if other == rank else pipes[other].recv_bytes() for other in range(size)]

    results.send(globals()[function](rank, size, exchange))
    results.close()


def main():
    function, size = sys.argv[1], int(sys.argv[2])
    context = multiprocessing.get_context("spawn")
    ends = {}
    for one in range(size):
        for other in range(one):
            ends[one, other], ends[other, one] = context.Pipe()
    answers = []
    for rank in range(size):
        here, there = context.Pipe()
        own = {other: ends.pop((rank, other)) for other in range(size) if other != rank}
        process = context.Process(target=_run, args=(function, rank, size, own, there))
        process.start()
        for pipe in (there, *own.values()):
            pipe.close()  # so that a process that waits for another one sees its end
        answers.append((here, process))
    for here, process in answers:
        print(here.recv())
        process.join()
        assert process.exitcode == 0


if __name__ == "__main__":
    main()
