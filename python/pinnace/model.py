"""load(): any model to a Model. Model.build(): to a verified Program."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from os import fspath
from pathlib import Path
from typing import Any

import numpy as np

from pinnace import _core
from pinnace.files import printable, temporary_folder
from pinnace.log import log
from pinnace.made_inputs import InputMaker, attempts, facts_of, first_that_runs, ranges_of
from pinnace.onnx_source import OnnxSource
from pinnace.program import NodeInfo, Program
from pinnace.separate_dims import load_separated
from pinnace.session import as_tensor, input_array
from pinnace.source import ProgramSource, Source, TorchSource, open_torch_archive, source_of
from pinnace.torch_archive import archive_kind
from pinnace.torch_example_sizes import example_sizes
from pinnace.torch_export import decompose, dim_names, export_module, is_exported, is_module, save_exported
from pinnace.torch_live import LiveSource, module_twin
from pinnace.torch_nnapi import NnapiSource, load_nnapi, nnapi_part
from pinnace.torchscript import ScriptSource, export_script, is_script, is_script_file, open_script
from pinnace.types import Array, Dim, TensorSpec, custom_ops, signature, specs_from
from pinnace.verify import verify_program


@dataclass(frozen=True)
class CheckNode:
    """One node for one target; `rule` is empty where it can run there."""

    node: str
    op: str
    source: str
    target: str
    supported: bool
    rule: str
    value: str
    rewrite: str
    bytes_copied: int


@dataclass(frozen=True)
class CheckReport:
    """Which nodes can run on which target."""

    nodes: list[CheckNode]

    @property
    def ok(self) -> bool:
        """True if every node can run on every target asked about."""
        return all(n.supported for n in self.nodes)

    def refused(self) -> list[CheckNode]:
        """The rows that say no."""
        return [n for n in self.nodes if not n.supported]

    def __str__(self) -> str:
        """One line per target, then one per refused node."""
        lines = []
        for target in dict.fromkeys(n.target for n in self.nodes):
            rows = [n for n in self.nodes if n.target == target]
            lines.append(f"{target}: {sum(n.supported for n in rows)} of {len(rows)} nodes")
        rows = self.refused()
        lines += [printable(f"  {n.target}: {n.op} '{n.node}' {n.source}: {n.rule} {n.value}".rstrip()) for n in rows]
        return "\n".join(lines)


@dataclass(frozen=True)
class PassReport:
    """What one pass did. `changes` counts rewrites; `largest_error` is measured with check_passes."""

    name: str
    changes: int
    milliseconds: float
    largest_error: float


class Model:
    """An imported and optimised model. Made by load()."""

    def __init__(self, core: _core.Model, source: Source | None, examples: list[dict[str, Array]], name: str) -> None:
        """See load()."""
        self._core = core
        self._source = source
        self._examples = examples
        self._name = name
        self._notes: list[str] = []
        self._known_sizes: Callable[[], dict[str, int]] = dict

    def __repr__(self) -> str:
        """Name, number of nodes, inputs and outputs."""
        nodes = len(self._core.nodes)
        return f"<pinnace.Model {printable(self._name)}: {nodes} nodes, {signature(self.inputs, self.outputs)}>"

    @property
    def inputs(self) -> dict[str, TensorSpec]:
        """Inputs by name, in order."""
        return specs_from(self._core.inputs, self._core.symbols)

    @property
    def outputs(self) -> dict[str, TensorSpec]:
        """Outputs by name, in order."""
        return specs_from(self._core.outputs, self._core.symbols)

    @property
    def nodes(self) -> list[NodeInfo]:
        """Every node of the optimised graph, in order."""
        return [NodeInfo(**row) for row in self._core.nodes]

    @property
    def notes(self) -> list[str]:
        """What a user should know of the import: ignored fields, decomposed operators."""
        return [*self._core.notes, *self._notes]

    @property
    def passes(self) -> list[PassReport]:
        """What each pass did."""
        return [
            PassReport(r["pass"], r["changes"], r["milliseconds"], r["largest_error"]) for r in self._core.pass_reports
        ]

    def text(self, max_constant_bytes: int = 64) -> str:
        """The graph's text form."""
        return self._core.text(max_constant_bytes)

    def check(self, targets: str | Sequence[str] = ("cpu",)) -> CheckReport:
        """Whether each node can run on each target. Needs no device. InvalidArgument: unknown target."""
        targets = [targets] if isinstance(targets, str) else list(targets)
        return CheckReport([CheckNode(**row) for row in self._core.check(targets)])

    def build(
        self,
        targets: str | Sequence[str] = ("cpu",),
        quantize: Any = None,
        verify: bool = True,
        *,
        examples: Sequence[Mapping[str, Any]] = (),
        reference: Any = None,
        metadata: Mapping[str, str] | None = None,
        cancel: _core.CancelToken | None = None,
    ) -> Program:
        """Compiles, writes, reads back, and holds the result against the source model on every target that can run
        here, on the examples and a second input beside the first; on the first once more at other sizes, where sizes
        are open. docs/verification.md says when values count as equal. Where equal ones prove nothing, metadata
        "verified" begins with "inconclusive".

        targets   those that name a level get their weights laid out in the file: cpu:avx2, nnapi:29.
        examples  inputs to verify on; else those of load(). What they leave out is made up: sizes that pass every shape
                  rule, the smallest and usual ones, and seeded contents, integers by what reads them. The metadata say
                  what was made up, under `made_up.`, and which sizes the graph was found to take, under `range.`; the
                  program's dimensions have these ranges.
        reference what to hold the program against instead of its source: the module that an ONNX file was exported
                  from, for instance; anything that compare() takes.
        verify    False skips the comparison; the file records that, and `inspect` shows it.
        cancel    a CancelToken that ends the build with Cancelled; a run of the source is waited for.

        VerificationError names the first layer that differs. Unsupported: nothing here can run the source, or quantize
        is given (this build converts models that are quantised already; it does not quantise).
        """
        if quantize is not None:
            raise _core.Unsupported(
                "quantize: this build does not quantise; hand over a model that is quantised already"
            )
        targets = [targets] if isinstance(targets, str) else list(targets)
        facts = {"source": self._name, **(metadata or {})}
        with _core.CancelScope(cancel):
            if not verify:
                program = Program(self._core.build(targets, facts))
                return Program(program._core.with_metadata({"verified": "no: verify=False"}))
            maker = InputMaker(self.inputs, self._core, self._known_sizes)
            makings = [maker.make(example) for example in examples or self._examples or [{}]]
            core = self._core.with_ranges(ranges) if (ranges := ranges_of(makings)) else self._core
            first = next(attempts(makings))
            program = Program(core.build(targets, {**facts, **facts_of(makings, first)}))
            source = self._source if reference is None else source_of(reference, first[0].arrays)
            return first_that_runs(program, makings, lambda p, inputs: verify_program(p, source, inputs, targets))


