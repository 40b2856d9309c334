"""python/runjob/tensorflow/gradient_tape.py: gradients on two ranks against those of one process that has all of the data."""

import tensorflow_cases


def tapes():
    """Every option, wrapped before and after, eagerly and in a function."""
    tf, hvd = tensorflow_cases.module()
    expected = tensorflow_cases.expected_gradients(tf)
    variables = tensorflow_cases.variables_of_model(tf)
    x, y = tensorflow_cases.data(tf, hvd.rank())
    found = {}
    for name, options, factor in (
        ("plain", {}, 1),
        ("sum", {"op": hvd.Sum}, 2),
        ("fp16", {"compression": hvd.Compression.fp16}, 1),
        ("predivide", {"gradient_predivide_factor": 2.0}, 1),
        ("groups", {"groups": 2}, 1),
        ("lists", {"groups": [[variables[1]]]}, 1),
    ):

        def step(options=options):
            with hvd.DistributedGradientTape(tf.GradientTape(), **options) as tape:
                loss = tensorflow_cases.loss_of(tf, variables, x, y)
            return tape.gradient(loss, variables)

        wanted = [gradient * factor for gradient in expected]
        tolerance = 1e-2 if name == "fp16" else 1e-5
        found[name] = tensorflow_cases.close(step(), wanted, tolerance) and tensorflow_cases.close(tf.function(step)(), wanted, tolerance)
    with tf.GradientTape(persistent=True) as tape:
        loss = tensorflow_cases.loss_of(tf, variables, x, y)
    tape = hvd.DistributedGradientTape(tape)
    nested = tape.gradient(loss, {"w": variables[0], "b": variables[1]})
    found["nested"] = tensorflow_cases.close([nested["w"], nested["b"]], expected)
    found["single"] = tensorflow_cases.close([tape.gradient(loss, variables[0])], expected[:1])
    found["class"] = isinstance(tape, tf.GradientTape)
    return {name for name, is_right in found.items() if not is_right}


def local_sources():
    tf, hvd = tensorflow_cases.module()
    variables = tensorflow_cases.variables_of_model(tf)
    x, y = tensorflow_cases.data(tf, hvd.rank())
    with tf.GradientTape() as own:
        loss = tensorflow_cases.loss_of(tf, variables, x, y)
    alone = own.gradient(loss, variables)
    with hvd.DistributedGradientTape(tf.GradientTape(persistent=True)) as tape:
        loss = tensorflow_cases.loss_of(tf, variables, x, y)
    tape.register_local_source(variables[1])
    right = tensorflow_cases.close(tape.gradient(loss, variables), [tensorflow_cases.expected_gradients(tf)[0], alone[1] / 2])
    local, shared = tape.get_local_and_global_gradients(loss, variables)
    return right, len(local), len(shared)


def outside_of_its_set():
    """The rank that is not in the tape's set keeps its gradients as they are, those of local sources too."""
    tf, hvd = tensorflow_cases.module()
    only = hvd.add_process_set([1])
    variables = tensorflow_cases.variables_of_model(tf)
    x, y = tensorflow_cases.data(tf, hvd.rank())

    def step():
        with hvd.DistributedGradientTape(tf.GradientTape(persistent=True), op=hvd.Sum, process_set=only) as tape:
            loss = tensorflow_cases.loss_of(tf, variables, x, y)
        tape.register_local_source(variables[1])
        return tape.gradient(loss, variables)

    with tf.GradientTape() as own:
        loss = tensorflow_cases.loss_of(tf, variables, x, y)
    alone = own.gradient(loss, variables)
    found = tensorflow_cases.close(step(), alone), tensorflow_cases.close(tf.function(step)(), alone)
    hvd.remove_process_set(only)
    for local in ([], variables):  # also where no gradient is reduced
        with hvd.DistributedGradientTape(tf.GradientTape(), process_set=only) as tape:
            loss = tensorflow_cases.loss_of(tf, variables, x, y)
        for variable in local:
            tape.register_local_source(variable)
        try:
            tape.gradient(loss, variables)
        except ValueError as error:
            found += ("is not registered" in str(error),)
    return found


