"""Session: runs a program. Future: a run under way. Profile: what each node took."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from os import PathLike
from typing import TYPE_CHECKING, Any

import numpy as np

from pinnace import _core
from pinnace.files import write_text
from pinnace.program import Program
from pinnace.types import Array, TensorSpec, custom_ops, signature, specs_from

if TYPE_CHECKING:
    import torch


@dataclass(frozen=True)
class Placement:
    """Where one node runs: back end, kernel, one reason per target that was passed over, bytes copied into it.

    `notice` is what else there is to know: why packed weights in the file were of no use, that a lost device was opened
    anew, which times "auto" chose by. It is empty where there is nothing to say.
    """

    node: str
    op: str
    source: str
    backend: str
    kernel: str
    why: list[str]
    bytes_copied: int
    notice: str


@dataclass(frozen=True)
class PlanInfo:
    """Sizes of the plan for the shapes of the last run that succeeded. peak_bytes is what the session allocated."""

    peak_bytes: int
    constant_bytes: int
    segments: int
    nodes_run: int
    nodes_computed_ahead: int


@dataclass(frozen=True)
class Event:
    """One timed node of a profiled run; times in nanoseconds since the run's start."""

    node: str
    op: str
    backend: str
    kernel: str
    start_ns: int
    duration_ns: int


class Profile:
    """The nodes of one run in order of start, with times."""

    def __init__(self, events: list[Event], outputs: dict[str, Array]) -> None:
        """Made by Session.profile."""
        self.events = events
        self.outputs = outputs

    def save(self, path: str | PathLike[str]) -> None:
        """Writes the run in Chrome's trace format, which Perfetto opens, as a whole or not at all. FileError."""
        rows = [
            {
                "name": e.node,
                "cat": e.op,
                "ph": "X",
                "ts": e.start_ns / 1000,
                "dur": e.duration_ns / 1000,
                "pid": 0,
                "tid": 0,
                "args": {"backend": e.backend, "kernel": e.kernel, "op": e.op},
            }
            for e in self.events
        ]
        write_text(path, json.dumps({"traceEvents": rows, "displayTimeUnit": "ms"}))


class Future:
    """A run on a thread of its own. Its inputs are borrowed until it is done. Dropping it cancels the run.

    Any thread may use it, several at once too. When the interpreter shuts down, runs under way are cancelled. In a
    forked child result() of a run under way in the parent raises InvalidArgument.
    """

    def __init__(self, pending: _core.PendingRun, names: list[str]) -> None:
        """Made by Session.run_async."""
        self._pending = pending
        self._names = names

    def done(self) -> bool:
        """True once result() would not wait."""
        return self._pending.done()

    def cancel(self) -> None:
        """Asks the run to stop, as a token does; result() then raises Cancelled."""
        self._pending.cancel()

    def result(self) -> dict[str, Array]:
        """Waits. Name -> array, the same for every caller; Cancelled or what Session.run raises. A signal whose handler
        raises, as Ctrl-C's does, ends the waiting and the run.
        """
        return dict(zip(self._names, self._pending.result(), strict=True))


