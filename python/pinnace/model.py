"""Model: an imported and optimised graph. Model.check(): where it can run. Model.build(): to a verified Program.
StreamModel: one that takes its inputs in chunks."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from pinnace import _core
from pinnace.agreement import tolerance_bounds
from pinnace.cluster import Cluster
from pinnace.files import place_text, printable
from pinnace.inputs.attempts import attempts, facts_of, first_that_runs, ranges_of
from pinnace.inputs.maker import InputMaker, Makings
from pinnace.new_names import new_names
from pinnace.pass_reports import PassReport
from pinnace.preprocessing import Preprocessing, by_input, core_fields, usual_sizes
from pinnace.program import NodeInfo, Program, node_infos
from pinnace.progress import phase
from pinnace.quantize.build import quantized_program
from pinnace.quantize.float16 import float16_program
from pinnace.quantize.options import DynamicInt8, Float16, Int8, WeightOnly
from pinnace.quantize.stored_weights import stored_weights_program
from pinnace.shape_trials import ShapeTrial, shape_trial, sizes_of
from pinnace.sources.base import Source
from pinnace.sources.opened import source_of
from pinnace.sources.preprocessed import PreprocessedSource, Stage, behind, model_inputs
from pinnace.types import Array, TensorSpec, signature, specs_from, texts_by_name, token, whole, words
from pinnace.verify.streams import verify_stream
from pinnace.verify.verification import verify_program

_InChunks = Callable[[_core.Model], _core.Model]


@dataclass(frozen=True)
class CheckNode:
    """One node for one target.

    node, op      its name and operator.
    source        the line of the user's model: "net.py:41"; may be empty.
    module        the submodule that it belongs to: "layers.3.conv1"; may be empty.
    target        as check() was asked for it.
    supported     whether the node can run there.
    rule          id and text of the rule that refuses it; empty where none does.
    value         the value that breaks the rule.
    rewrite       what the node becomes there, where it is rewritten.
    bytes_copied  bytes of its inputs that come from another back end.
    """

    node: str
    op: str
    source: str
    module: str
    target: str
    supported: bool
    rule: str
    value: str
    rewrite: str
    bytes_copied: int


@dataclass(frozen=True)
class CheckReport:
    """Which nodes can run on which target.

    nodes  one row per node and target, in the order of the graph.
    """

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
        for n in rows:
            place = place_text(n.node, n.module, n.source)
            who = f"{n.op} '{n.node}' {place}".rstrip()
            lines.append(printable(f"  {n.target}: {who}: {n.rule}{f': {n.value}' if n.value else ''}"))
        return "\n".join(lines)


class Model:
    """An imported and optimised model. Made by load()."""

    def __init__(
        self,
        core: _core.Model,
        source: Source | None,
        examples: list[dict[str, Array]],
        name: str,
        notes: Sequence[str] = (),
        known_sizes: Callable[[], dict[str, int]] = dict,
    ) -> None:
        """Made by load().

        core         the extension's model.
        source       what runs the model that it was imported from; None where nothing does.
        examples     inputs to verify on.
        name         of the source, for messages and metadata.
        notes        what a user should know of the import beside what `core` says.
        known_sizes  gives sizes of dynamic dimensions that the source's file says its example had.
        """
        self._core = core
        self._source = source
        self._examples = examples
        self._name = name
        self._notes = list(notes)
        self._known_sizes = known_sizes
        # What was put before the model that was loaded, and the names of the inputs that this has.
        self._stages: tuple[Stage, ...] = ()
        self._own_inputs: tuple[str, ...] = ()

    def __repr__(self) -> str:
        """Name, number of nodes, inputs and outputs."""
        if not hasattr(self, "_core"):  # while its making fails, a debugger may ask
            return f"<pinnace.{type(self).__name__}, not made>"
        nodes = len(self._core.nodes)
        return f"<pinnace.Model {printable(self._name)}: {nodes} nodes, {signature(self.inputs, self.outputs)}>"

    def _repr_html_(self) -> str:
        """For notebooks: inputs and outputs, the graph in groups, and what the passes did."""
        from pinnace.html.notebook import model_html

        return model_html(self)

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
        return node_infos(self._core.nodes)

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
        """The graph's text form; constants longer than `max_constant_bytes` appear as a hash."""
        return self._core.text(whole("max_constant_bytes", max_constant_bytes, 0, (1 << 63) - 1))

    def try_shapes(
        self,
        shapes: Sequence[Sequence[int]],
        *,
        details: bool = False,
        contents: Sequence[tuple[int, Sequence[int]]] = (),
    ) -> ShapeTrial:
        """What the shape rules say at given sizes of the inputs. Nothing runs; ranges of dimensions are not looked at.

        shapes    one list of sizes per input, in order.
        details   True: the trial also has every node and value.
        contents  (place of an input, its integers in order), for inputs by which the graph branches.

        InvalidArgument: another number of inputs, another rank, a negative size, or one that differs from a fixed one;
        contents that the input cannot have.
        """
        return shape_trial(self._core.try_shapes(sizes_of(shapes), details, contents))

    def preprocessed(self, preprocess: Preprocessing | Mapping[str, Preprocessing]) -> Model:
        """The model that makes its input of a picture, as preprocess() describes it, by nodes of its graph. build()
        holds it against the same source behind the same work in numpy; `reference` there is the model without it.

        preprocess  what pn.preprocess() gives, for the only input of rank 3 or 4; or a dict input name -> such.

        Examples keep what they have for other inputs. The program's metadata say what its new inputs are:
        "input.<name>", "preprocessing.<input of the model>".

        InvalidArgument: the description does not fit the model (names field, rule and value), or an input is unknown.
        """
        model = self
        for name, how in by_input(preprocess, list(self.inputs)).items():
            model = model._with_picture(name, how)
        return model

    def _with_picture(self, name: str, how: Preprocessing) -> Model:
        old = self.inputs
        pictures = {picture for stage in self._stages for picture in stage.how.input_names}
        meant = [name] if name else [n for n, spec in old.items() if len(spec.shape) in (3, 4)]
        if len(meant) == 1 and meant[0] in pictures:
            raise _core.InvalidArgument(
                f"preprocessed(): input {meant[0]!r} is the picture of an earlier preprocessed(); one description has "
                "all that is done to a picture"
            )
        core = self._core.preprocessed(core_fields(how), name)
        new = specs_from(core.inputs, core.symbols)
        place = next(i for i, known in enumerate(new) if known == how.input_names[0])
        spec = list(old.values())[place]
        stage = Stage(how, place, spec)
        examples = [{key: array for key, array in example.items() if key != spec.name} for example in self._examples]
        sizes = self._known_sizes
        model = Model(
            core,
            None if self._source is None else PreprocessedSource(self._source, stage),
            [example for example in examples if example],
            self._name,
            self._notes,
            lambda: usual_sizes(how, new, sizes()),
        )
        model._stages = (*self._stages, stage)
        model._own_inputs = self._own_inputs or tuple(old)
        return model

    def _reference_source(self, reference: Any, arrays: Mapping[str, Array]) -> Source:
        """What `reference`, a form of the model as it was loaded, gives on inputs of this one."""
        if not self._stages:
            return source_of(reference, arrays)
        return behind(source_of(reference, model_inputs(arrays, self._stages, self._own_inputs)), self._stages)

    def check(self, targets: str | Sequence[str] = ("cpu",)) -> CheckReport:
        """Whether each node can run on each target. Needs no device.

        targets  one, or several: "cpu", "vulkan", "metal", "nnapi:29". Off Apple's systems a back end whose lowering
                 it shares answers for "metal".

        InvalidArgument: unknown target.
        """
        targets = words("targets", targets)
        return CheckReport([CheckNode(**row) for row in self._core.check(targets)])

    def build(
        self,
        targets: str | Sequence[str] = ("cpu",),
        quantize: Int8 | WeightOnly | DynamicInt8 | Float16 | None = None,
        verify: bool = True,
        *,
        examples: Sequence[Mapping[str, Any]] = (),
        reference: Any = None,
        tolerance: float | Mapping[str, float] | None = None,
        input_names: Sequence[str] | Mapping[str, str] | None = None,
        output_names: Sequence[str] | Mapping[str, str] | None = None,
        metadata: Mapping[str, str] | None = None,
        cancel: _core.CancelToken | None = None,
    ) -> Program:
        """Compiles, writes, reads back, and holds the result against the source model on every target that can run
        here, on the examples and a second input beside the first; on the first once more at other sizes, where sizes
        are dynamic. docs/verification.md says when values count as equal. Where equal ones prove nothing, metadata
        "verified" begins with "inconclusive".

        targets   those that name a level get their weights laid out in the file: cpu:avx2, nnapi:29.
        examples  inputs to verify on; else those of load(). What they leave out is made up: sizes that pass every shape
                  rule, the smallest and usual ones, and seeded contents, integers by what reads them. The metadata say
                  what was made up, under `made_up.`, and which sizes the graph was found to take, under `range.`; the
                  program's dimensions have these ranges.
        reference what to hold the program against instead of its source: the module that an ONNX file was exported
                  from, for instance; anything that compare() takes.
        tolerance bound on the difference relative to an output's largest magnitude, wider or narrower than the stated
                  ones, in whose place it is: a number for all floating-point types, or a dict dtype name -> number.
                  The metadata say it as "verified.tolerance".
        input_names   names of the program's inputs: a list with one for each in order, or a dict old name -> new name,
                  which leaves the others as they are. `examples` and `reference` go by the names of this model.
        output_names  the same for its outputs.
        quantize  Int8(...): weights and activations become 8-bit integers, by ranges that runs on samples show.
                  WeightOnly(...): weights become integers of 8 or 4 bits, arithmetic stays in float. DynamicInt8(...):
                  products by constant weights are of 8-bit integers, activations rounded row by row at run time.
                  Float16(...): constants and arithmetic in float16. The float program is verified first; integers
                  are held against the floats that they stand for, float16 against float32. Program.quantization is
                  the report.
        verify    False skips the comparison; the file records that, and `inspect` shows it.
        metadata  further facts to record in the file, text by name.
        cancel    a CancelToken that ends the build with Cancelled; a run of the source is waited for.

        VerificationError names the first layer that differs. Unsupported: nothing here can run the source.
        InvalidArgument: unknown target, examples that do not fit the inputs, weights of the source module that were
        written to after load(), a tolerance that is negative, NaN, 1 or more, 0 for floats or for a dtype that does not
        exist, or names that are unknown, empty, not printable, longer than 200 characters, of two inputs or outputs, or
        not as many as there are.
        """
        self._check_quantize(quantize)
        _check_examples(examples)
        targets = words("targets", targets)
        facts = {"source": self._name, **texts_by_name("metadata", metadata or {})}
        bounds = tolerance_bounds(tolerance)
        core, renamed = self._named_core(input_names, output_names)
        with _core.CancelScope(token(cancel)):
            if not verify:
                facts["verified"] = "no: verify=False"
                if quantize is not None:
                    return self._quantized(core, quantize, targets, facts, [], renamed)
                return _built(core, targets, facts)
            maker = self._input_maker()
            makings = [maker.make(example) for example in examples or self._examples or [{}]]
            core = self._with_ranges(core, makings)
            first = next(attempts(makings))
            program = _built(core, targets, {**facts, **facts_of(makings, first, renamed)})
            source = self._source if reference is None else self._reference_source(reference, first[0].arrays)

            def verified(program: Program, inputs: list[dict[str, Array]]) -> Program:
                named = [{renamed.get(name, name): array for name, array in arrays.items()} for arrays in inputs]
                return self._verified(program, source, named, targets, bounds)

            done = first_that_runs(program, makings, verified, renamed)
            if quantize is None:
                return done
            named = [{renamed.get(name, name): array for name, array in made.arrays.items()} for made in first]
            kept = {key: value for key, value in done.metadata.items() if key not in ("producer", "targets")}
            facts = {key.replace("verified", "float.verified", 1): value for key, value in kept.items()}
            return self._quantized(core, quantize, targets, facts, named, renamed)

    def _named_core(self, input_names: Any, output_names: Any) -> tuple[_core.Model, dict[str, str]]:
        """The extension's model with the names that a caller wants, and the inputs' new names by the old ones."""
        inputs, outputs = list(self.inputs), list(self.outputs)
        chosen = new_names("input_names", "input", inputs, input_names)
        results = new_names("output_names", "output", outputs, output_names)
        if (chosen, results) == (inputs, outputs):
            return self._core, {}
        return self._core.with_names(chosen, results), dict(zip(inputs, chosen, strict=True))

    def _check_quantize(self, options: object) -> None:
        if options is not None and not isinstance(options, Int8 | WeightOnly | DynamicInt8 | Float16):
            kind = type(options).__name__
            raise _core.InvalidArgument(
                f"quantize must be None, Int8(...), WeightOnly(...), DynamicInt8(...) or Float16(...), is {kind}"
            )
        if isinstance(options, Int8) and options.client is not None:
            Cluster(options.client)  # before anything is built

    def _input_maker(self) -> InputMaker:
        """Of what examples leave out."""
        return InputMaker(self.inputs, self, self._known_sizes)

    def _with_ranges(self, core: _core.Model, makings: Sequence[Makings]) -> _core.Model:
        """With the ranges of dynamic dimensions that making examples has found."""
        return core.with_ranges(ranges) if (ranges := ranges_of(makings)) else core

    def _verified(
        self,
        program: Program,
        source: Source | None,
        inputs: Sequence[Mapping[str, Array]],
        targets: Sequence[str],
        bounds: Mapping[str, float] | None,
    ) -> Program:
        return verify_program(program, source, inputs, targets, bounds)

    def _quantized(
        self,
        core: _core.Model,
        options: Int8 | WeightOnly | DynamicInt8 | Float16,
        targets: list[str],
        facts: Mapping[str, str],
        examples: Sequence[Mapping[str, Any]],
        names: Mapping[str, str],
    ) -> Program:
        """core: as _named_core() gave it, and the inputs' new names with it."""
        whole, in_chunks = self._whole_of(core, names)
        if isinstance(options, Float16):
            return float16_program(whole, options, targets, facts, examples, in_chunks)
        if isinstance(options, WeightOnly | DynamicInt8):
            return stored_weights_program(whole, options, targets, facts, examples, names, in_chunks)
        return quantized_program(whole, options, targets, facts, examples, names, in_chunks)

    def _whole_of(self, core: _core.Model, names: Mapping[str, str]) -> tuple[_core.Model, _InChunks | None]:
        """What takes the whole, and what makes a model that takes chunks of one that does; None: it has no chunks."""
        return core, None