def slices_of_embeddings():
    """Gradients of rows, some of them on both ranks, gathered or made dense, and unconnected ones."""
    tf, hvd = tensorflow_cases.module()
    table = tf.Variable(tf.ones([4, 2]))
    unused = tf.Variable(1.0)
    results = []
    for dense in (False, True):
        with hvd.DistributedGradientTape(tf.GradientTape(), sparse_as_dense=dense) as tape:
            loss = tf.reduce_sum(tf.gather(table, [0, 1 + hvd.rank()]) * (hvd.rank() + 1.0))
        gradient, none = tape.gradient(loss, [table, unused])
        assert none is None and isinstance(gradient, tf.IndexedSlices) != dense
        results.append(tf.convert_to_tensor(gradient).numpy()[:, 0].tolist())
    return results


def gradients_that_only_some_ranks_have():
    """Each of them counts as zeros on the other rank: dense ones, rows, rows here and dense there. One that no rank has stays None."""
    tf, hvd = tensorflow_cases.module()
    rank = hvd.rank()
    both, of_0, of_1, nobodys = (tf.Variable([1.0, 2.0]) for _ in range(4))
    rows, mixed = (tf.Variable(tf.ones([3, 2])) for _ in range(2))
    variables = [both, of_0, nobodys, of_1, rows, mixed]
    found = []
    for options in ({}, {"op": hvd.Sum}, {"groups": 2}):
        with hvd.DistributedGradientTape(tf.GradientTape(), **options) as tape:
            loss = tf.reduce_sum(both * (rank + 1.0)) + tf.reduce_sum((of_1 if rank else of_0) * 4.0)
            if rank == 1:
                loss += tf.reduce_sum(tf.gather(rows, [2])) * 8.0
            loss += tf.reduce_sum(mixed if rank else tf.gather(mixed, [0]))
        gradients = tape.gradient(loss, variables)
        assert gradients[2] is None and isinstance(gradients[4], tf.IndexedSlices)
        found.append([tf.convert_to_tensor(each).numpy()[..., 0].tolist() for each in gradients if each is not None])
    return found


def steps_of_keras_with_gradients_of_one_rank():
    """An optimizer, run eagerly, with a layer that only rank 0 uses."""
    tf, hvd = tensorflow_cases.module()
    used, other = tf.Variable(1.0), tf.Variable(1.0)
    optimizer = hvd.DistributedOptimizer(tf.keras.optimizers.SGD(0.5))
    with tf.GradientTape() as tape:
        loss = 2.0 * used + (4.0 * other if hvd.rank() == 0 else 0.0)
    optimizer.apply_gradients(zip(tape.gradient(loss, [used, other]), [used, other]))
    return float(used), float(other)


def loop_that_broadcasts_in_its_first_step():
    """As the tutorials do: inside of the function, variables of the model and of the optimizer, which the step has made."""
    tf, hvd = tensorflow_cases.module()
    x, y = tensorflow_cases.data(tf, hvd.rank())
    variables = [tf.Variable(variable + float(hvd.rank())) for variable in tensorflow_cases.variables_of_model(tf)]
    optimizer = tf.keras.optimizers.Adam(0.05)

    @tf.function
    def step(is_first):
        with tf.GradientTape() as tape:
            loss = tensorflow_cases.loss_of(tf, variables, x, y)
        tape = hvd.DistributedGradientTape(tape)
        optimizer.apply_gradients(zip(tape.gradient(loss, variables), variables))
        if is_first:
            hvd.broadcast_variables(variables, root_rank=0)
            hvd.broadcast_variables(optimizer.variables(), root_rank=0)
        return loss

    losses = [float(hvd.allreduce(step(count == 0), name="loss")) for count in range(20)]
    state = [*variables, *(optimizer.variables() if callable(optimizer.variables) else optimizer.variables)]
    values = hvd.allgather(tf.concat([tf.reshape(tf.cast(tf.convert_to_tensor(each), tf.float32), [1, -1]) for each in state], 1))
    return bool(tf.reduce_all(values[0] == values[1])), losses[-1] < losses[1]


CASES = {
    loop_that_broadcasts_in_its_first_step: (True, True),
    tapes: set(),
    local_sources: (True, 1, 1),
    outside_of_its_set: (True, True, True, True),
    slices_of_embeddings: [[1.5, 0.5, 1, 0]] * 2,
    gradients_that_only_some_ranks_have: [
        [1.5, 2.0, 2.0, [0, 0, 4.0], [1.0, 0.5, 0.5]],
        [3.0, 4.0, 4.0, [0, 0, 8.0], [2.0, 1.0, 1.0]],
        [1.5, 2.0, 2.0, [0, 0, 4.0], [1.0, 0.5, 0.5]],
    ],
    steps_of_keras_with_gradients_of_one_rank: (0.0, 0.0),
}  # fmt: skip

test_every_case = tensorflow_cases.test(CASES)
