"""python/runjob/tensorflow/nodes.py: what operations are called among the ranks, which the trace shows."""

import json

import cases


def _named():
    import tensorflow as tf

    import runjob.tensorflow as hvd

    x = tf.ones(2)
    hvd.allreduce(x)
    hvd.allreduce(x, name="mine")

    @tf.function
    def graph(given):
        with tf.name_scope("scope"):
            return (
                hvd.allreduce(given),
                hvd.allreduce(given, name="same"),
                hvd.allreduce(given, name="same"),
                hvd.broadcast(given, 0, name="bare", ignore_name_scope=True),
                hvd.grouped_allreduce([given, given]),
            )

    graph(x)
    return True


def _trace(path):
    import runjob.tensorflow as hvd

    hvd.init()
    hvd.start_timeline(path)
    found = cases.run({_named: True})
    hvd.stop_timeline()
    return found


def test_names(run_ranks, tmp_path):
    path = tmp_path / "trace.json"
    assert run_ranks(_trace, 2, str(path)).results == [{"_named": True}] * 2
    text = path.read_text()
    json.loads(text)
    for name in (
        "allreduce.noname.sync.0", "allreduce.mine", "allreduce.scope/HorovodAllreduce_given_0", "allreduce.scope/same",
        "allreduce.scope/same_1", "broadcast.bare", "grouped_allreduce.scope/HorovodGroupedAllreduce_given_0",
    ):  # fmt: skip
        assert f'"{name}"' in text, name