def load(
    source: Any,
    example_inputs: Sequence[Any] | Mapping[str, Any] = (),
    dynamic_shapes: Mapping[str, Any] | Sequence[Any] | None = None,
    *,
    example_kwargs: Mapping[str, Any] | None = None,
    symbols: Sequence[Dim] = (),
    disabled_passes: Sequence[str] = (),
    check_passes: bool = False,
    model_name: str = "",
    cancel: _core.CancelToken | None = None,
) -> Model:
    """Imports a model and optimises its graph.

    source           nn.Module (exported here), torch.export.ExportedProgram, ScriptModule, or the path of a .pt2,
                     .pt (TorchScript), .onnx, .pnc or .json file (an NNAPI model that the host library dumped).
    example_inputs   for a module: its positional arguments; for TorchScript: its tensors, whose shapes become the
                     program's; else arrays for the model's inputs in order, or by name. They are what build() verifies
                     on, beside one run at other sizes where sizes are open.
    dynamic_shapes   for a module that is not TorchScript, as torch.export takes them, with pn.Dim for dimensions that
                     vary.
    symbols          ranges for dimensions that a file leaves open, by the name they have there.
    disabled_passes  passes not to run, or "all"; check_passes: hold the graph against itself after each, run on the
                     example inputs, or on seeded ones.
    model_name       which model of an archive with several.
    cancel           a CancelToken that ends the import with Cancelled; torch's part of it is waited for.

    Outputs are the leaves of what the module returns, in order: tensors, and ints as int64 scalars; bools, floats and
    text are left out with a note. A dict of tensors, or a named tuple such as topk's, gives them the names of its keys
    or fields. Which operators import: docs/imports.md.

    FileError, CorruptFile (offset); ConversionError: `.nodes` has every node that cannot be imported, with line and
    rule. Unsupported: TorchScript that reaches files, or a package that is missing; InvalidArgument: arguments that do
    not fit; Cancelled.
    """
    options = {
        "disabled_passes": list(disabled_passes),
        "check_passes": check_passes,
        "symbols": [(d.name, d.min, d.max, d.multiple_of) for d in symbols],
        "model_name": model_name,
        "ops": custom_ops(),
    }
    with _core.CancelScope(cancel):
        return _load(source, example_inputs, dynamic_shapes, dict(example_kwargs or {}), options)


