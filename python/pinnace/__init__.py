"""pinnace: one file from a trained model, run fast and compared with its source.

load() a model, build() a verified Program, save() it, run it in a Session, compare() it layer by layer.
"""

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
    passes,
)
from pinnace.compare import Comparison, compare
from pinnace.model import CheckReport, Model, load
from pinnace.program import NodeInfo, Program, diff
from pinnace.session import Future, Placement, PlanInfo, Profile, Session, devices
from pinnace.types import Dim, Quantization, TensorSpec, custom_op

__version__ = "0.1.0"

__all__ = [
    "Cancelled",
    "CheckReport",
    "Comparison",
    "ConversionError",
    "CorruptFile",
    "DeviceLost",
    "Dim",
    "Error",
    "FileError",
    "Future",
    "InvalidArgument",
    "Model",
    "NodeInfo",
    "NodeProblem",
    "OutOfMemory",
    "Placement",
    "PlanInfo",
    "Profile",
    "Program",
    "Quantization",
    "Session",
    "TensorSpec",
    "Unsupported",
    "VerificationError",
    "compare",
    "custom_op",
    "devices",
    "diff",
    "load",
    "passes",
]
