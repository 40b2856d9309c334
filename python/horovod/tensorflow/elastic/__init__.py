"""horovod.tensorflow.elastic."""

from runjob.tensorflow.elastic import TensorFlowKerasState, TensorFlowState, run

__all__ = ["TensorFlowKerasState", "TensorFlowState", "run"]
