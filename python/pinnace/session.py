"""Session: runs a program. Future: a run under way. Profile: what each node took."""

from __future__ import annotations

import contextlib
import json
from collections import Counter
from collections.abc import Callable, Generator, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from os import PathLike
from threading import Thread
from typing import TYPE_CHECKING, Any

import numpy as np

from pinnace import _core
from pinnace.arrays import input_array, ordered_inputs
from pinnace.files import one_line, place_text, printable, write_text
from pinnace.program import Program, core_of
from pinnace.service import Service, core_service
from pinnace.streams import StreamedOutput
from pinnace.types import (
    Array,
    TensorSpec,
    custom_ops,
    seconds,
    signature,
    specs_from,
    token,
    truth,
    whole,
    word,
)

if TYPE_CHECKING:
    import asyncio

_MOST = (1 << 31) - 1  # of threads and plans


@dataclass(frozen=True)
class Placement:
    """Where one node runs.

    node, op      its name and operator.
    source        the line of the user's model: "net.py:41"; may be empty.
    module        the submodule that it belongs to: "layers.3.conv1"; may be empty.
    path          the control flow that encloses it, such as "loop1.body"; empty at the top level.
    backend       "cpu", "vulkan", …; "runtime" for control flow that the host runs, and for nodes inside of it that no
                  run has placed yet, since only a run decides their sizes; "none" for what is computed ahead.
    kernel        what runs it there: "conv_f32_avx2", "reference"; "placed when sizes are known" for the latter, and
                  "chosen when sizes are known" where data decide sizes, until a run has chosen.
    why           one reason per target that was passed over.
    bytes_copied  bytes of its inputs that come from another back end.
    notice        what else there is to know: that no kernel takes the node and reference code runs it, why packed
                  weights in the file were of no use, that a lost device was opened anew, which times "auto" chose by.
                  Empty where there is nothing to say.
    """

    node: str
    op: str
    source: str
    module: str
    path: str
    backend: str
    kernel: str
    why: list[str]
    bytes_copied: int
    notice: str


class PlacementTable(list[Placement]):
    """Where each node runs: a list of Placement, which a notebook shows as a table."""

    def __str__(self) -> str:
        """A line per node: what it is, where it runs, by which kernel; reasons and notices are indented below it."""
        cells = [(p.node, p.op, p.backend, p.kernel, place_text(p.node, p.module, p.source)) for p in self]
        widths = [max((len(printable(row[i])) for row in cells), default=0) for i in range(4)]
        lines = []
        for p, row in zip(self, cells, strict=True):
            first = "  ".join(printable(cell).ljust(width) for cell, width in zip(row, widths, strict=False))
            lines.append(f"{first}  {printable(row[4])}".rstrip())
            lines += [f"    {printable(said)}" for said in [*p.why, *([p.notice] if p.notice else [])]]
        return "\n".join(lines)

    def _repr_html_(self) -> str:
        """For notebooks: how many nodes each back end runs, and the rows."""
        from pinnace.html.notebook import placement_html

        return placement_html(self)


@dataclass(frozen=True)
class PlanInfo:
    """Sizes of the plan for the shapes of the last run that succeeded.

    peak_bytes            what the session allocates for these shapes, beside the weights.
    constant_bytes        weights packed or copied beside the program, which all its sessions share.
    segments              parts of the graph that run on one back end each.
    nodes_run             nodes that a run executes.
    nodes_computed_ahead  nodes whose results were computed when the plan was made.
    """

    peak_bytes: int
    constant_bytes: int
    segments: int
    nodes_run: int
    nodes_computed_ahead: int


@dataclass(frozen=True)
class Event:
    """One timed node of a profiled run.

    node, op     its name and operator.
    module       the submodule of the source model that it belongs to: "layers.3.conv1"; may be empty.
    backend      where it ran.
    kernel       what ran it there.
    start_ns     when it began, in nanoseconds since the run's start.
    duration_ns  how long it took, in nanoseconds.
    """

    node: str
    op: str
    module: str
    backend: str
    kernel: str
    start_ns: int
    duration_ns: int