class Session:
    """A program made ready for a target, with memory and state of its own. Sessions share weights.

    One thread at a time runs it or uses its state, a second one gets InvalidArgument. What describes it, placement and
    plan included, any thread may read at any time. In a forked child a session on the CPU goes on; devices that the
    parent opened are lost there.

    program    a Program or the path of a .pnc file, of which only what this session uses is read and checked.
    target     "auto", "cpu", "cpu:avx2", …, or several in order of preference: "vulkan,cpu" or a list. "auto" times
               models of 20 million multiply-adds and more on the GPU, if there is one, and without it, when the session
               is made (in about 0.3 s, slow ones in 2 s), and keeps the faster; `placement` has the times.
    threads    most threads of one run; 0: as many as the process may use processors.
    precision  "fp32"; "fp16", "bf16": weights of float32 products in 16 bits, and with bf16 their other operand where
               the processor multiplies bfloat16. All else, sums too, stays float32. compare() tells the error.
    fallback   False: Unsupported, with every such node, rather than run a node elsewhere than asked, and DeviceLost if
               a GPU that was lost and opened anew is lost again.
    keep       names of inner values to return as further outputs.
    plan_cache for how many sets of input shapes plan and memory are kept, at least 1; the least recently used one goes
               first.
    require_payload  True: Unsupported rather than pack weights that the file does not hold packed for the target.

    Raises Unsupported (target not available, operator not in this build), InvalidArgument, and what Program.open
    raises.
    """

    def __init__(
        self,
        program: Program | str | PathLike[str],
        target: str | Sequence[str] = "auto",
        threads: int = 0,
        precision: str = "fp32",
        fallback: bool = True,
        *,
        keep: Sequence[str] = (),
        plan_cache: int = 8,
        require_payload: bool = False,
    ) -> None:
        """See the class."""
        if not isinstance(program, Program):
            program = Program.open(program, on_use=True)
        self.program = program
        targets = target if isinstance(target, str) else ",".join(target)
        self.precision = precision
        self._core = _core.Session(
            program._core, targets, threads, precision, fallback, list(keep), plan_cache, custom_ops(), require_payload
        )
        self._inputs = specs_from(self._core.inputs, self._core.symbols)
        self._outputs = specs_from(self._core.outputs, self._core.symbols)
        self._output_names = [spec["name"] for spec in self._core.outputs]

    def __repr__(self) -> str:
        """Where how many nodes run, in which precision, inputs and outputs."""
        counts = Counter(row["backend"] for row in self._core.placement)
        where = ", ".join(f"{count} on {backend}" for backend, count in counts.most_common())
        return f"<pinnace.Session: nodes {where}; {self.precision}; {signature(self._inputs, self._outputs)}>"

    @property
    def inputs(self) -> dict[str, TensorSpec]:
        """Inputs by name, in order."""
        return dict(self._inputs)

    @property
    def outputs(self) -> dict[str, TensorSpec]:
        """Outputs by name, in order, then the kept values."""
        return dict(self._outputs)

    def run(
        self, inputs: Mapping[str, Any], *, timeout: float | None = None, cancel: _core.CancelToken | None = None
    ) -> dict[str, Array]:
        """Runs once. inputs: name -> array (numpy, DLPack such as a torch tensor, or what numpy takes).

        timeout  seconds from the call on, after which the run ends; above 0, else InvalidArgument. None: no limit.
        cancel   a CancelToken that ends the run when another thread cancels it.

        Returns name -> array. Dense arrays are read in place; others are copied. The GIL is released. InvalidArgument
        names input, dimension, value and rule; nothing was changed then. Cancelled: `timeout` or `cancel` ended the
        run, the sentence says which and in which node. Ctrl-C ends it too, with KeyboardInterrupt, as does any signal
        whose handler raises. States are then unchanged, and the session can run again.
        """
        return dict(zip(self._output_names, self._core.run(self._bind(inputs), timeout, cancel), strict=True))

    def run_async(
        self, inputs: Mapping[str, Any], *, timeout: float | None = None, cancel: _core.CancelToken | None = None
    ) -> Future:
        """Starts a run on a thread of its own and returns at once.

        `timeout` (counted from this call) and `cancel` are as for run(); result() then raises Cancelled. The session is
        busy until the run is done.
        """
        return Future(_core.PendingRun(self._core, self._bind(inputs), timeout, cancel), self._output_names)

    def profile(
        self, inputs: Mapping[str, Any], *, timeout: float | None = None, cancel: _core.CancelToken | None = None
    ) -> Profile:
        """Runs once, as run() does, and records what each node took."""
        outputs, rows = self._core.profile(self._bind(inputs), timeout, cancel)
        return Profile([Event(**row) for row in rows], dict(zip(self._output_names, outputs, strict=True)))

    @property
    def placement(self) -> list[Placement]:
        """One row per node of the program, in order, as of the last run that succeeded."""
        return [Placement(**row) for row in self._core.placement]

    @property
    def plan(self) -> PlanInfo:
        """Sizes of the plan for the shapes of the last run that succeeded."""
        return PlanInfo(**self._core.plan)

    @property
    def state(self) -> State:
        """What the session keeps between runs, by name: readable and writable."""
        return State(self._core, [s["name"] for s in self.program._core.states])

    def reset_state(self) -> None:
        """Puts every state back to its initial value."""
        self._core.reset_state()

    def _bind(self, inputs: Any) -> list[Any]:
        if not isinstance(inputs, Mapping):
            names = ", ".join(map(repr, self._inputs)) or "none"
            raise _core.InvalidArgument(f"inputs: {type(inputs).__name__}, must be arrays by name ({names})")
        missing = [name for name in self._inputs if name not in inputs]
        extra = [name for name in inputs if name not in self._inputs]
        if missing or extra:
            parts = [f"missing {', '.join(map(repr, missing))}"] * bool(missing)
            parts += [f"unknown {', '.join(map(repr, extra))}"] * bool(extra)
            takes = ", ".join(str(spec) for spec in self._inputs.values()) or "no inputs"
            raise _core.InvalidArgument(f"inputs: {'; '.join(parts)}; the program takes {takes}")
        return [input_array(f"input {name!r}", inputs[name]) for name in self._inputs]


