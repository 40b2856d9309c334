"""runjob as a backend of torch.distributed:

    torch.distributed.init_process_group("runjob")

From PyTorch 2.14 on that finds the backend by itself. Before, import this module first.
"""

from .creation import register
from .process_group import RunjobProcessGroup

__all__ = ["RunjobProcessGroup", "register"]

register()
