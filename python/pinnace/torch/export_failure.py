"""What is said where torch.export fails: its reason, the line of the user's code, and what to change, in a few lines.

Imports torch only when asked to.
"""

from __future__ import annotations

import contextlib
import logging
import sys
import sysconfig
import traceback
import warnings
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pinnace import _core
from pinnace.log import log
from pinnace.torch.isolation import isolated_inference

MOST_CHARACTERS = 600  # of torch's own words
# What in torch's words belongs to them no more: pointers to its tools, traces, and advice for other entry points.
_ENDS = (
    "For more information",
    "Caused by:",
    "The following call raised this error",
    "The error above occurred when calling",
    "Attempted to ",
    "from user code:",
)
# Of torch's loggers, those that tell of what its error says as well.
_LOGGERS = ("torch.fx.experimental.symbolic_shapes", "torch._subclasses.fake_tensor")
# The assertion in which torch ends where it cannot state the range that it found.
UNSTATED_RANGE = "Expected op to be '=='"
# (part of torch's words, what to change).
_ADVICE = (
    (
        "data-dependent expression",
        "A value decides here what the code does. Decide with torch.where() or torch.cond(), or say with "
        "torch._check() what is known of it",
    ),
    (
        "specialized it to be a constant",
        "The code fixes a dimension that dynamic_shapes leaves dynamic: compute with x.shape[...] in place of numbers, "
        "or leave it out of dynamic_shapes",
    ),
    (
        "Constraints violated",
        "Give dynamic_shapes the range that the code takes: pn.Dim(name, min, max, multiple_of=...)",
    ),
    (
        UNSTATED_RANGE,
        "The range of a dimension has sizes that the code takes in another way than the example's: give a larger "
        "example, or the range that it is for: pn.Dim(name, min, max)",
    ),
    (".numpy() is not supported", "Compute with torch in place of numpy"),
    (
        "copy__default of type call_function is missing nn_module_stack",
        "A registered buffer is set to an input, or to another buffer, itself: set it to a copy (self.h = x.clone()), "
        "or copy into it (self.h.copy_(x))",
    ),
)


# The arguments of a call: positional ones, and those by name.
Arguments = tuple[Sequence[Any], Mapping[str, Any]]


def export_failure(module: Any, given: Arguments, traced: Arguments, error: BaseException) -> _core.ConversionError:
    """The error for a module that torch.export refuses to export. torch's whole trace is a message of level debug. A
    module that cannot be called so either is told of in these words.

    given   the call that the user gave.
    traced  the same, with sizes of 1 repeated in dynamic dimensions.
    """
    log("debug", "torch.export: " + "".join(traceback.format_exception(error)))
    name = type(module).__name__
    if (own := _call_error(module, *traced)) is not None:
        where = f"{name} cannot be called with these example inputs ({_shapes(*given)})"
        if _shapes(*traced) != _shapes(*given) and _call_error(module, *given) is None:
            where = (
                f"{name} can be called with the example inputs ({_shapes(*given)}), and cannot with more than 1 in the "
                f"dimensions that dynamic_shapes opens ({_shapes(*traced)})"
            )
        return _refused(where, own, "call", "")
    advice = next((advice for part, advice in _ADVICE if part in str(error)), "") or _advice_of(module)
    return _refused(f"torch.export cannot export {name}", error, "torch.export", advice)


def refuse_lazy(module: Any) -> None:
    """ConversionError: weights of the module have no values yet. A call would give them some, and change the module."""
    import torch

    for name, value in [*module.named_parameters(), *module.named_buffers()]:
        if torch.nn.parameter.is_lazy(value):
            raise _core.ConversionError(
                f"{type(module).__name__}: {name!r} has no values yet: call the module once before it is loaded"
            )


def _advice_of(module: Any) -> str:
    """What to change in a module that torch.export refuses for what it has in it."""
    import torch

    for name, part in module.named_modules():
        if name and isinstance(part, torch.jit.ScriptModule):
            return f"{name!r} is TorchScript, which torch.export does not follow: script the whole, or leave it out"
    return ""


def _refused(what: str, error: BaseException, op: str, advice: str) -> _core.ConversionError:
    """Its one node is the line of the user's code, where there is one."""
    said, place = _said(error), _place(error)
    failure = _core.ConversionError(f"{what}: {said}{f' ({place})' if place else ''}{f'. {advice}' if advice else ''}")
    if place:
        failure.nodes = [_core.NodeProblem(place.function, op, place.source, said.partition("\n")[0], place.line)]
    return failure


