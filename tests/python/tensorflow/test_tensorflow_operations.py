"""python/runjob/tensorflow/operations.py in functions, with gradients, process sets and in every order; and what it refuses."""

import numpy

import tensorflow_cases


def in_a_function():
    """Every collective in one graph, which runs twice."""
    tf, hvd = tensorflow_cases.module()

    @tf.function
    def everything(x):
        return {
            "sum": hvd.allreduce(x, op=hvd.Sum),
            "average": hvd.allreduce(x),
            "half": hvd.allreduce(x, op=hvd.Sum, compression=hvd.Compression.fp16),
            "scaled": hvd.allreduce(x, op=hvd.Sum, prescale_factor=2.0, postscale_factor=0.5),
            "group": hvd.grouped_allreduce([x, tf.cast(x, tf.int32)], op=hvd.Max),
            "gather": hvd.allgather(x[: hvd.rank() + 1]),
            "gathers": hvd.grouped_allgather([x, x[:1]]),
            "root": hvd.broadcast(x, 1),
            "all": hvd.alltoall(x, [1, 2] if hvd.rank() == 0 else [0, 3]),
            "even": hvd.alltoall(x[:2]),
            "scatter": hvd.reducescatter(x, op=hvd.Sum),
            "scatters": hvd.grouped_reducescatter([x, x[:2]]),
            "place": [hvd.rank_op(), hvd.size_op(), hvd.local_rank_op(), hvd.local_size_op(), hvd.process_set_included_op()],
        }

    x = tf.constant([1.0, 2.0, 3.0]) * (10.0 ** hvd.rank())
    everything(x)
    return tf.nest.map_structure(lambda tensor: tensor.numpy().tolist(), everything(x))


def _expected_in_a_function(rank):
    return {
        "sum": [11, 22, 33],
        "average": [5.5, 11, 16.5],
        "half": [11, 22, 33],
        "scaled": [11, 22, 33],
        "group": [[10, 20, 30], [10, 20, 30]],
        "gather": [1, 10, 20],
        "gathers": [[1, 2, 3, 10, 20, 30], [1, 10]],
        "root": [10, 20, 30],
        "all": [([1], [1, 0]), ([2, 3, 10, 20, 30], [2, 3])][rank],
        "even": [[1, 10], [2, 20]][rank],
        "scatter": [[11, 22], [33]][rank],
        "scatters": [[[5.5, 11], [5.5]], [[16.5], [11]]][rank],
        "place": [rank, 2, rank, 2, 1],
    }


def shapes_in_a_function():
    """As far as they follow without running."""
    tf, hvd = tensorflow_cases.module()
    found = {}

    @tf.function(input_signature=[tf.TensorSpec([4, None, 2]), tf.TensorSpec(None)])
    def trace(x, anything):
        found["same"] = [hvd.allreduce(x).shape, hvd.broadcast(x, 0).shape]
        found["rows"] = [hvd.allgather(x).shape, hvd.reducescatter(x).shape, hvd.alltoall(x).shape]
        found["unknown"] = [hvd.allgather(anything).shape]
        found["scalars"] = [hvd.size_op().shape, hvd.join().shape]

    trace.get_concrete_function()
    return {name: [str(shape) for shape in shapes] for name, shapes in found.items()}


def gradients():
    """Of each operation, eagerly and in a function: the sum over ranks of what their losses say."""
    tf, hvd = tensorflow_cases.module()
    rank = hvd.rank()

    def of(operation, x):
        with tf.GradientTape() as tape:
            tape.watch(x)
            result = operation(x)
            weights = tf.reshape(tf.range(1.0, tf.cast(tf.size(result), tf.float32) + 1.0), tf.shape(result)) * (rank + 1)
            loss = tf.reduce_sum(result * weights)
        return tape.gradient(loss, x)

    operations = {
        "sum": lambda x: hvd.allreduce(x, op=hvd.Sum),
        "average": hvd.allreduce,
        "group": lambda x: hvd.grouped_allreduce([x], op=hvd.Sum)[0],
        "gather": lambda x: hvd.allgather(x[: rank + 1]),
        "gathers": lambda x: hvd.grouped_allgather([x[: rank + 1]])[0],
        "root": lambda x: hvd.broadcast(x, 1),
        "all": lambda x: hvd.alltoall(x, [1, 1] if rank == 0 else [0, 2])[0],
        "scatter": lambda x: hvd.reducescatter(x, op=hvd.Sum),
        "scatters": lambda x: hvd.grouped_reducescatter([x])[0],
    }
    x = tf.constant([1.0, 2.0])
    found = {}
    for name, operation in operations.items():
        eager = of(operation, x).numpy().tolist()
        traced = tf.function(of)(operation, x).numpy().tolist()
        assert eager == traced, f"{name}: {eager} eagerly, {traced} in a function"
        found[name] = eager
    return found