@dataclass(frozen=True, eq=False, repr=False)
class Profile:
    """One run with what each node took.

    events   the nodes in order of start.
    outputs  what Session.run() would have returned: name -> array.
    """

    events: list[Event]
    outputs: dict[str, Array]

    def __repr__(self) -> str:
        """How many nodes, and how long from the first one's start to the last one's end."""
        total = max((e.start_ns + e.duration_ns for e in self.events), default=0)
        return f"<pinnace.Profile: {len(self.events)} nodes in {total / 1e6:.3g} ms>"

    @property
    def reference_code(self) -> dict[str, float]:
        """What part of the nodes' time each operator without a kernel took, largest first: {"einsum": 0.31}."""
        total = sum(e.duration_ns for e in self.events) or 1
        shares: dict[str, float] = {}
        for event in self.events:
            if event.kernel == "reference":
                shares[event.op] = shares.get(event.op, 0.0) + event.duration_ns / total
        return dict(sorted(shares.items(), key=lambda share: -share[1]))

    def _repr_html_(self) -> str:
        """For notebooks: the run on a line of time, the operators that took longest, and the nodes that did."""
        from pinnace.html.notebook import profile_html

        return profile_html(self)

    def save(self, path: str | PathLike[str]) -> None:
        """Writes the run to `path` in Chrome's trace format, which Perfetto opens.

        FileError: it cannot be written; what was at `path` is whole then.
        """
        rows = [
            {
                "name": e.node,
                "cat": e.op,
                "ph": "X",
                "ts": e.start_ns / 1000,
                "dur": e.duration_ns / 1000,
                "pid": 0,
                "tid": 0,
                "args": {"backend": e.backend, "kernel": e.kernel, "op": e.op, "module": e.module},
            }
            for e in self.events
        ]
        write_text(path, json.dumps({"traceEvents": rows, "displayTimeUnit": "ms"}))


class Future:
    """A run on a thread of its own. Its inputs are borrowed until it is done. Dropping it cancels the run.

    Any thread may use it, several at once too. In a coroutine of asyncio, `await future` gives what result() gives
    while the loop goes on: see __await__. When the interpreter shuts down, runs under way are cancelled. In a
    forked child result() of a run under way in the parent raises InvalidArgument.
    """

    def __init__(self, pending: _core.PendingRun, names: list[str]) -> None:
        """Made by Session.run_async. pending: the extension's run; names: of the outputs, in order."""
        self._pending = pending
        self._names = names

    def __repr__(self) -> str:
        """Whether it is done."""
        return f"<pinnace.Future: {'done' if self.done() else 'running'}>"

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

    def __await__(self) -> Generator[Any, None, dict[str, Array]]:
        """Name -> array once the run is done, or what result() raises; the running loop of asyncio goes on meanwhile.

        A cancellation of the awaiting task, as by asyncio.timeout(), cancels the run, waits until that has stopped, so
        that the session is free again, and then goes on; a second one is not held up. asyncio.shield(future) keeps the
        run from it. Several tasks may await the same run. RuntimeError: no loop is running.
        """
        import asyncio

        loop = asyncio.get_running_loop()
        if not self.done():
            ended: asyncio.Future[None] = loop.create_future()
            Thread(target=_tell_of_end, args=(self._pending, loop, ended), name="pinnace-await", daemon=True).start()
            try:
                yield from asyncio.shield(ended)
            except asyncio.CancelledError:
                self.cancel()
                yield from ended
                raise
            except GeneratorExit:  # the coroutine is dropped, as when its loop was closed
                self.cancel()
                raise
        return self.result()


