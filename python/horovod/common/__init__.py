"""horovod.common: what all frameworks share."""

from . import basics as basics
from . import exceptions as exceptions
from . import process_sets as process_sets
from . import util as util