def _load(source: Any, example_inputs: Any, dynamic_shapes: Any, kwargs: dict[str, Any], options: Any) -> Model:
    runner: Source | None
    check_passes = options["check_passes"]
    if is_script(source) or (not is_module(source) and not is_exported(source) and is_script_file(fspath(source))):
        name = type(source).__name__ if is_script(source) else Path(fspath(source)).name
        script = source if is_script(source) else open_script(fspath(source))
        tensors = _script_examples(example_inputs, dynamic_shapes, kwargs)
        core, notes, runner = _import_script(script, name, tensors, options)
        example_inputs = tensors
    elif is_module(source) or is_exported(source):
        name = type(source).__name__
        if is_module(source):
            args = () if isinstance(example_inputs, Mapping) else tuple(example_inputs)
            kwargs.update(example_inputs if isinstance(example_inputs, Mapping) else {})
            if not args and not kwargs:
                raise _core.InvalidArgument(f"load({name}) needs example_inputs to export the module with")
            twin = module_twin(source)  # before torch.export runs it, which may change what it counts
            start = time.perf_counter()
            program = export_module(source, args, kwargs, dynamic_shapes)
            log("info", f"torch exported {name}, in {time.perf_counter() - start:.2f} s")
            options["dim_names"] = dim_names(source, args, kwargs, dynamic_shapes)
            example_inputs = _call_tensors(args, kwargs)
        else:
            program, twin = source, None
        if check_passes:
            options["examples"] = _example_list(example_inputs)
        core, notes = _import_exported(program, name, options)
        runner = TorchSource(program)
        if twin is not None:
            runner = LiveSource(twin, runner)
    else:
        path = fspath(source)
        name = Path(path).name
        if check_passes:
            options["examples"] = _example_list(example_inputs)
        core, notes, runner = _import_path(path, options, example_inputs)
    model = Model(core, runner, [], name)
    model._notes = notes
    if core.format == "pt2" and isinstance(runner, _LazySource):
        model._known_sizes = lambda: example_sizes(fspath(source), options["model_name"], model.inputs)
    model._examples = _named_examples(model, example_inputs)
    return model


def _script_examples(example_inputs: Any, dynamic_shapes: Any, kwargs: Any) -> list[Any]:
    """The tensors of a TorchScript module's call; InvalidArgument for what such a module cannot be given."""
    import torch

    if dynamic_shapes:
        raise _core.InvalidArgument("dynamic_shapes: TorchScript is converted for the shapes of its example_inputs")
    if isinstance(example_inputs, Mapping) or kwargs:
        raise _core.InvalidArgument(
            "example_inputs of TorchScript are tensors in the order of its inputs, without names"
        )
    return [
        v if isinstance(v, torch.Tensor) else as_tensor(input_array(f"example_inputs: number {i}", v))
        for i, v in enumerate(example_inputs)
    ]


def _import_script(
    script: Any, name: str, tensors: list[Any], options: Mapping[str, Any]
) -> tuple[_core.Model, list[str], Source]:
    part = nnapi_part(script)
    if part is not None:
        return load_nnapi(part, tensors, options), [], NnapiSource(script, tensors)
    core, notes = _import_exported(export_script(script, tensors), name, options)
    return core, notes, ScriptSource(script, tensors)


