"""horovod.tensorflow.compression."""

from runjob.compression import Compressor, NoneCompressor
from runjob.tensorflow.compression import BF16Compressor, Compression, FP16Compressor

__all__ = ["BF16Compressor", "Compression", "Compressor", "FP16Compressor", "NoneCompressor"]
