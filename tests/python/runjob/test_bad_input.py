"""What users do wrong, in every function of the modules for PyTorch and NumPy: an error that says so, on all ranks that it concerns."""

import os

import numpy
import pytest
import torch

import cases
import runjob.numpy
import runjob.torch
from runjob.exceptions import MismatchError, NotInitializedError


def _attempts(hvd):
    """Each function that needs a job, by name."""
    ones = torch.ones(2) if hvd is runjob.torch else numpy.ones(2)
    attempts = {name: getattr(hvd, name) for name in ("rank", "size", "local_rank", "cross_size", "is_homogeneous", "barrier", "join")}
    for name in ("allreduce", "allgather", "alltoall", "reducescatter"):
        for form in (name, f"{name}_async"):
            attempts[form] = lambda function=getattr(hvd, form): function(ones)
    for name in ("allreduce", "allgather", "reducescatter"):
        for form in (f"grouped_{name}", f"grouped_{name}_async"):
            attempts[form] = lambda function=getattr(hvd, form): function([ones])
    for name in ("broadcast", "broadcast_", "broadcast_async", "broadcast_async_"):
        attempts[name] = lambda function=getattr(hvd, name): function(ones, 0)
    attempts["allreduce_"] = lambda: hvd.allreduce_(ones)
    attempts["empty_symmetric"] = lambda: hvd.empty_symmetric(3)
    attempts["broadcast_object"] = lambda: hvd.broadcast_object(1)
    attempts["allgather_object"] = lambda: hvd.allgather_object(1)
    attempts["start_timeline"] = lambda: hvd.start_timeline("/nowhere/trace.json")
    attempts["stop_timeline"] = hvd.stop_timeline
    attempts["add_process_set"] = lambda: hvd.add_process_set([0])
    return attempts


def _without_job(hvd):
    """The functions that do not raise what they should without a job, with what they do instead."""
    wrong = {}
    for name, attempt in _attempts(hvd).items():
        try:
            wrong[name] = repr(attempt())
        except NotInitializedError as error:
            if "init" not in str(error):
                wrong[name] = str(error)
        except Exception as error:
            wrong[name] = repr(error)
    return wrong


@pytest.mark.parametrize("hvd", [runjob.torch, runjob.numpy], ids=["torch", "numpy"])
def test_before_init(hvd):
    assert _without_job(hvd) == {}