def _expected_gradients(rank):
    """Weights are [1, 2, ...] on rank 0 and [2, 4, ...] on rank 1."""
    return {
        "sum": [3, 6],
        "average": [1.5, 3],
        "group": [3, 6],
        "gather": [[1.5, 0], [3, 4.5]][rank],
        "gathers": [[1.5, 0], [3, 4.5]][rank],
        "root": [[0, 0], [1.5, 3]][rank],
        "all": [[1, 2], [4, 6]][rank],
        "scatter": [2, 4],
        "scatters": [1, 2],
    }


def slices():
    """IndexedSlices are gathered, and become an average by their values."""
    tf, hvd = tensorflow_cases.module()
    rank = hvd.rank()
    given = tf.IndexedSlices(tf.constant([[1.0, 2.0]]) * (rank + 1), tf.constant([rank]), tf.constant([3, 2]))
    averaged = tf.convert_to_tensor(hvd.allreduce(given)).numpy().tolist()
    summed = tf.convert_to_tensor(tf.function(lambda s: hvd.allreduce(s, op=hvd.Sum))(given)).numpy().tolist()
    mixed = hvd.grouped_allreduce([tf.constant(2.0), given], op=hvd.Sum)
    assert mixed[0].numpy() == 4 and isinstance(mixed[1], tf.IndexedSlices)
    return averaged, summed


def in_other_orders():
    """Twenty collectives in an order of its own on each rank, of which none depends on another."""
    tf, hvd = tensorflow_cases.module()
    order = list(range(20)) if hvd.rank() == 0 else list(reversed(range(20)))

    @tf.function
    def step():
        results = {}
        for i in order:
            results[i] = hvd.allreduce(tf.fill([i + 1], float(i)), op=hvd.Sum, name=f"tensor_{i}")
        return results

    return all(numpy.array_equal(step()[i].numpy(), numpy.full(i + 1, 2.0 * i)) for i in range(20))


def in_a_loop():
    """The iterations of a loop are in flight at the same time, under one node's name."""
    tf, hvd = tensorflow_cases.module()

    @tf.function
    def loop(count):
        sums = tf.TensorArray(tf.int32, size=count)
        for i in tf.range(count):
            sums = sums.write(i, hvd.allreduce(i * (hvd.rank() + 1), op=hvd.Sum))
        return sums.stack()

    return loop(100).numpy().tolist() == [3 * i for i in range(100)]


def runs_as_often_as_written():
    """Neither folded into a constant, nor merged with another, nor left out."""
    tf, hvd = tensorflow_cases.module()
    counter = tf.Variable(0)

    @tf.function
    def step():
        hvd.allreduce(tf.constant(1.0), name="unused")
        return hvd.allreduce(tf.constant(1.0), op=hvd.Sum) + hvd.allreduce(tf.constant(1.0), op=hvd.Sum) + float(counter.assign_add(1))

    return [float(step()) for _ in range(3)]


def sets():
    tf, hvd = tensorflow_cases.module()
    pair = hvd.add_process_set([0])
    inside = hvd.allreduce(tf.constant(5.0), op=hvd.Sum, process_set=pair).numpy() if pair.included() else None
    places = tf.function(lambda: [hvd.size_op(pair.process_set_id), hvd.process_set_included_op(pair.process_set_id)])()
    error = None
    if not pair.included():
        try:
            hvd.allreduce(tf.constant(5.0), name="outside", process_set=pair)
        except tf.errors.InvalidArgumentError as caught:
            error = "allreduce.outside" in caught.message
    hvd.remove_process_set(pair)
    return inside, [place.numpy().item() for place in places], error


def mismatches():
    """Every rank is told, as a TensorFlow error that names the tensor; the job goes on."""
    tf, hvd = tensorflow_cases.module()
    texts = []
    for trial in (
        lambda: hvd.allreduce(tf.ones([2 + hvd.rank()]), name="shape"),
        lambda: hvd.allreduce(tf.ones([2], [tf.float32, tf.float64][hvd.rank()]), name="dtype"),
        lambda: hvd.broadcast(tf.ones([2]), hvd.rank(), name="root"),
        tf.function(lambda: hvd.allgather(tf.ones([2, 2 + hvd.rank()]), name="columns")),
    ):
        try:
            trial()
            texts.append("nothing was raised")
        except tf.errors.FailedPreconditionError as error:
            texts.append(error.message)
    return ["disagree" in text and name in text for text, name in zip(texts, ("shape", "dtype", "root", "columns"))]


