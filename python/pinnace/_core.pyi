"""
The C++ core of pinnace.
"""

from __future__ import annotations

import collections.abc
import typing

import numpy

__all__: list[str] = [
    "CancelScope",
    "CancelToken",
    "Cancelled",
    "ConversionError",
    "CorruptFile",
    "CustomOp",
    "DeviceLost",
    "Error",
    "FileError",
    "GramMatrix",
    "InvalidArgument",
    "Model",
    "NodeProblem",
    "OutOfMemory",
    "PendingRun",
    "Program",
    "Service",
    "Session",
    "Unsupported",
    "ValueStatistics",
    "VerificationError",
    "built_from",
    "byte_scale",
    "check_cancelled",
    "deliver_log",
    "deliver_log_to",
    "describe_preprocessing",
    "devices",
    "diff",
    "dtypes",
    "import_model_text",
    "log",
    "log_to_stderr",
    "observe",
    "operators",
    "passes",
    "run_graph_text",
    "run_model_reference",
    "run_report",
    "set_log_level",
    "wait_for_pack_cache",
    "write_log",
]

class Error(Exception):
    offset: int | None
    rule: str
    nodes: collections.abc.Sequence[NodeProblem]

class Cancelled(Error): ...
class ConversionError(Error): ...
class CorruptFile(Error): ...
class DeviceLost(Error): ...
class FileError(Error): ...
class InvalidArgument(Error): ...
class OutOfMemory(Error, MemoryError): ...
class Unsupported(Error): ...
class VerificationError(Error): ...

class NodeProblem:
    """
    One node that could not be imported, compiled or placed.
    """
    def __getstate__(self) -> tuple[str, str, str, str, str, str]: ...
    def __init__(
        self, node: str, op: str, source: str = "", rule: str = "", value: str = "", module: str = ""
    ) -> None: ...
    def __repr__(self) -> str: ...
    def __setstate__(self, arg0: tuple[typing.Any, ...]) -> None: ...
    @property
    def module(self) -> str:
        """
        path of the submodule of a PyTorch model, 'layers.3.conv1'; may be empty
        """
    @property
    def node(self) -> str:
        """
        name in the source model
        """
    @property
    def op(self) -> str:
        """
        operator as the source spells it
        """
    @property
    def rule(self) -> str:
        """
        the rule that refuses it
        """
    @property
    def source(self) -> str:
        """
        'file.py:41', may be empty
        """
    @property
    def value(self) -> str:
        """
        the offending value, may be empty
        """

class CancelToken:
    """
    A request that work should stop: hand it to calls, then cancel() it from any thread.
    """
    def __init__(self) -> None: ...
    def cancel(self) -> None:
        """
        Ends the calls that have it, and those that get it later, with Cancelled.
        """
    @property
    def cancelled(self) -> bool:
        """
        True once cancel() was called.
        """

class CancelScope:
    """
    For a `with` block, calls on this thread end when the token says so.
    """
    def __enter__(self) -> CancelScope: ...
    def __exit__(self, type: typing.Any, value: typing.Any, traceback: typing.Any) -> None: ...
    def __init__(self, cancel: CancelToken | None = None) -> None: ...

class CustomOp:
    """
    An operator of the application. See pinnace.custom_op.
    """
    def __init__(
        self,
        name: str,
        shape: collections.abc.Callable[..., typing.Any],
        reference: collections.abc.Callable[..., typing.Any],
        outputs: typing.SupportsInt | typing.SupportsIndex = 1,
    ) -> None: ...
    @property
    def name(self) -> str: ...
    @property
    def outputs(self) -> int: ...