def nodes_on(session: Session, target: str) -> tuple[int, int]:
    """Of the nodes that compute something in a run: how many do on a back end that `target` names, and how many are."""
    names = {part.partition(":")[0] for part in target.split(",")}
    backends = [row.backend for row in session.placement if row.backend not in ("none", "runtime")]
    return sum("auto" in names or backend in names for backend in backends), len(backends)


class State:
    """States of a session by name."""

    def __init__(self, core: _core.Session, names: list[str]) -> None:
        """Made by Session.state."""
        self._core = core
        self._names = names

    def __iter__(self) -> Any:
        """Iterates over the names."""
        return iter(self._names)

    def __len__(self) -> int:
        """The number of states."""
        return len(self._names)

    def __getitem__(self, name: str) -> Array:
        """A copy of the contents. InvalidArgument: there is no such state."""
        return self._core.state(self._index(name))

    def __setitem__(self, name: str, value: Any) -> None:
        """Copies an array of exactly the state's type in. InvalidArgument: it is none, or there is no such state."""
        self._core.set_state(self._index(name), input_array(f"state {name!r}", value))

    def _index(self, name: str) -> int:
        if name not in self._names:
            raise _core.InvalidArgument(f"the program has no state {name!r}; it has {self._names}")
        return self._names.index(name)


def as_array(value: Any) -> Any:
    """An array that shares memory where it can: numpy as it is, DLPack without a copy, scalars and lists copied."""
    if isinstance(value, np.ndarray):
        return value
    if hasattr(value, "detach"):  # a torch tensor that takes part in autograd refuses DLPack
        value = value.detach()
        if value.is_quantized:  # as the integers that it stores
            value = value.int_repr()
        name = str(value.dtype).removeprefix("torch.")
        if name == "bfloat16" or name.startswith("float8_"):  # not among numpy's own: the bits travel as integers
            import ml_dtypes
            import torch

            return value.view(torch.int16 if name == "bfloat16" else torch.uint8).numpy().view(getattr(ml_dtypes, name))
    if hasattr(value, "__dlpack__"):
        return np.from_dlpack(value)
    return np.asarray(value)


def as_tensor(value: Any) -> torch.Tensor:
    """A torch tensor with memory of its own, of whatever element type the array has, bfloat16 and float8 too.

    InvalidArgument: torch has no tensors of its type, text for instance.
    """
    import torch

    if isinstance(value, torch.Tensor):
        return value.clone()
    array = np.array(value)
    name = str(array.dtype)
    if name == "bfloat16" or name.startswith("float8_"):
        tensor: torch.Tensor = torch.from_numpy(array.view(np.int16 if name == "bfloat16" else np.uint8))
        return tensor.view(getattr(torch, name))
    try:
        return torch.from_numpy(array)
    except TypeError as error:
        raise _core.InvalidArgument(f"an array of {name} cannot be a tensor: {error}") from error


def input_array(name: str, value: Any) -> Any:
    """as_array() of what a user gives. InvalidArgument, beginning with `name`: it is no array, as a ragged list is."""
    try:
        return as_array(value)
    except (ValueError, TypeError, BufferError, RuntimeError) as error:  # what numpy and other libraries raise
        raise _core.InvalidArgument(f"{name} is not an array: {error}") from error


def devices() -> list[dict[str, Any]]:
    """Targets of this build: target, available, description (the device, or why it is not available)."""
    return list(_core.devices())


__all__ = [
    "Event",
    "Future",
    "Placement",
    "PlanInfo",
    "Profile",
    "Session",
    "State",
    "as_array",
    "as_tensor",
    "devices",
    "input_array",
]