def _import_exported(program: Any, name: str, options: Mapping[str, Any]) -> tuple[_core.Model, list[str]]:
    """Through a temporary archive: there is one way in. Operators that the importer lacks are decomposed, alone.

    Errors name the model, by `name`, where they would name that archive.
    """
    notes: list[str] = []
    before: _core.ConversionError | None = None
    with temporary_folder() as folder:
        path = str(Path(folder) / "model.pt2")
        for _ in range(8):  # a decomposition may bring operators that need one themselves
            save_exported(program, path, name)
            try:
                return _core.Model.load(path, **options), notes
            except _core.Error as error:
                error.args = (str(error).replace(path, name),)
                if not isinstance(error, _core.ConversionError):
                    raise
                if before is not None and not error.nodes:
                    raise before from error  # the decomposition brought what no node can be blamed for
                before = error
                simpler = decompose(program, error)
                if simpler is None or str(simpler.graph) == str(program.graph):
                    raise
                notes.append("decomposed by torch: " + ", ".join(sorted({p.op for p in error.nodes})))
                program = simpler
    raise _core.ConversionError("torch's decompositions do not end")


def _import_path(
    path: str, options: Mapping[str, Any], example_inputs: Any = ()
) -> tuple[_core.Model, list[str], Source | None]:
    try:
        core, notes = load_separated(
            lambda names, ones: _core.Model.load(
                path,
                **{**options, "symbols": [*options["symbols"], *((name, 1, 1, 1) for name in ones)]},
                separate_dims=names,
            ),
            _example_list(example_inputs),
            [name for name, *_ in options["symbols"]],
            onnx=not archive_kind(path),
        )
    except _core.ConversionError as refusal:
        if archive_kind(path) != "export":
            raise
        try:
            import torch  # noqa: F401
        except ImportError:
            raise refusal from None
        try:
            program = open_torch_archive(path, options["model_name"]).program
        except _core.Error as error:
            refusal.args = (f"{refusal}\ntorch cannot be asked to decompose them: {error}",)
            raise refusal from error
        core, notes = _import_exported(program, path, {**options, "model_name": ""})
        return core, notes, TorchSource(program)
    if core.format == "pnc":
        return core, [], ProgramSource(path)
    if core.format == "onnx":
        return core, notes, _LazySource(lambda: OnnxSource(path))
    if core.format == "nnapi":
        return core, [], None
    return core, [], _LazySource(lambda: open_torch_archive(path, options["model_name"]))


class _LazySource:
    """A source that is opened when it is first run: loading needs neither torch nor onnx."""

    def __init__(self, make: Any) -> None:
        self._make = make
        self._source: Source | None = None

    def _open(self) -> Source:
        if self._source is None:
            self._source = self._make()
        return self._source

    @property
    def description(self) -> str:
        return self._open().description

    def run(self, inputs: Sequence[Array]) -> list[Array]:
        return self._open().run(inputs)

    def layers(self, inputs: Sequence[Array], names: set[str]) -> dict[str, Array]:
        return self._open().layers(inputs, names)

    def __getattr__(self, name: str) -> Any:
        """What some kinds of source have beyond these."""
        if name.startswith("_"):
            raise AttributeError(name)
        return getattr(self._open(), name)


def _call_tensors(args: Sequence[Any], kwargs: Mapping[str, Any]) -> list[Any]:
    from torch.utils import _pytree

    return [leaf for leaf in _pytree.tree_flatten((tuple(args), dict(kwargs)))[0] if hasattr(leaf, "detach")]


def _example_list(example_inputs: Sequence[Any] | Mapping[str, Any]) -> list[tuple[str, Any]]:
    if isinstance(example_inputs, Mapping):
        return [(name, input_array(f"example_inputs: {name!r}", value)) for name, value in example_inputs.items()]
    return [("", input_array(f"example_inputs: number {i}", value)) for i, value in enumerate(example_inputs)]


def _named_examples(model: Model, example_inputs: Sequence[Any] | Mapping[str, Any]) -> list[dict[str, Array]]:
    if not example_inputs:
        return []
    names = list(model.inputs)
    if isinstance(example_inputs, Mapping):
        unknown = [n for n in example_inputs if n not in names]
        if unknown:
            raise _core.InvalidArgument(f"example_inputs: unknown {unknown}; the model takes {names}")
        example = dict(example_inputs)
    else:
        if len(example_inputs) != len(names):
            raise _core.InvalidArgument(f"example_inputs has {len(example_inputs)} arrays, the model takes {names}")
        example = dict(zip(names, example_inputs, strict=True))
    return [{n: np.array(input_array(f"example_inputs: {n!r}", v)) for n, v in example.items()}]
