"""pinnace: one file from a trained model, run fast and compared with its source.

load() a model, build() a verified Program, save() it, run it in a Session, compare() it layer by layer.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from pinnace._core import (
    Cancelled,
    CancelToken,
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
from pinnace.files import printable
from pinnace.log import set_log_level
from pinnace.nnapi import nnapi_library_path
from pinnace.program import NodeInfo, Program, diff
from pinnace.session import Future, Placement, PlanInfo, Profile, Session, devices
from pinnace.types import Dim, Quantization, TensorSpec, custom_op

if TYPE_CHECKING:
    from pinnace.comparison import Comparison, compare
    from pinnace.model import CheckReport, Model, load

__version__ = "0.1.0"

__all__ = [
    "CancelToken",
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
    "nnapi_library_path",
    "passes",
    "set_log_level",
]


def _error_text(error: Error) -> str:
    """The sentence, with what a terminal would act on escaped: it may hold names that a file brought."""
    return printable(Exception.__str__(error), keep="\n")


Error.__str__ = _error_text  # type: ignore[method-assign, assignment]

# What prepares models is imported when it is first asked for: running them takes 2.5 MB less without it.
_LATER = {
    "CheckReport": "pinnace.model",
    "Comparison": "pinnace.comparison",
    "Model": "pinnace.model",
    "compare": "pinnace.comparison",
    "load": "pinnace.model",
}


def __getattr__(name: str) -> Any:
    if name not in _LATER:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = globals()[name] = getattr(import_module(_LATER[name]), name)
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