class Program:
    """
    What a .pnc file holds: immutable, shared, verified. See pinnace.Program.
    """
    @staticmethod
    def from_bytes(bytes: bytes, verify_hashes: bool = True) -> Program:
        """
        As open, from bytes, which are copied.
        """
    @staticmethod
    def open(path: str, verify_hashes: bool = True, on_use: bool = False) -> Program:
        """
        Maps and verifies a .pnc file. FileError, CorruptFile, Unsupported.
        """
    def bytes(self) -> bytes:
        """
        The file's bytes.
        """
    def save(self, path: str) -> None:
        """
        Writes the file atomically. FileError.
        """
    def text(self, max_constant_bytes: typing.SupportsInt | typing.SupportsIndex = 64) -> str:
        """
        The graph's text form.
        """
    def try_shapes(
        self,
        shapes: collections.abc.Sequence[collections.abc.Sequence[typing.SupportsInt | typing.SupportsIndex]],
        details: bool = False,
        ops: collections.abc.Sequence[CustomOp] = [],
        contents: collections.abc.Sequence[
            tuple[
                typing.SupportsInt | typing.SupportsIndex,
                collections.abc.Sequence[typing.SupportsInt | typing.SupportsIndex],
            ]
        ] = [],
    ) -> dict[str, typing.Any]:
        """
        As Model.try_shapes.
        """
    def with_metadata(self, entries: collections.abc.Mapping[str, str]) -> Program:
        """
        A program with these metadata entries more, or changed.
        """
    def without_payloads(self) -> Program:
        """
        The same program without what back ends stored in it.
        """
    @property
    def constants(self) -> list[dict[str, typing.Any]]: ...
    @property
    def inputs(self) -> list[dict[str, typing.Any]]: ...
    @property
    def metadata(self) -> dict[str, str]: ...
    @property
    def nodes(self) -> list[dict[str, typing.Any]]: ...
    @property
    def outputs(self) -> list[dict[str, typing.Any]]: ...
    @property
    def payloads(self) -> list[dict[str, typing.Any]]: ...
    @property
    def states(self) -> list[dict[str, typing.Any]]: ...
    @property
    def streamed_inputs(self) -> list[dict[str, typing.Any]]: ...
    @property
    def streamed_outputs(self) -> list[dict[str, typing.Any]]: ...
    @property
    def symbols(self) -> list[dict[str, typing.Any]]: ...

class Service:
    """
    An application's wishes. See pinnace.Service.
    """
    def __init__(
        self,
        preference: str = "",
        priority: str = "",
        deadline: typing.SupportsFloat | typing.SupportsIndex | None = None,
        loop_timeout: typing.SupportsFloat | typing.SupportsIndex | None = None,
        cache_folder: str = "",
        device: str = "",
        processors: collections.abc.Sequence[typing.SupportsInt | typing.SupportsIndex] = [],
    ) -> None: ...

class Session:
    """
    A program made ready for a target. See pinnace.Session.
    """
    def __init__(
        self,
        program: Program,
        target: str = "auto",
        threads: typing.SupportsInt | typing.SupportsIndex = 0,
        precision: str = "fp32",
        fallback: bool = True,
        keep: collections.abc.Sequence[str] = [],
        plan_cache: typing.SupportsInt | typing.SupportsIndex = 8,
        ops: collections.abc.Sequence[CustomOp] = [],
        require_payload: bool = False,
        pack_cache: bool = False,
        service: Service = ...,
        shape_invariant: bool = False,
    ) -> None: ...
    def finish(
        self,
        inputs: collections.abc.Sequence[typing.Any],
        timeout: typing.SupportsFloat | typing.SupportsIndex | None = None,
        cancel: CancelToken | None = None,
    ) -> tuple[typing.Any, list[int]]: ...
    def fork(self) -> Session: ...
    def profile(
        self,
        inputs: collections.abc.Sequence[typing.Any],
        timeout: typing.SupportsFloat | typing.SupportsIndex | None = None,
        cancel: CancelToken | None = None,
    ) -> tuple[list[numpy.ndarray[typing.Any, numpy.dtype[typing.Any]]], list[dict[str, typing.Any]]]:
        """
        (outputs, list of timed nodes).
        """
    def reset_state(self) -> None: ...
    def restore_state(self, state: bytes) -> None: ...
    def run(
        self,
        inputs: collections.abc.Sequence[typing.Any],
        timeout: typing.SupportsFloat | typing.SupportsIndex | None = None,
        cancel: CancelToken | None = None,
    ) -> list[numpy.ndarray[typing.Any, numpy.dtype[typing.Any]]]:
        """
        Arrays in order in, list of new arrays out. The GIL is released.
        """
    def save_state(self) -> bytes: ...
    def set_state(self, index: typing.SupportsInt | typing.SupportsIndex, value: typing.Any) -> None: ...
    def state(
        self, index: typing.SupportsInt | typing.SupportsIndex
    ) -> numpy.ndarray[typing.Any, numpy.dtype[typing.Any]]:
        """
        A copy of a state's contents.
        """
    @property
    def inputs(self) -> list[dict[str, typing.Any]]: ...
    @property
    def outputs(self) -> list[dict[str, typing.Any]]: ...
    @property
    def placement(self) -> list[dict[str, typing.Any]]: ...
    @property
    def plan(self) -> dict[str, typing.Any]: ...
    @property
    def precision(self) -> str: ...
    @property
    def symbols(self) -> list[dict[str, typing.Any]]: ...

