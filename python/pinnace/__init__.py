"""pinnace: models from PyTorch and ONNX in one file that runs fast."""

from pinnace._core import (
    Cancelled,
    ConversionError,
    CorruptFile,
    DeviceLost,
    Error,
    FileError,
    InvalidArgument,
    NodeProblem,
    OutOfMemory,
    Unsupported,
    VerificationError,
    operators,
    run_graph_text,
)

__all__ = [
    "Cancelled",
    "ConversionError",
    "CorruptFile",
    "DeviceLost",
    "Error",
    "FileError",
    "InvalidArgument",
    "NodeProblem",
    "OutOfMemory",
    "Unsupported",
    "VerificationError",
    "operators",
    "run_graph_text",
]