def _tell_of_end(pending: _core.PendingRun, loop: asyncio.AbstractEventLoop, ended: asyncio.Future[None]) -> None:
    """Waits for a run, on a thread, and has the loop set `ended`."""

    def tell() -> None:
        if not ended.done():
            ended.set_result(None)

    with contextlib.suppress(Exception):  # whoever awaits the run gets it from result()
        pending.result()
    with contextlib.suppress(RuntimeError):  # the loop is closed
        loop.call_soon_threadsafe(tell)


class Session:
    """A program made ready for a target, with memory and state of its own. Sessions share weights.

    One thread at a time runs it or uses its state, a second one gets InvalidArgument. What describes it, placement and
    plan included, any thread may read at any time. In a forked child a session on the CPU goes on; devices that the
    parent opened are lost there.

    program    a Program or the path of a .pnc file, of which only what this session uses is read and checked.
    target     "auto", "cpu", "cpu:avx2", …, or several in order of preference: "vulkan,cpu" or a list. "auto" times
               models of 20 million multiply-adds and more on the GPU, if there is one, and without it (in about 0.3 s,
               slow ones in 2 s), and keeps the faster; `placement` has the times. The first runs are the CPU's. The GPU
               is tried beside them, on a thread, and if it is faster the session changes over between two runs, once,
               with its states; the last bits of the results may change with that. "auto:fixed" decides before the first
               run and changes nothing. What was found is remembered in the user's cache folder.
    threads    most threads of one run; 0: as many as the process may use processors.
    precision  "fp32"; "fp16", "bf16": weights of float32 products in 16 bits, and with bf16 their other operand where
               the processor multiplies bfloat16. All else, sums too, stays float32. compare() tells the error.
               "auto": the fastest of them here, bf16 with AMX and on AMD's processors that multiply bfloat16, fp16 on
               ARM64 that computes with halves, else fp32, as on GPUs; the attribute says which it became.
    fallback   False: Unsupported, with every such node, rather than run a node elsewhere than asked, and DeviceLost if
               a GPU that was lost and opened anew is lost again.
    keep       names of inner values to return as further outputs.
    plan_cache for how many sets of input shapes plan and memory are kept, at least 1; the least recently used one goes
               first.
    require_payload  True: Unsupported rather than pack weights that the file does not hold packed for the target.
    pack_cache True: what has to be packed for the CPU, where `program` comes from a file, is then written to the user's
               cache folder, on a thread (~/.cache/pinnace; the variable PINNACE_CACHE names another, or none if it is
               empty). Later sessions and processes map it from there instead of packing again. The end of the process
               waits up to five seconds for what is still being written. False: nothing is read or written.
    service    wishes about power, priority, time, folders, devices and processors: a Service.
    shape_invariant  True: an element of a result is computed by the same steps whatever else the run computes. Chunks
               of a stream then give the bits of the full sequence, and parts of a batch those of the batch, with the
               exceptions of docs/streaming.md. It is slower: `placement` has the kernels. "auto" then means the CPU and
               fp32; another target raises Unsupported, "fp16" and "bf16" raise InvalidArgument.

    The arguments program (as a Program), target (as text), threads, precision, fallback and plan_cache are attributes,
    to read.

    A pickle holds the program as its bytes, these arguments and the contents of the states; plans and packed weights
    are made anew where it is loaded, and "auto" chooses anew. deepcopy() and copy() give a second session of the same
    program with states of its own, equal to this one's. Both need the session to be idle, as reading states does.
    Unpickling raises CorruptFile where the bytes are damaged or the states are not the program's, and what this
    constructor raises. Operators of custom_op() must be registered first.

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
        pack_cache: bool = True,
        service: Service | None = None,
        shape_invariant: bool = False,
    ) -> None:
        """See the class."""
        if not isinstance(program, Program):
            program = Program.open(program, on_use=True)
        self.program = program
        self.target = target if isinstance(target, str) else ",".join(_words("target", target))
        self.threads = whole("threads", threads, 0, _MOST)
        self.plan_cache = whole("plan_cache", plan_cache, 1, _MOST)
        self.fallback = truth("fallback", fallback)
        self._precision, self._keep = word("precision", precision), _words("keep", keep)
        self._require_payload = truth("require_payload", require_payload)
        self._pack_cache, self._service = truth("pack_cache", pack_cache), service
        self._shape_invariant = truth("shape_invariant", shape_invariant)
        self._core = _core.Session(
            core_of(program),
            self.target,
            self.threads,
            self._precision,
            self.fallback,
            list(self._keep),
            self.plan_cache,
            custom_ops(),
            self._require_payload,
            self._pack_cache,
            core_service(service),
            self._shape_invariant,
        )
        self.precision: str = self._core.precision
        self._inputs = specs_from(self._core.inputs, self._core.symbols)
        self._outputs = specs_from(self._core.outputs, self._core.symbols)
        self._output_names = [spec["name"] for spec in self._core.outputs]

    def __repr__(self) -> str:
        """Where how many nodes run, in which precision, inputs and outputs."""
        if "_outputs" not in self.__dict__:  # while its making fails, a debugger may ask
            return "<pinnace.Session, not made>"
        counts = Counter(row["backend"] for row in self._core.placement)
        where = ", ".join(f"{count} on {backend}" for backend, count in counts.most_common())
        return f"<pinnace.Session: nodes {where}; {self.precision}; {signature(self._inputs, self._outputs)}>"

    def __reduce__(self) -> tuple[Callable[..., Session], tuple[Program, dict[str, Any], dict[str, Array]]]:
        """The program, the other arguments by name, and the states by name."""
        arguments = {
            "target": self.target,
            "threads": self.threads,
            "precision": self._precision,
            "fallback": self.fallback,
            "keep": self._keep,
            "plan_cache": self.plan_cache,
            "require_payload": self._require_payload,
            "pack_cache": self._pack_cache,
            "service": self._service,
            "shape_invariant": self._shape_invariant,
        }
        state = self.state
        return session_from_pickle, (self.program, arguments, {name: state[name] for name in state})

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
        """Runs once. inputs: name -> array (numpy, DLPack such as a torch tensor, or what numpy takes). Numbers of
        Python's own and lists of them become the input's type.

        timeout  seconds from the call on, after which the run ends; above 0, else InvalidArgument. None: no limit.
        cancel   a CancelToken that ends the run when another thread cancels it.

        Returns name -> array. Dense arrays are read in place; others are copied. The GIL is released. InvalidArgument
        names input, dimension, value and rule; nothing was changed then. Cancelled: `timeout` or `cancel` ended the
        run, the sentence says which and in which node. Ctrl-C ends it too, with KeyboardInterrupt, as does any signal
        whose handler raises. States are then unchanged, unless the signal came when the run had ended already, and
        the session can run again.
        """
        made = self._core.run(self._bind(inputs), seconds("timeout", timeout), token(cancel))
        return dict(zip(self._output_names, made, strict=True))

    def run_async(
        self, inputs: Mapping[str, Any], *, timeout: float | None = None, cancel: _core.CancelToken | None = None
    ) -> Future:
        """Starts a run on a thread of its own and returns at once; the Future has result(), and `await` gives the same.

        `inputs`, `timeout` (counted from this call) and `cancel` are as for run(); result() then raises Cancelled.
        InvalidArgument as from run(). The session is busy until the run is done.
        """
        limit = seconds("timeout", timeout)
        return Future(_core.PendingRun(self._core, self._bind(inputs), limit, token(cancel)), self._output_names)

    def profile(
        self, inputs: Mapping[str, Any], *, timeout: float | None = None, cancel: _core.CancelToken | None = None
    ) -> Profile:
        """Runs once, as run() does, and records what each node took. inputs, timeout, cancel and errors: see run()."""
        outputs, rows = self._core.profile(self._bind(inputs), seconds("timeout", timeout), token(cancel))
        return Profile([Event(**row) for row in rows], dict(zip(self._output_names, outputs, strict=True)))

    def kept_values(self, inputs: Mapping[str, Any]) -> dict[str, Array]:
        """Runs once and returns the values of `keep` alone, name -> array. In what run() returns an inner value cannot
        be told from an output of the same name. inputs and errors: see run().
        """
        own = len(self.program.outputs)
        return dict(zip(self._output_names[own:], self._core.run(self._bind(inputs))[own:], strict=True))

    @property
    def placement(self) -> PlacementTable:
        """One row per node of the program, in order, as of the last run that succeeded."""
        return PlacementTable(Placement(**row) for row in self._core.placement)

    @property
    def plan(self) -> PlanInfo:
        """Sizes of the plan for the shapes of the last run that succeeded."""
        return PlanInfo(**self._core.plan)

    @property
    def state(self) -> State:
        """What the session keeps between runs, by name: readable and writable."""
        return State(self._core, {spec["name"]: spec["dtype"] for spec in core_of(self.program).states})

    def reset_state(self) -> None:
        """Puts every state back to its initial value."""
        self._core.reset_state()

    def finish(
        self,
        inputs: Mapping[str, Any] | None = None,
        *,
        timeout: float | None = None,
        cancel: _core.CancelToken | None = None,
    ) -> dict[str, Array]:
        """Ends a stream (load(stream=...)): gives what outputs still lag behind, name -> array, which may be empty
        along time, and puts the states back to their initial values, so that the next chunk begins another stream.

        inputs           those that are no streams, as run() takes them.
        timeout, cancel  as for run().

        InvalidArgument: the program takes the whole at once; and what run() raises. The states are then as before.
        """
        streams, outputs = self.program.stream, self.program.streamed_outputs
        if not streams:
            raise _core.InvalidArgument("finish() ends a stream, and the program has none: see load(stream=...)")
        if both := sorted(set(inputs or {}) & set(streams)):
            raise _core.InvalidArgument(f"finish() ends the streams {both}: run() takes what is left of them")
        others = {name: spec for name, spec in self._inputs.items() if name not in streams}
        given = dict(zip(others, ordered_inputs(others, inputs or {}), strict=True))
        ordered = [given.get(name) for name in self._inputs]
        arrays, rest = self._core.finish(ordered, seconds("timeout", timeout), token(cancel))
        if arrays is None:
            return self._nothing(outputs)
        return {
            name: np.take(array, range(count), axis=outputs[name].axis) if name in outputs else array
            for name, array, count in zip(self._output_names, arrays, rest, strict=True)
        }

    def _nothing(self, outputs: Mapping[str, StreamedOutput]) -> dict[str, Array]:
        """What a run on no elements would give."""
        empty = {}
        for name, spec in self._outputs.items():
            axis = outputs[name].axis if name in outputs else None
            empty[name] = np.zeros(
                [0 if i == axis else size if isinstance(size, int) else 0 for i, size in enumerate(spec.shape)],
                spec.dtype,
            )
        return empty

    def save_state(self) -> bytes:
        """All states as bytes, from which restore_state() goes on: of any session of the same program, on any target,
        in another process or on another machine too. They hold their hash and that of the program.

        Raises DeviceLost where a state lay in the memory of a device that was lost.
        """
        return self._core.save_state()

    def restore_state(self, state: bytes) -> None:
        """Goes on where save_state() was called.

        CorruptFile: `state` is damaged, or nothing that save_state() gave. InvalidArgument: it is of a program with
        another graph or other weights (metadata may differ), or not bytes. Unsupported: a newer version of pinnace
        saved it. Nothing was changed then.
        """
        if not isinstance(state, bytes | bytearray | memoryview):
            raise _core.InvalidArgument(
                f"restore_state needs the bytes of save_state(), was given {type(state).__name__}"
            )
        self._core.restore_state(bytes(state))

    def fork(self) -> Session:
        """A second session with the same states. It shares weights and what was prepared, so that it costs the memory
        of the states and of a plan; what either runs from now on leaves the other alone.

        Raises DeviceLost as save_state() does, and OutOfMemory.
        """
        other = object.__new__(type(self))
        other.__dict__.update(self.__dict__)
        other._core = self._core.fork()
        return other

    def _bind(self, inputs: Any) -> list[Any]:
        return ordered_inputs(self._inputs, inputs)


def _words(name: str, given: Sequence[str]) -> tuple[str, ...]:
    """InvalidArgument: it is one text. TypeError: it is no list of texts."""
    if isinstance(given, str):
        raise _core.InvalidArgument(f"{name} must be a list of names, is {given!r}")
    if not isinstance(given, Iterable) or not all(isinstance(word, str) for word in given):
        raise TypeError(f"{name} must be a list of names, is {given!r}")
    return tuple(given)


def session_from_pickle(program: Any, arguments: Any, states: Any) -> Session:
    """What pickles of sessions call: the session of these arguments, its states set to `states`.

    CorruptFile: the parts are of other types, an argument is unknown, or the states are not those of the program; else
    what Session raises.
    """
    if not (isinstance(program, Program) and isinstance(arguments, Mapping) and isinstance(states, Mapping)):
        kinds = ", ".join(type(part).__name__ for part in (program, arguments, states))
        raise _core.CorruptFile(f"pickle of a Session: holds {kinds}, not a Program, its arguments and its states")
    try:
        session = Session(program, **arguments)
    except TypeError as error:
        raise _core.CorruptFile(f"pickle of a Session: {one_line(error)}") from error
    if set(states) != set(session.state):
        raise _core.CorruptFile(
            f"pickle of a Session: has states {sorted(map(str, states))}, the program has {sorted(session.state)}"
        )
    for name, value in states.items():
        try:
            session.state[name] = value
        except _core.InvalidArgument as error:
            raise _core.CorruptFile(f"pickle of a Session: {one_line(error)}") from error
    return session


def nodes_on(session: Session, target: str) -> tuple[int, int]:
    """Of the nodes that compute something in a run of `session`: how many do on a back end that `target` names, and how
    many are.
    """
    names = {part.partition(":")[0] for part in target.split(",")}
    backends = [row.backend for row in session.placement if row.backend not in ("none", "runtime")]
    return sum("auto" in names or backend in names for backend in backends), len(backends)


class State(Mapping[str, Array]):
    """What a session keeps between runs, by name: `session.state["h"]` reads a copy, assignment replaces it.

    A Mapping, so that dict(session.state) copies all of it. One thread at a time uses it, as it does the session.
    """

    def __init__(self, core: _core.Session, types: Mapping[str, np.dtype[Any]]) -> None:
        """Made by Session.state. core: the extension's session; types: of its states by name, in order."""
        self._core = core
        self._types = dict(types)
        self._names = list(types)

    def __repr__(self) -> str:
        """The names."""
        return f"<pinnace.State: {', '.join(map(repr, self._names)) or 'none'}>"

    def __eq__(self, other: object) -> bool:
        """Whether it is the same object: arrays have no single answer."""
        return self is other

    __hash__ = object.__hash__

    def __contains__(self, name: object) -> bool:
        """Whether there is a state of that name."""
        return name in self._names

    def get(self, name: str, default: Any = None) -> Any:
        """A copy of the contents of the state called `name`; raises nothing where there is none: `default` then."""
        return self[name] if name in self._names else default

    def __iter__(self) -> Iterator[str]:
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
        place = self._index(name)
        self._core.set_state(place, input_array(f"state {name!r}", value, self._types[name]))

    def _index(self, name: str) -> int:
        if name not in self._names:
            raise _core.InvalidArgument(f"the program has no state {name!r}; it has {self._names}")
        return self._names.index(name)


__all__ = ["Event", "Future", "Placement", "PlanInfo", "Profile", "Session", "State", "nodes_on", "session_from_pickle"]