def _after():
    found = []
    for hvd in (runjob.torch, runjob.numpy):
        hvd.init()
        hvd.barrier()
        child = os.fork()
        if child == 0:
            os._exit(len(_without_job(hvd)))
        found.append(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
        hvd.barrier()
        hvd.shutdown()
        found.append(_without_job(hvd))
    return found


def test_after_shutdown_and_in_a_forked_child(run_ranks):
    assert run_ranks(_after, 2).results == [[0, {}, 0, {}]] * 2


def _run():
    runjob.torch.init()
    return cases.run(CASES)


def disagreements():
    """What the ranks are told when rank 1 gives something else, by operation and what it is."""
    hvd, rank = runjob.torch, runjob.torch.rank()
    two, three, wide, ints = torch.ones(2), torch.ones(3), torch.ones(2, 3), torch.ones(2, dtype=torch.int64)
    of_ranks = {
        "allreduce shape": (lambda x: hvd.allreduce(x, name="a"), two, three),
        "allreduce dtype": (lambda x: hvd.allreduce(x, name="b", op=hvd.Sum), two, ints),
        "allreduce op": (lambda op: hvd.allreduce(two, name="c", op=op), hvd.Sum, hvd.Max),
        "allreduce scale": (lambda factor: hvd.allreduce(two, name="d", prescale_factor=factor), 1.0, 2.0),
        "broadcast root": (lambda root: hvd.broadcast(two, root, name="e"), 0, 1),
        "broadcast shape": (lambda x: hvd.broadcast_(x, 0, name="f"), two, three),
        "allgather shape": (lambda x: hvd.allgather(x, name="g"), torch.ones(1, 2), wide),
        "allgather dtype": (lambda x: hvd.allgather(x, name="h"), two, ints),
        "alltoall shape": (lambda x: hvd.alltoall(x, name="i"), torch.ones(2, 2), wide),
        "reducescatter shape": (lambda x: hvd.reducescatter(x, name="j"), two, three),
        "group dtype": (lambda x: hvd.grouped_allreduce([two, x], name="k", op=hvd.Sum), two, ints),
        "group length": (lambda count: hvd.grouped_allreduce([two] * count, name="l"), 1, 2),
    }
    wrong = {}
    for what, (call, *given) in of_ranks.items():
        try:
            wrong[what] = repr(call(given[rank]))
        except MismatchError as error:
            if not all(text in str(error) for text in ("rank 0", "rank 1")):
                wrong[what] = str(error)
    return wrong, hvd.allreduce(two, name="and the job goes on").tolist()


def wrong_sets():
    hvd = runjob.torch
    unknown, texts = hvd.ProcessSet([0]), []
    for process_set in (unknown, [0], None, 0):
        try:
            hvd.allreduce(torch.ones(1), process_set=process_set)
        except ValueError as error:
            texts.append("is not registered" in str(error) or "is not a ProcessSet" in str(error))
    return texts


def names_in_flight():
    hvd = runjob.torch
    texts = []
    if hvd.rank() == 0:
        handle = hvd.allreduce_async(torch.ones(1), name="twice")
        for again in (hvd.allreduce, hvd.allreduce_, hvd.allreduce_async):
            try:
                again(torch.ones(1), name="twice")
            except ValueError as error:
                texts.append("allreduce.twice" in str(error))
        hvd.barrier()
    else:
        hvd.barrier()
        handle = hvd.allreduce_async(torch.ones(1), name="twice")
    hvd.synchronize(handle)
    return texts if hvd.rank() == 0 else [True] * 3


def parameters():
    """Parameters that are no leaves, have no name, or the name of another."""
    hvd = runjob.torch
    model = torch.nn.Linear(2, 1)
    sgd = torch.optim.SGD(model.parameters(), lr=0.1)
    leaf = torch.ones(1, requires_grad=True)
    texts = []
    for attempt in (
        lambda: torch.optim.SGD([leaf * 2], lr=0.1),
        lambda: hvd.DistributedOptimizer(sgd, [("weight", model.weight)]),
        lambda: hvd.DistributedOptimizer(sgd, [("same", model.weight), ("same", model.bias)]),
        lambda: hvd.DistributedOptimizer(sgd, [model.weight, model.bias]),
        lambda: hvd.DistributedOptimizer(sgd).add_param_group({"params": [leaf * 2]}),
    ):
        try:
            attempt()
        except ValueError as error:
            texts.append(str(error)[:48])
    return texts


CASES = {
    disagreements: ({}, [1.0, 1.0]),
    wrong_sets: [True] * 4,
    names_in_flight: [True] * 3,
    parameters: [
        "can't optimize a non-leaf Tensor",
        "named_parameters does not name these parameters ",
        "named_parameters has duplicate names: same",
        "named_parameters must be pairs (name, parameter)",
        "can't optimize a non-leaf Tensor",
    ],
}

outcomes = cases.fixture(_run)


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.__name__)
def test_on_two_ranks(outcomes, case):
    for found in outcomes:
        assert found[case.__name__] == CASES[case], found[case.__name__]


def _raise_while_others_wait(what):
    hvd = runjob.torch
    hvd.init()
    if hvd.rank() == 1:
        raise LookupError("the data of rank 1 is missing")
    {"barrier": hvd.barrier, "join": hvd.join, "object": lambda: hvd.broadcast_object(root_rank=1)}[what]()


@pytest.mark.parametrize("what", ["barrier", "join", "object"])
def test_an_exception_in_one_rank_ends_the_job_with_its_text_on_top(run_ranks, what):
    job = run_ranks(_raise_while_others_wait, 3, what, status=1)
    verdict = job.stderr[job.stderr.index("runjob: error: ") :]
    assert verdict.startswith("runjob: error: rank 1 on localhost"), "the others are victims"
    assert "LookupError: the data of rank 1 is missing" in verdict.splitlines()[0]