class PendingRun:
    """
    A run on a thread of its own. See pinnace.Future.
    """
    def __init__(
        self,
        session: Session,
        inputs: collections.abc.Sequence[typing.Any],
        timeout: typing.SupportsFloat | typing.SupportsIndex | None = None,
        cancel: typing.Any = None,
    ) -> None: ...
    def cancel(self) -> None: ...
    def done(self) -> bool: ...
    def result(self) -> list[numpy.ndarray[typing.Any, numpy.dtype[typing.Any]]]: ...

class Model:
    """
    An imported and optimised graph. See pinnace.Model.
    """
    @staticmethod
    def format_of(path: str) -> str:
        """
        The format that load() would take a file for, by its first bytes.
        """
    @staticmethod
    def load(
        path: str,
        disabled_passes: collections.abc.Sequence[str] = [],
        check_passes: bool = False,
        symbols: collections.abc.Sequence[
            tuple[
                str,
                typing.SupportsInt | typing.SupportsIndex,
                typing.SupportsInt | typing.SupportsIndex | None,
                typing.SupportsInt | typing.SupportsIndex,
            ]
        ] = [],
        model_name: str = "",
        ops: collections.abc.Sequence[CustomOp] = [],
        dim_names: collections.abc.Sequence[
            tuple[typing.SupportsInt | typing.SupportsIndex, typing.SupportsInt | typing.SupportsIndex, str]
        ] = [],
        examples: collections.abc.Sequence[tuple[str, typing.Any]] = [],
        separate_dims: collections.abc.Sequence[str] = [],
    ) -> Model:
        """
        Loads .onnx, .pt2, .pnc or an NNAPI model's .json. symbols: (name, min, max or None, multiple_of) per dynamic dimension. dim_names: (input, dimension, its new name). examples: (name, or "" for all in order, array). separate_dims: names of dimensions of an ONNX file that are not one and the same.
        """
    @staticmethod
    def load_torch_nnapi(
        serialized: numpy.ndarray[typing.Any, numpy.dtype[typing.Any]],
        weights: collections.abc.Sequence[numpy.ndarray[typing.Any, numpy.dtype[typing.Any]]],
        input_dims: collections.abc.Sequence[collections.abc.Sequence[typing.SupportsInt | typing.SupportsIndex]],
        input_formats: collections.abc.Sequence[typing.SupportsInt | typing.SupportsIndex],
        output_formats: collections.abc.Sequence[typing.SupportsInt | typing.SupportsIndex],
        disabled_passes: collections.abc.Sequence[str] = [],
        check_passes: bool = False,
        ops: collections.abc.Sequence[CustomOp] = [],
    ) -> Model:
        """
        From the parts of PyTorch's NnapiModule; arrays are read as bytes and copied.
        """
    @staticmethod
    def load_torch_program(
        name: str,
        parts: collections.abc.Sequence[tuple[str, typing.Any]],
        disabled_passes: collections.abc.Sequence[str] = [],
        check_passes: bool = False,
        symbols: collections.abc.Sequence[
            tuple[
                str,
                typing.SupportsInt | typing.SupportsIndex,
                typing.SupportsInt | typing.SupportsIndex | None,
                typing.SupportsInt | typing.SupportsIndex,
            ]
        ] = [],
        ops: collections.abc.Sequence[CustomOp] = [],
        dim_names: collections.abc.Sequence[
            tuple[typing.SupportsInt | typing.SupportsIndex, typing.SupportsInt | typing.SupportsIndex, str]
        ] = [],
        examples: collections.abc.Sequence[tuple[str, typing.Any]] = [],
        model_name: str = "",
    ) -> Model:
        """
        From the parts that torch.export.save would write: (name in the archive, its bytes). Weights are used where they lie; build() raises InvalidArgument if they were written to. Else as load.
        """
    @staticmethod
    def parse(
        text: str,
        disabled_passes: collections.abc.Sequence[str] = [],
        check_passes: bool = False,
        ops: collections.abc.Sequence[CustomOp] = [],
    ) -> Model:
        """
        From the text form of a graph.
        """
    def build(
        self, targets: collections.abc.Sequence[str], metadata: collections.abc.Mapping[str, str] = {}
    ) -> Program: ...
    def check(self, targets: collections.abc.Sequence[str]) -> list[dict[str, typing.Any]]:
        """
        One dict per node and target.
        """
    def cut(self, values: collections.abc.Sequence[str]) -> Model:
        """
        The model with these inner values as inputs, and what they would have been as outputs of their names with ".made" behind them.
        """
    def float16_sites(self) -> list[dict[str, typing.Any]]:
        """
        Nodes that have float32 operands, and why those that stay in float32 do.
        """
    def in_float16(self, nodes: collections.abc.Sequence[str], values: bool = True) -> Model:
        """
        The model with these nodes in float16, between float32 inputs and outputs. values: False leaves all in float32 and rounds what these nodes read that no such node makes.
        """
    def preprocessed(self, how: dict[str, typing.Any], input: str = "") -> Model:
        """
        The model that makes one of its inputs of a picture; `how` has fields of C++'s Preprocessing.
        """
    def quantization_sites(self) -> dict[str, typing.Any]:
        """
        {"nodes", "values", "float_only"}: what can compute in 8-bit integers, what has to be observed, and the nodes of operators without an 8-bit form.
        """
    def quantized(
        self,
        nodes: collections.abc.Sequence[str],
        values: collections.abc.Sequence[
            tuple[str, typing.SupportsFloat | typing.SupportsIndex, typing.SupportsInt | typing.SupportsIndex]
        ],
        means: collections.abc.Sequence[
            tuple[str, collections.abc.Sequence[typing.SupportsFloat | typing.SupportsIndex]]
        ] = [],
        per_channel: bool = True,
        fold: bool = True,
    ) -> Model:
        """
        The model that computes these nodes in integers. values: (name, scale, zero point). fold: False leaves quantize and dequantize between operators on floats.
        """
    def ready_to_quantize(self, equalize: bool = False) -> Model:
        """
        The same function with every value that needs a range.
        """
    def streamed(
        self, streams: collections.abc.Sequence[tuple[str, typing.SupportsInt | typing.SupportsIndex]]
    ) -> Model:
        """
        The model for chunks of these inputs along these axes.
        """
    def text(self, max_constant_bytes: typing.SupportsInt | typing.SupportsIndex = 64) -> str: ...
    def try_shapes(
        self,
        shapes: collections.abc.Sequence[collections.abc.Sequence[typing.SupportsInt | typing.SupportsIndex]],
        details: bool = False,
        contents: collections.abc.Sequence[
            tuple[
                typing.SupportsInt | typing.SupportsIndex,
                collections.abc.Sequence[typing.SupportsInt | typing.SupportsIndex],
            ]
        ] = [],
    ) -> dict[str, typing.Any]:
        """
        What the shape rules say at these shapes of the inputs, in order, where inputs of these places have these integers: {"fits", "inferred": nodes whose rules hold, "failure"}; with details also "nodes": (name, op, inputs, outputs, whole-number attributes), and "values": name -> (dtype, sizes or None, contents or None, range of floats or None).
        """
    def weight_sites(self) -> list[dict[str, typing.Any]]:
        """
        Nodes whose weights can be stored as integers.
        """
    def with_names(self, inputs: collections.abc.Sequence[str], outputs: collections.abc.Sequence[str]) -> Model:
        """
        The same model with these names of its inputs and outputs, all of them in order.
        """
    def with_ranges(
        self,
        ranges: collections.abc.Sequence[
            tuple[
                str,
                typing.SupportsInt | typing.SupportsIndex,
                typing.SupportsInt | typing.SupportsIndex | None,
                typing.SupportsInt | typing.SupportsIndex,
            ]
        ],
    ) -> Model:
        """
        The same model with narrower ranges of dynamic dimensions: (name, min, max or None, multiple_of).
        """
    def with_stored_weights(
        self,
        nodes: collections.abc.Sequence[str],
        bits: typing.SupportsInt | typing.SupportsIndex,
        block: typing.SupportsInt | typing.SupportsIndex,
        symmetric: bool,
        dynamic: bool = False,
        integers: bool = True,
        passes: bool = True,
        grams: collections.abc.Sequence[tuple[str, GramMatrix]] = [],
    ) -> Model:
        """
        The model with the weights of these nodes as integers, or, with integers=False, as the floats that they stand for. dynamic: products round what they multiply, row by row, and are of integers. passes: False where quantized(), or this again, follows. grams: (node, GramMatrix of the rows that it multiplies), to round its weights by.
        """
    @property
    def constants(self) -> list[dict[str, typing.Any]]: ...
    @property
    def facts(self) -> dict[str, str]: ...
    @property
    def format(self) -> str: ...
    @property
    def inputs(self) -> list[dict[str, typing.Any]]: ...
    @property
    def merged(self) -> list[tuple[str, str]]:
        """
        (name of a node that became a part of another, that one's name), as it happened.
        """
    @property
    def nodes(self) -> list[dict[str, typing.Any]]: ...
    @property
    def notes(self) -> list[str]: ...
    @property
    def outputs(self) -> list[dict[str, typing.Any]]: ...
    @property
    def pass_reports(self) -> list[dict[str, typing.Any]]: ...
    @property
    def symbols(self) -> list[dict[str, typing.Any]]: ...