def refusals():
    tf, hvd = tensorflow_cases.module()
    by_hand = hvd.ProcessSet([0])
    by_hand.process_set_id = 42  # that of no set
    found = {}
    for name, trial in {
        "one tensor": lambda: hvd.grouped_allreduce(tf.ones(2)),
        "no tensor": lambda: hvd.grouped_allgather([]),
        "both": lambda: hvd.allreduce(tf.ones(2), average=True, op=hvd.Sum),
        "set": lambda: hvd.allreduce(tf.ones(2), process_set=7),
        "unregistered": lambda: hvd.allreduce(tf.ones(2), process_set=hvd.ProcessSet([0])),
        "by hand": lambda: hvd.broadcast(tf.ones(2), 0, process_set=by_hand),
        "in a function": lambda: tf.function(lambda: hvd.allgather(tf.ones(2), process_set=by_hand))(),
        "size": lambda: hvd.size_op(42),
        "included": lambda: hvd.process_set_included_op(42),
        "slices": lambda: hvd.allreduce(tf.IndexedSlices(tf.ones([1, 2]), tf.constant([0])), op=hvd.Max),
        "scalar": lambda: hvd.allgather(tf.constant(1.0)),
        "root": lambda: hvd.broadcast(tf.ones(2), 9),
        "text": lambda: hvd.allreduce(tf.constant("text")),
        "splits": lambda: hvd.alltoall(tf.ones(2), [1, 2]),
        "xla": lambda: tf.function(lambda x: hvd.allreduce(x), jit_compile=True)(tf.ones(2)),
    }.items():
        try:
            trial()
            found[name] = "nothing was raised"
        except Exception as error:
            found[name] = type(error).__name__
    return found


def joining():
    tf, hvd = tensorflow_cases.module()
    results = [hvd.allreduce(tf.constant(4.0), op=hvd.Sum, name="joined").numpy().item() for _ in range(2 * hvd.rank())]
    return results, int(hvd.join())


def names_after_joining():
    """Operations without a name, of which the ranks have run different numbers before."""
    tf, hvd = tensorflow_cases.module()
    for _ in range(1 + 2 * hvd.rank()):
        hvd.allreduce(tf.constant(4.0))
    hvd.join()
    return float(hvd.allreduce(tf.constant(4.0), op=hvd.Sum))


CASES = {
    in_a_function: _expected_in_a_function,
    shapes_in_a_function: {
        "same": ["(4, None, 2)"] * 2,
        "rows": ["(None, None, 2)"] * 3,
        "unknown": ["<unknown>"],
        "scalars": ["()", "()"],
    },
    gradients: _expected_gradients,
    slices: ([[0.5, 1], [1, 2], [0, 0]], [[1, 2], [2, 4], [0, 0]]),
    in_other_orders: True,
    in_a_loop: True,
    runs_as_often_as_written: [5.0, 6.0, 7.0],
    sets: lambda rank: (5.0 if rank == 0 else None, [1, int(rank == 0)], None if rank == 0 else True),
    mismatches: [True] * 4,
    refusals: {
        "one tensor": "ValueError",
        "no tensor": "ValueError",
        "both": "ValueError",
        **dict.fromkeys(("set", "unregistered", "by hand", "in a function", "size", "included"), "ValueError"),
        "slices": "NotImplementedError",
        "scalar": "InvalidArgumentError",
        "root": "InvalidArgumentError",
        "text": "InvalidArgumentError",
        "splits": "InvalidArgumentError",
        "xla": "ValueError",
    },
    joining: lambda rank: ([] if rank == 0 else [4.0, 4.0], 1),
    names_after_joining: 8.0,
}


test_every_case = tensorflow_cases.test(CASES)


def _with_one_thread():
    tf, hvd = tensorflow_cases.module()
    tf.config.threading.set_inter_op_parallelism_threads(1)
    tf.config.threading.set_intra_op_parallelism_threads(1)
    hvd.init()
    return in_other_orders() and in_a_loop()


def test_one_thread_of_tensorflow_is_enough(run_ranks):
    """Operations in flight hold none."""
    assert run_ranks(_with_one_thread, 2).results == [True] * 2