def _check_examples(examples: Any) -> None:
    """InvalidArgument: what build() was given is no list of dicts."""
    several = examples if isinstance(examples, Sequence) and not isinstance(examples, str | bytes) else None
    wrong = [examples] if several is None else [one for one in several if not isinstance(one, Mapping)]
    if wrong:
        where = "" if several is None else f" in a {type(examples).__name__}"
        raise _core.InvalidArgument(
            f"build: examples must be a list of dicts of input names and arrays, is {type(wrong[0]).__name__}{where}"
        )


@phase("building")
def _built(core: _core.Model, targets: list[str], facts: dict[str, str]) -> Program:
    return Program(core.build(targets, facts))


class StreamModel(Model):
    """A model whose programs take chunks. Made by load(stream=...); what it says of nodes and types is the chunks'."""

    def __init__(self, whole: Model, streams: Mapping[str, int]) -> None:
        """whole: the model of the whole sequence, which verification runs. streams: input name -> axis.

        InvalidArgument: an input or axis is not there, or has a fixed size. ConversionError: `.nodes` has every node
        that needs what is not there yet, or that has no rule.
        """
        core = whole._core.streamed(list(streams.items()))
        super().__init__(core, whole._source, whole._examples, whole._name, whole._notes, whole._known_sizes)
        self._whole, self._streams = whole, dict(streams)

    def preprocessed(self, preprocess: Any) -> Model:
        """InvalidArgument: a picture does not come in chunks."""
        raise _core.InvalidArgument("preprocessed(): the model takes its inputs in chunks, which a picture is not")

    # build() takes whole examples, which the source runs as they are and the program in chunks of several sizes; what
    # comes out of these, joined, is held against the source's outputs, the end included.

    def _named_core(self, input_names: Any, output_names: Any) -> tuple[_core.Model, dict[str, str]]:
        whole, renamed = self._whole._named_core(input_names, output_names)
        return self._core if whole is self._whole._core else self._in_chunks(whole, renamed), renamed

    def _in_chunks(self, whole: _core.Model, renamed: Mapping[str, str]) -> _core.Model:
        return whole.streamed([(renamed.get(name, name), axis) for name, axis in self._streams.items()])

    def _whole_of(self, core: _core.Model, names: Mapping[str, str]) -> tuple[_core.Model, _InChunks | None]:
        results = [spec["name"] for spec in core.outputs]
        whole, _ = self._whole._named_core(names, dict(zip(self.outputs, results, strict=True)))
        return whole, lambda made: self._in_chunks(made, names)

    def _input_maker(self) -> InputMaker:
        return self._whole._input_maker()

    def _with_ranges(self, core: _core.Model, makings: Sequence[Makings]) -> _core.Model:
        return core  # those of the whole are none of the chunks'

    def _verified(
        self,
        program: Program,
        source: Source | None,
        inputs: Sequence[Mapping[str, Array]],
        targets: Sequence[str],
        bounds: Mapping[str, float] | None,
    ) -> Program:
        return verify_stream(program, source, inputs, targets, bounds)


__all__ = ["CheckNode", "CheckReport", "Model", "StreamModel"]