class ValueStatistics:
    """
    What the elements of one float32 value were like over any number of runs.
    """
    @staticmethod
    def from_bytes(bytes: bytes) -> ValueStatistics: ...
    def __init__(self) -> None: ...
    def add(self, array: typing.Any, channel_axis: typing.SupportsInt | typing.SupportsIndex = -1) -> None:
        """
        Adds samples, counted by the first dimension. channel_axis: the axis whose indices get a mean each.
        """
    def histogram(self) -> tuple[float, float, list[int]]:
        """
        (low, step, counts) of sampled elements.
        """
    def merge(self, other: ValueStatistics) -> None: ...
    def range(self, rule: str, percentile: typing.SupportsFloat | typing.SupportsIndex = 99.99) -> tuple[float, float]:
        """
        The range by "minmax", "percentile", "mse" or "entropy".
        """
    def to_bytes(self) -> bytes: ...
    @property
    def channel_means(self) -> list[float]: ...
    @property
    def extremes(self) -> tuple[float, float]: ...
    @property
    def samples(self) -> int: ...

class GramMatrix:
    """
    X^T X of the rows of one float32 value, over any number of runs.
    """
    def __init__(self) -> None: ...
    def add(self, array: typing.Any) -> None:
        """
        Adds the rows of its last dimension.
        """
    @property
    def length(self) -> int: ...
    @property
    def rows(self) -> int: ...

