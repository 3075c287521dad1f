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
)
from pinnace.files import printable
from pinnace.log import set_log_level
from pinnace.nnapi import nnapi_library_path
from pinnace.pass_reports import PassInfo, PassReport, passes
from pinnace.program import Metadata, NodeInfo, Payload, Program, diff
from pinnace.progress import set_progress
from pinnace.service import Service
from pinnace.session import Event, Future, Placement, PlacementTable, PlanInfo, Profile, Session, State
from pinnace.shape_trials import ShapeTrial, TrialNode, TrialValue
from pinnace.streams import Stream, StreamedOutput
from pinnace.targets import Device, devices
from pinnace.types import Array, Dim, Quantization, ReferenceFunction, Shape, ShapeFunction, TensorSpec, custom_op

if TYPE_CHECKING:
    from pinnace.agreement import Agreement, ExactDistances
    from pinnace.loading import load
    from pinnace.model import CheckNode, CheckReport, Model
    from pinnace.preprocessing import Preprocessing, preprocess
    from pinnace.quantization import QuantizationReport, QuantizationRow, RangeRow
    from pinnace.quantize.options import DynamicInt8, Float16, Int8, WeightOnly
    from pinnace.verify.comparison import ComparedGraph, Comparison, ComparisonRow, NodeCount, compare
    from pinnace.verify.error_details import ErrorDetail

__version__ = "0.1.0"

# What prepares models is imported when it is first asked for: running them takes 2.5 MB less without it.
_LATER = {
    "Agreement": "pinnace.agreement",
    "CheckNode": "pinnace.model",
    "CheckReport": "pinnace.model",
    "ComparedGraph": "pinnace.verify.comparison",
    "Comparison": "pinnace.verify.comparison",
    "ComparisonRow": "pinnace.verify.comparison",
    "DynamicInt8": "pinnace.quantize.options",
    "ErrorDetail": "pinnace.verify.error_details",
    "ExactDistances": "pinnace.agreement",
    "Float16": "pinnace.quantize.options",
    "Int8": "pinnace.quantize.options",
    "Model": "pinnace.model",
    "NodeCount": "pinnace.verify.comparison",
    "Preprocessing": "pinnace.preprocessing",
    "QuantizationReport": "pinnace.quantization",
    "QuantizationRow": "pinnace.quantization",
    "RangeRow": "pinnace.quantization",
    "WeightOnly": "pinnace.quantize.options",
    "compare": "pinnace.verify.comparison",
    "load": "pinnace.loading",
    "preprocess": "pinnace.preprocessing",
}

__all__ = [
    "Agreement",
    "Array",
    "CancelToken",
    "Cancelled",
    "CheckNode",
    "CheckReport",
    "ComparedGraph",
    "Comparison",
    "ComparisonRow",
    "ConversionError",
    "CorruptFile",
    "Device",
    "DeviceLost",
    "Dim",
    "DynamicInt8",
    "Error",
    "ErrorDetail",
    "Event",
    "ExactDistances",
    "FileError",
    "Float16",
    "Future",
    "Int8",
    "InvalidArgument",
    "Metadata",
    "Model",
    "NodeCount",
    "NodeInfo",
    "NodeProblem",
    "OutOfMemory",
    "PassInfo",
    "PassReport",
    "Payload",
    "Placement",
    "PlacementTable",
    "PlanInfo",
    "Preprocessing",
    "Profile",
    "Program",
    "Quantization",
    "QuantizationReport",
    "QuantizationRow",
    "RangeRow",
    "ReferenceFunction",
    "Service",
    "Session",
    "Shape",
    "ShapeFunction",
    "ShapeTrial",
    "State",
    "Stream",
    "StreamedOutput",
    "TensorSpec",
    "TrialNode",
    "TrialValue",
    "Unsupported",
    "VerificationError",
    "WeightOnly",
    "compare",
    "custom_op",
    "devices",
    "diff",
    "load",
    "nnapi_library_path",
    "passes",
    "preprocess",
    "set_log_level",
    "set_progress",
]


def _error_text(error: Error) -> str:
    """The sentence, with what a terminal would act on escaped: it may hold names that a file brought."""
    return printable(Exception.__str__(error), keep="\n")


Error.__str__ = _error_text  # type: ignore[method-assign, assignment]


def __getattr__(name: str) -> Any:
    if name not in _LATER:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = globals()[name] = getattr(import_module(_LATER[name]), name)
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