def _call_error(module: Any, args: Sequence[Any], kwargs: Mapping[str, Any]) -> Exception | None:
    """What the module itself raises in that call; None where it can be called."""
    try:
        with isolated_inference(module):
            module(*args, **kwargs)
    except Exception as error:
        return error
    return None


def _shapes(args: Sequence[Any], kwargs: Mapping[str, Any]) -> str:
    """The call's tensors by shape: "[2, 7], mask=[2, 1]"."""

    def one(value: Any) -> str:
        return str(list(value.shape)) if hasattr(value, "shape") else type(value).__name__

    return ", ".join([*map(one, args), *(f"{name}={one(value)}" for name, value in kwargs.items())]) or "none"


def _said(error: BaseException) -> str:
    """torch's words up to where they turn to its tools; another class of error than torch's own has its name before."""
    lines = []
    for line in str(error).splitlines():
        if line.strip().startswith(_ENDS):
            break
        for end in _ENDS:
            line = line.partition(end)[0]
        if line.strip():
            lines.append(line.rstrip())
    text = "\n".join(lines).rstrip(" .\n")
    if len(text) > MOST_CHARACTERS:
        text = text[:MOST_CHARACTERS] + "..."
    kind = type(error)
    own = kind.__module__.partition(".")[0] == "torch"
    return text if own and text else f"{kind.__name__}: {text}".rstrip(": ")


@dataclass(frozen=True)
class _Place:
    """A line of code, and the function that it is in; str() is "net.py:41, in forward: x = x.view(-1)"."""

    source: str  # "net.py:41"
    function: str
    line: str  # may be empty

    def __str__(self) -> str:
        return f"{self.source}, in {self.function}{f': {self.line}' if self.line else ''}"


def _place(error: BaseException) -> _Place | None:
    """The innermost line outside of torch, pinnace and Python itself; of TorchScript, that of the step."""
    import torch

    paths = (torch.__file__, __file__, sysconfig.__file__)
    foreign = tuple(str(Path(path).resolve().parent) + "/" for path in paths)
    own = str(Path(__file__).resolve().parents[1]) + "/"
    found = None
    seen: set[int] = set()
    current: BaseException | None = error
    while current is not None and id(current) not in seen:  # the first error of a chain is the nearest to the code
        seen.add(id(current))
        of_script = getattr(current, "script_place", None)
        if of_script is not None and of_script.line:
            return _Place(str(of_script), "forward", "")  # of a file, whose paths are anybody's: not read
        for frame in traceback.extract_tb(current.__traceback__):
            path = str(Path(frame.filename).resolve()) if not frame.filename.startswith("<") else ""
            if path and not path.startswith((*foreign, own)):
                found = _Place(f"{frame.filename}:{frame.lineno}", frame.name, frame.line or "")
        current = current.__cause__ or current.__context__
    return found


@contextlib.contextmanager
def torch_said_quietly() -> Iterator[None]:
    """For a block that exports: graphs that torch prints to stderr, and warnings of its logger about them, are messages
    of level debug. Of assigned attributes torch does not warn either: see sources/kept_attributes.py."""
    loggers, keep = [logging.getLogger(name) for name in _LOGGERS], _ToDebug()
    before = sys.stderr
    for logger in loggers:
        logger.addFilter(keep)
    sys.stderr = _WithoutGraphs(before)
    try:
        with warnings.catch_warnings():
            warnings.filterwarnings("ignore", message=".*assigned during export")
            yield
    finally:
        for logger in loggers:
            logger.removeFilter(keep)
        if isinstance(sys.stderr, _WithoutGraphs):
            sys.stderr = before


class _ToDebug(logging.Filter):
    """Lets nothing pass."""

    def filter(self, record: logging.LogRecord) -> bool:
        log("debug", f"torch: {record.getMessage()}")
        return False


class _WithoutGraphs:
    """stderr for everybody but torch.export's own printing of the graph that it had when it failed."""

    def __init__(self, stream: Any) -> None:
        self._stream = stream

    def write(self, text: str) -> int:
        if sys._getframe(1).f_globals.get("__name__") == "torch.export._trace":
            if text.strip():
                log("debug", f"torch.export: {text}")
            return len(text)
        return int(self._stream.write(text) or 0)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stream, name)


__all__ = ["UNSTATED_RANGE", "export_failure", "refuse_lazy", "torch_said_quietly"]