def byte_scale(
    low: typing.SupportsFloat | typing.SupportsIndex, high: typing.SupportsFloat | typing.SupportsIndex
) -> tuple[float, int]:
    """
    (scale, zero point) of unsigned bytes that cover the range and 0.
    """

def check_cancelled(where: str) -> None:
    """
    Raises Cancelled where the token of a CancelScope of this thread was cancelled.
    """

def deliver_log() -> None:
    """
    Delivers what waits, as the end of a call does.
    """

def deliver_log_to(function: collections.abc.Callable[..., typing.Any]) -> typing.Any:
    """
    Has function(level, text, seconds since 1970) called with the GIL, False if nobody took the text. Gives PINNACE_LOG's level.
    """

def describe_preprocessing(how: dict[str, typing.Any]) -> str:
    """
    What the fields say, on one line; InvalidArgument where they cannot be.
    """

def devices() -> list[dict[str, typing.Any]]:
    """
    Targets of this build, whether each can run here, and what or why not.
    """

def diff(a: Program, b: Program, include_metadata: bool = True) -> list[str]:
    """
    Differences between two programs, one line each.
    """

def dtypes() -> list[str]:
    """
    Names of all element types, which numpy or ml_dtypes has as well.
    """

def import_model_text(path: str) -> str:
    """
    Imports a .pt2 or ONNX model and gives its graph's text form. For tests.
    """

