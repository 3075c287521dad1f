"""load(): any model, live or in a file, to a Model."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from typing import Any

import numpy as np

from pinnace import _core
from pinnace.arrays import as_tensor, input_array
from pinnace.inputs.separate_dims import load_separated
from pinnace.inputs.time_axes import dynamic_time, stream_axes
from pinnace.log import log
from pinnace.model import Model, StreamModel
from pinnace.packages import import_package
from pinnace.preprocessing import Preprocessing
from pinnace.progress import phase
from pinnace.sources.base import Source
from pinnace.sources.lazy import LazySource
from pinnace.sources.model_file import ModelFile, model_file
from pinnace.sources.onnx_file import OnnxSource
from pinnace.sources.pinnace_program import ProgramSource
from pinnace.sources.torch_module import LiveSource, live_source
from pinnace.sources.torch_nnapi import NnapiSource
from pinnace.sources.torch_program import TorchSource, open_torch_archive
from pinnace.sources.torchscript import QuantizedScriptSource, script_source
from pinnace.torch.archive import archive_kind
from pinnace.torch.caches import cached_module
from pinnace.torch.collection import without_collection
from pinnace.torch.example_sizes import example_sizes
from pinnace.torch.export import (
    decompose,
    decomposed_note,
    dim_names,
    exported_parts,
    is_exported,
    is_module,
    with_ways_out,
)
from pinnace.torch.export_failure import refuse_lazy
from pinnace.torch.held_buffers import with_one_buffer
from pinnace.torch.module_call import (
    bound_arguments,
    is_number,
    is_numbers,
    module_call,
    named_dims,
    one_or_several,
    own_tensor,
    uncompiled,
)
from pinnace.torch.nnapi_module import load_nnapi, nnapi_part
from pinnace.torch.own_example import file_example, is_placeholder, program_example
from pinnace.torch.pickled_weights import pickled_parts
from pinnace.torch.seeded_random import NOTE, draws_random, seeded
from pinnace.torchscript.script import (
    export_quantized,
    has_quantized_steps,
    interpreted,
    is_packed,
    is_script,
    is_script_file,
    open_script,
    traced,
)
from pinnace.types import Array, Dim, TensorSpec, custom_ops, specs_from, token, truth, word, words


def load(
    source: Any,
    example_inputs: Any = (),
    dynamic_shapes: Mapping[str, Any] | Mapping[int, Any] | Sequence[Any] | None = None,
    *,
    example_kwargs: Mapping[str, Any] | None = None,
    symbols: Sequence[Dim] = (),
    disabled_passes: str | Sequence[str] = (),
    check_passes: bool = False,
    model_name: str = "",
    random: str = "refuse",
    stream: Mapping[str, int] | None = None,
    preprocess: Preprocessing | Mapping[str, Preprocessing] | None = None,
    cancel: _core.CancelToken | None = None,
) -> Model:
    """Imports a model and optimises its graph.

    source           nn.Module (exported here; traced by torch.jit where its layers pass on quantised tensors),
                     torch.export.ExportedProgram, ScriptModule, or the path of a .pt2, .pt (TorchScript), .onnx, .pnc
                     or .json file (an NNAPI model that the host library dumped); also such a file as bytes or open for
                     reading, and onnx.ModelProto.
    example_inputs   for a module, TorchScript too: its positional arguments, or a dict of them by name; else arrays
                     for the model's inputs, of their shapes and dtypes, in order or by name. A single tensor, array,
                     number or list of numbers is the only input; a list of tensors is the first argument, where that is
                     one (torchvision's detectors: [image]). A module's arguments may be tuples, lists and dicts, nested
                     ones too; arrays in them become tensors. They are what build() verifies on, beside one run at other
                     sizes where sizes are dynamic. None: an ExportedProgram or .pt2 file has the example that it was
                     exported with, if that can be read without unpickling and fits. What is all zeros or ones in it,
                     and all else, build() makes up.
    dynamic_shapes   for a module, quantised TorchScript excepted, as torch.export takes them, with pn.Dim, or a name,
                     for dimensions that vary; for a module with one argument also {0: "batch"}, of a list of tensors
                     each.
    example_kwargs   for a module: its keyword arguments, by name.
    symbols          ranges for dimensions that a file leaves dynamic, by the name they have there.
    disabled_passes  passes not to run, or "all"; check_passes: hold the graph against itself after each, run on the
                     example inputs, or on seeded ones.
    model_name       which model of an archive with several.
    random           what becomes of operators that draw random numbers, dropout in training among them: "refuse", by
                     name; or "seeded", in modules, ExportedPrograms and .pt2 files: they draw from a generator of
                     pinnace's, whose place is the state `random_position` of a session (docs/using.md).
    stream           {"audio": 2}: inputs that come in chunks, with their axis of time each. The program takes chunks
                     whose sizes are multiples of `program.stream["audio"].multiple`, keeps what it needs of earlier
                     ones in states, and its outputs, joined, are the whole's, `.latency` elements later;
                     Session.finish() gives the rest (docs/streaming.md). A module's axes of time are opened where
                     dynamic_shapes is not given. build() takes whole examples.
    preprocess       what pn.preprocess() gives, or a dict of such by input name: the model then makes that input of a
                     picture. example_inputs are those of the model without it. See Model.preprocessed().
    cancel           a CancelToken that ends the import with Cancelled; torch's part of it is waited for.

    Outputs are the leaves of what the module returns, in order: tensors, and ints as int64 scalars; bools, floats and
    text are left out with a note, and so are caches of Hugging Face's decoders. Inputs and outputs are named by
    arguments, keys and fields: `batch.image`, `logits`, `past.0.key` (docs/using.md). Which operators import:
    docs/imports.md. A module's weights stay where they are until build(), which refuses with InvalidArgument if they
    were written to meanwhile.

    FileError, also for a file of a format that is not read; CorruptFile (offset); ConversionError: `.nodes` has every
    node that cannot be imported, with line and rule. Unsupported: TorchScript that reaches files, or a package that is
    missing; InvalidArgument: arguments that do not fit; Cancelled. The module, torch's settings and the states of
    random numbers are as before, whatever happens.
    """
    if not isinstance(symbols, Iterable) or not all(isinstance(d, Dim) for d in symbols):
        raise _core.InvalidArgument(f"symbols must be a list of Dim, is {symbols!r}")
    if example_kwargs is not None and not isinstance(example_kwargs, Mapping):
        raise _core.InvalidArgument(f"example_kwargs must be arguments by name, is {type(example_kwargs).__name__}")
    if isinstance(dynamic_shapes, str):
        raise _core.InvalidArgument(
            f"dynamic_shapes must be a dict of dimensions by number, such as {{0: {dynamic_shapes!r}}}, or a dict of "
            f"such by argument, is {dynamic_shapes!r}"
        )
    options = {
        "disabled_passes": words("disabled_passes", disabled_passes),
        "check_passes": truth("check_passes", check_passes),
        "symbols": [(d.name, d.min, d.max, d.multiple_of) for d in symbols],
        "model_name": word("model_name", model_name),
        "ops": custom_ops(),
    }
    if random not in ("refuse", "seeded"):
        raise _core.InvalidArgument(f"random must be 'refuse' or 'seeded', is {random!r}")
    draws = random == "seeded"
    kwargs = dict(example_kwargs or {})
    if stream is not None and preprocess is not None:
        raise _core.InvalidArgument("stream and preprocess: a picture does not come in chunks, give one of them")
    with _core.CancelScope(token(cancel)):
        if stream is not None:
            return _load_stream(source, example_inputs, dynamic_shapes, kwargs, options, draws, stream_axes(stream))
        model = _load(source, example_inputs, dynamic_shapes, kwargs, options, draws)
        return model if preprocess is None else model.preprocessed(preprocess)


def _load_stream(
    source: Any,
    example_inputs: Any,
    dynamic_shapes: Any,
    kwargs: dict[str, Any],
    options: dict[str, Any],
    draws: bool,
    streams: dict[str, int],
) -> StreamModel:
    """With a module's axes of time opened, at sizes that torch says the code takes."""
    if dynamic_shapes is not None or is_script(source) or not is_module(source):
        return StreamModel(_load(source, example_inputs, dynamic_shapes, kwargs, options, draws), streams)
    args, named = module_call(uncompiled(source), example_inputs, kwargs)
    arguments = bound_arguments(uncompiled(source), args, named)
    refusals: list[str] = []
    while True:
        shapes = dynamic_time(arguments, streams, refusals)
        try:
            return StreamModel(_load(source, example_inputs, shapes, kwargs, dict(options), draws), streams)
        except _core.ConversionError as refusal:
            refusals.append(str(refusal))
            if dynamic_time(arguments, streams, refusals) == shapes:
                raise


def _load(
    source: Any, example_inputs: Any, dynamic_shapes: Any, kwargs: dict[str, Any], options: dict[str, Any], draws: bool
) -> Model:
    if is_script(source):
        return _load_script(source, type(source).__name__, example_inputs, dynamic_shapes, kwargs, options)
    if is_module(source):
        module = cached_module(uncompiled(source))
        if is_packed(module):
            return _load_packed(module, example_inputs, dynamic_shapes, kwargs, options)
        return _load_module(module, example_inputs, dynamic_shapes, kwargs, options, draws)
    if is_exported(source):
        return _load_exported(source, example_inputs, dynamic_shapes, kwargs, options, draws)
    file = model_file(source)
    with file.named():
        if is_script_file(file.path):
            script = open_script(file.path)
            return _load_script(script, file.name, example_inputs, dynamic_shapes, kwargs, options)
        if draws and archive_kind(file.path) == "export":
            program = open_torch_archive(file.path, options["model_name"]).program
            if draws_random(program):
                return _load_exported(program, example_inputs, dynamic_shapes, kwargs, options, draws)
        return _load_file(file, example_inputs, dynamic_shapes, kwargs, options)


# By input, the example that a source itself has; empty where there is none.
OwnExample = Callable[[Mapping[str, TensorSpec]], dict[str, Array]]


def _no_example(_specs: Mapping[str, TensorSpec]) -> dict[str, Array]:
    return {}


def _load_script(
    script: Any, name: str, example_inputs: Any, dynamic_shapes: Any, kwargs: dict[str, Any], options: dict[str, Any]
) -> Model:
    run = None if nnapi_part(script) is not None else interpreted(script)
    if run is None or has_quantized_steps(run) or _has_quantized(example_inputs):
        tensors = _script_examples(example_inputs, dynamic_shapes, kwargs)
        core, notes, runner = _import_script(script, name, tensors, options)
        return _model(core, runner, tensors, name, notes)
    module = run.module
    args, kwargs = module_call(module, example_inputs, kwargs)
    dynamic_shapes = named_dims(module, dynamic_shapes, args, kwargs)
    said: list[str] = []
    source = script_source(script, args, kwargs, dynamic_shapes, said)
    options["dim_names"] = dim_names(module, args, kwargs, dynamic_shapes)
    return _from_exported(source.exported, source, _call_tensors(args, kwargs), name, options, said)


def _has_quantized(example_inputs: Any) -> bool:
    values = one_or_several(example_inputs)
    return not isinstance(values, Mapping) and any(getattr(v, "is_quantized", False) for v in values)


def _load_packed(
    module: Any, example_inputs: Any, dynamic_shapes: Any, kwargs: dict[str, Any], options: dict[str, Any]
) -> Model:
    """A module whose layers pass quantised tensors on, which torch.export cannot follow, as its trace."""
    name = type(module).__name__
    if dynamic_shapes:
        raise _core.InvalidArgument(
            f"dynamic_shapes: {name}, with layers of torch.ao's eager quantisation, is converted for the shapes of its "
            "example_inputs"
        )
    args, kwargs = module_call(module, example_inputs, kwargs)
    tensors = _script_examples(args, None, kwargs)
    core, notes, runner = _import_script(traced(module, tensors), name, tensors, options)
    said = "traced by torch.jit, for torch.export knows no quantised tensors: sizes are those of the example inputs"
    return _model(core, runner, tensors, name, [said, *notes])


def _load_module(
    module: Any,
    example_inputs: Any,
    dynamic_shapes: Any,
    kwargs: dict[str, Any],
    options: dict[str, Any],
    draws: bool,
) -> Model:
    name = type(module).__name__
    refuse_lazy(module)
    args, kwargs = module_call(module, example_inputs, kwargs)
    dynamic_shapes = named_dims(module, dynamic_shapes, args, kwargs)
    start = time.perf_counter()
    said: list[str] = []
    runner = live_source(module, args, kwargs, dynamic_shapes, said)
    log("info", f"torch exported {name}, in {time.perf_counter() - start:.2f} s")
    options["dim_names"] = dim_names(module, args, kwargs, dynamic_shapes)
    exported = runner.exported if isinstance(runner, LiveSource) else runner
    if draws and draws_random(exported.program):
        said.append(NOTE)
        exported = runner = TorchSource(seeded(exported.program))  # the module itself draws torch's numbers
    return _from_exported(exported, runner, _call_tensors(args, kwargs), name, options, said)


def _load_exported(
    program: Any,
    example_inputs: Any,
    dynamic_shapes: Any,
    kwargs: dict[str, Any],
    options: dict[str, Any],
    draws: bool,
) -> Model:
    _only_for_modules(dynamic_shapes, kwargs, "an exported program has the dimensions that torch.export was given")
    own = partial(program_example, program)
    program, said = with_one_buffer(program), []
    if draws and draws_random(program):
        said.append(NOTE)
        program = seeded(program)
    source = TorchSource(program)
    inputs = one_or_several(example_inputs)
    return _from_exported(source, source, inputs, type(program).__name__, options, said, own)


def _from_exported(
    exported: TorchSource,
    runner: Source,
    example_inputs: Any,
    name: str,
    options: dict[str, Any],
    said: Sequence[str] = (),
    own: OwnExample = _no_example,
) -> Model:
    if options["check_passes"]:
        options["examples"] = _example_list(example_inputs)
    core, notes = _import_exported(exported.program, name, options)
    notes = [*said, *notes]
    _check_open(name, specs_from(core.inputs, core.symbols), options.get("dim_names", ()), notes)
    return _model(core, runner, example_inputs, name, notes, own=own)


def _load_file(
    file: ModelFile, example_inputs: Any, dynamic_shapes: Any, kwargs: dict[str, Any], options: dict[str, Any]
) -> Model:
    _only_for_modules(dynamic_shapes, kwargs, "a file has names for its dynamic dimensions, whose ranges are `symbols`")
    example_inputs = one_or_several(example_inputs)
    if options["check_passes"]:
        options["examples"] = _example_list(example_inputs)
    core, notes, runner = _import_path(file.path, options, example_inputs)
    sizes: Callable[[], dict[str, int]] = dict
    own: OwnExample = _no_example
    if core.format == "pt2" and isinstance(runner, LazySource):
        sizes = partial(example_sizes, file.path, options["model_name"], specs_from(core.inputs, core.symbols))
        own = partial(file_example, file.path, options["model_name"])
    return _model(core, file.reader(runner) if runner else None, example_inputs, file.name, notes, sizes, own)


def _only_for_modules(dynamic_shapes: Any, kwargs: Mapping[str, Any], instead: str) -> None:
    if dynamic_shapes:
        raise _core.InvalidArgument(f"dynamic_shapes is for modules: {instead}")
    if kwargs:
        raise _core.InvalidArgument("example_kwargs is for modules: give all inputs as example_inputs, a dict by name")


def _model(
    core: _core.Model,
    runner: Source | None,
    example_inputs: Any,
    name: str,
    notes: Sequence[str],
    known_sizes: Callable[[], dict[str, int]] = dict,
    own: OwnExample = _no_example,
) -> Model:
    """`own` gives the example of the source itself, for where none is given; empty where it has none. Of inputs that
    are all zeros or ones there, sizes alone are taken."""
    specs = specs_from(core.inputs, core.symbols)
    examples = _named_examples(specs, example_inputs)
    if not examples and (example := own(specs)):
        log("info", f"{name}: the example that it was exported with is the example input")
        examples = [{n: array for n, array in example.items() if not is_placeholder(array)}]
        own_sizes = {
            dim.name: size
            for n, array in example.items()
            for dim, size in zip(specs[n].shape, array.shape, strict=True)
            if isinstance(dim, Dim)
        }
        return Model(core, runner, examples, name, notes, lambda: own_sizes)
    return Model(core, runner, examples, name, notes, known_sizes)


def _check_open(
    name: str, specs: Mapping[str, TensorSpec], wanted: Sequence[tuple[int, int, str]], notes: Sequence[str]
) -> None:
    """ConversionError: a dimension that was to be dynamic is not, as where a decomposition unrolled a loop over it."""
    inputs = list(specs.values())
    open_ones = {dim.name for spec in inputs for dim in spec.shape if isinstance(dim, Dim)}
    for place, dim, symbol in wanted:
        if symbol not in open_ones and place < len(inputs) and dim < len(inputs[place].shape):
            spec, because = inputs[place], f" ({'; '.join(notes)})" if notes else ""
            raise _core.ConversionError(
                f"{name}: dimension {dim} of input {spec.name!r}, {symbol!r} in dynamic_shapes, would be fixed to "
                f"{spec.shape[dim]}{because}"
            )


def _script_examples(example_inputs: Any, dynamic_shapes: Any, kwargs: Any) -> list[Any]:
    """The tensors of a TorchScript module's call; InvalidArgument for what such a module cannot be given."""
    import torch

    if dynamic_shapes:
        raise _core.InvalidArgument(
            "dynamic_shapes: quantised TorchScript is converted for the shapes of its example_inputs"
        )
    if isinstance(example_inputs, Mapping) or kwargs:
        raise _core.InvalidArgument(
            "example_inputs of quantised TorchScript are tensors in the order of its inputs, without names"
        )
    seen: list[torch.Tensor] = []
    return [
        own_tensor(v, seen)
        if isinstance(v, torch.Tensor)
        else as_tensor(_example_array(f"example_inputs: number {i}", v))
        for i, v in enumerate(one_or_several(example_inputs))
    ]


def _import_script(
    script: Any, name: str, tensors: list[Any], options: Mapping[str, Any]
) -> tuple[_core.Model, list[str], Source]:
    part = nnapi_part(script)
    if part is not None:
        return load_nnapi(part, tensors, options), [], NnapiSource(script, tensors)
    program, nodes = export_quantized(script, tensors)
    core, notes = _import_exported(program, name, options)
    return core, notes, QuantizedScriptSource(script, tensors, nodes)


@phase("importing")
@without_collection()
def _import_exported(program: Any, name: str, options: Mapping[str, Any]) -> tuple[_core.Model, list[str]]:
    """The parts that its archive would have, from memory: there is one way in. Operators that the importer lacks are
    decomposed, alone.

    Errors name the model, by `name`, where they would name that archive.
    """
    notes: list[str] = []
    before: _core.ConversionError | None = None
    given = {key: value for key, value in options.items() if key != "model_name"}  # there is one model
    for _ in range(8):  # a decomposition may bring operators that need one themselves
        parts = exported_parts(program, name)
        try:
            return _core.Model.load_torch_program(name, parts, **given), notes
        except _core.ConversionError as error:
            if before is not None and not error.nodes:
                raise before from error  # the decomposition brought what no node can be blamed for
            before = error
            simpler = decompose(program, error)
            if simpler is None or str(simpler.graph) == str(program.graph):
                raise with_ways_out(error) from None
            notes.append(decomposed_note(error))
            program = simpler
    raise _core.ConversionError("torch's decompositions do not end")


@phase("importing")
def _import_path(
    path: str, options: Mapping[str, Any], example_inputs: Any = ()
) -> tuple[_core.Model, list[str], Source | None]:
    parts = pickled_parts(path, options["model_name"])

    def load(separate: list[str], ones: list[str]) -> _core.Model:
        given = {**options, "symbols": [*options["symbols"], *((name, 1, 1, 1) for name in ones)]}
        if parts is not None:
            return _core.Model.load_torch_program(path, parts, **given)
        return _core.Model.load(path, **given, separate_dims=separate)

    try:
        core, notes = load_separated(
            load,
            _example_list(example_inputs),
            [name for name, *_ in options["symbols"]],
            onnx=_core.Model.format_of(path) == "onnx",
        )
    except _core.ConversionError as refusal:
        if archive_kind(path) != "export":
            raise
        try:
            import_package("torch")
        except ImportError:
            raise refusal from None
        parts = None  # whose weights the next reader has once more
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
        return core, notes, LazySource(lambda: OnnxSource(path))
    if core.format == "nnapi":
        return core, [], None
    return core, [], LazySource(lambda: open_torch_archive(path, options["model_name"]))


def _call_tensors(args: Sequence[Any], kwargs: Mapping[str, Any]) -> list[Any]:
    from torch.utils import _pytree

    return [leaf for leaf in _pytree.tree_flatten((tuple(args), dict(kwargs)))[0] if hasattr(leaf, "detach")]


def _example_list(example_inputs: Sequence[Any] | Mapping[str, Any]) -> list[tuple[str, Any]]:
    if isinstance(example_inputs, Mapping):
        return [(name, _example_array(f"example_inputs: {name!r}", value)) for name, value in example_inputs.items()]
    return [("", _example_array(f"example_inputs: number {i}", value)) for i, value in enumerate(example_inputs)]


def _example_array(place: str, value: Any) -> Any:
    """input_array(); Python's own numbers with a fraction, which have no element type, are float32 as in torch."""
    array = input_array(place, value)
    return array.astype(np.float32) if array.dtype == np.float64 and _is_untyped(value) else array


def _is_untyped(value: Any) -> bool:
    return is_number(value) or is_numbers(value)


def _fitting(place: str, value: Any, spec: TensorSpec) -> Array:
    """The array for one input; numbers without element type take the input's, unless an integer would lose a part."""
    array = np.array(_example_array(place, value))
    if not _is_untyped(value):
        return array
    typed = array.astype(spec.dtype)
    return array if spec.dtype.kind in "iub" and not np.array_equal(typed, array) else typed


def _named_examples(
    inputs: Mapping[str, TensorSpec], example_inputs: Sequence[Any] | Mapping[str, Any]
) -> list[dict[str, Array]]:
    if not example_inputs:
        return []
    names = list(inputs)
    if isinstance(example_inputs, Mapping):
        unknown = [n for n in example_inputs if n not in names]
        if unknown:
            raise _core.InvalidArgument(f"example_inputs: unknown {unknown}; the model takes {names}")
        example = dict(example_inputs)
    else:
        if len(example_inputs) != len(names):
            raise _core.InvalidArgument(f"example_inputs has {len(example_inputs)} arrays, the model takes {names}")
        example = dict(zip(names, example_inputs, strict=True))
    return [{n: _fitting(f"example_inputs: {n!r}", v, inputs[n]) for n, v in example.items()}]


__all__ = ["load"]
