"""horovod.torch.elastic.state."""

from runjob.torch.elastic.state import (
    ModelStateHandler,
    OptimizerStateHandler,
    SamplerStateHandler,
    StateHandler,
    TorchState,
    get_handler_registry,
    set_handler_registry,
)

__all__ = [
    "ModelStateHandler", "OptimizerStateHandler", "SamplerStateHandler", "StateHandler", "TorchState", "get_handler_registry",
    "set_handler_registry",
]  # fmt: skip