def log(level: str, text: str) -> None:
    """
    A message of the package's own.
    """

def log_to_stderr(level: str) -> None:
    """
    As PINNACE_LOG: messages are written to stderr as they arise, and delivered as well.
    """

def observe(
    session: Session,
    inputs: collections.abc.Sequence[typing.Any],
    observed: collections.abc.Sequence[
        tuple[
            typing.SupportsInt | typing.SupportsIndex,
            ValueStatistics | GramMatrix,
            typing.SupportsInt | typing.SupportsIndex,
        ]
    ],
    timeout: typing.SupportsFloat | typing.SupportsIndex | None = None,
    cancel: CancelToken | None = None,
) -> None:
    """
    Runs a session once and adds outputs, where they lie: each (its place, ValueStatistics or GramMatrix, channel axis or -1).
    """

def operators() -> list[dict[str, typing.Any]]:
    """
    Every operator of this build, in alphabetical order, as a dict: name, version, inputs, attributes, min_outputs, max_outputs (-1: any number), control_flow.
    """

def passes() -> list[tuple[str, str]]:
    """
    (name, summary) of every pass, in the order in which they run.
    """

def run_graph_text(
    text: str, inputs: collections.abc.Sequence[typing.Any]
) -> list[numpy.ndarray[typing.Any, numpy.dtype[typing.Any]]]:
    """
    Runs a graph given in its text form by reference code.

    inputs: arrays in the order of the graph's inputs. Returns a list of arrays. Slow: for tests and documentation.
    InvalidArgument: the text does not parse, or types do not fit.
    """

def run_model_reference(
    path: str, steps: collections.abc.Sequence[typing.Any]
) -> list[list[numpy.ndarray[typing.Any, numpy.dtype[typing.Any]]]]:
    """
    Imports a .pt2 or ONNX model, or opens a .pnc, and runs it by reference code once per step, a list of arrays in the order of its inputs; states are kept from step to step. Returns one list of arrays per step. For tests.
    """

def run_report(
    kit: bytes, targets: collections.abc.Sequence[str], seconds: typing.SupportsFloat | typing.SupportsIndex
) -> tuple[typing.Any, ...]:
    """
    Runs a kit's tests and times here: the page as JSON, whether answers were judged and none differs or failed, and totals in words. No targets: all of the build. InvalidArgument, CorruptFile, Unsupported, Cancelled.
    """

def set_log_level(level: str) -> None:
    """
    See pinnace.set_log_level.
    """

def wait_for_pack_cache(seconds: typing.SupportsFloat | typing.SupportsIndex) -> bool:
    """
    Waits until all that was packed is in the user's cache folder; False: not within this time.
    """

def write_log(level: str, text: str) -> None:
    """
    The same, delivered with the next call.
    """

built_from: str
