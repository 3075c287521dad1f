"""From live PyTorch modules and exported programs to the parts of an archive that the importer reads.

Imports torch only when asked to.
"""

from __future__ import annotations

import contextlib
import operator
import re
import sys
from collections.abc import Mapping, Sequence, Set
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pinnace import _core
from pinnace.progress import phase
from pinnace.torch.caches import without_caches
from pinnace.torch.collection import without_collection
from pinnace.torch.decompositions import own_decompositions
from pinnace.torch.detection import exportable_detectors, takes_images
from pinnace.torch.dynamic_istft import istft_of_dynamic_length
from pinnace.torch.dynamic_pools import pools_of_dynamic_length
from pinnace.torch.export_failure import UNSTATED_RANGE, export_failure, torch_said_quietly
from pinnace.torch.exported_inputs import input_tensors
from pinnace.torch.held_buffers import with_one_buffer
from pinnace.torch.isolation import isolated_inference
from pinnace.torch.module_call import bound_arguments
from pinnace.torch.needless_conversion import conversions_to_the_same
from pinnace.torch.packed_sequences import packed_as_padded
from pinnace.torch.plain_attention import attention_in_parts
from pinnace.torch.whole_recurrent import whole_recurrent
from pinnace.types import Dim

if TYPE_CHECKING:
    import torch

_OVERLAPPING = "lie on one another"  # in the rule that refuses a write into such a view
_INNER_TENSOR = "access_subclass_inner_tensor"  # reads a part of a tensor subclass, as torchao's weights are
# What torch says where a guard does not hold for all sizes, or needs a size that data decide.
_GUARDS = ("Constraints violated", "data-dependent")
MOST_FORMS = 7  # of an export: as asked, with assertions, with hints, and each time that torch finds one more bound


def is_module(value: Any) -> bool:
    """True for nn.Module, without importing torch."""
    torch = sys.modules.get("torch")
    return torch is not None and isinstance(value, torch.nn.Module)


def is_exported(value: Any) -> bool:
    """True for torch.export.ExportedProgram, without importing torch."""
    torch = sys.modules.get("torch")
    return torch is not None and isinstance(value, torch.export.ExportedProgram)


@phase("exporting")
@without_collection()
def export_module(
    module: torch.nn.Module,
    example_inputs: Sequence[Any],
    example_kwargs: Mapping[str, Any],
    dynamic_shapes: Mapping[str, Any] | Sequence[Any] | None,
    notes: list[str] | None = None,
) -> torch.export.ExportedProgram:
    """torch.export.export in eval mode, leaving no trace in the module.

    Tried as asked; then with assertions for guards, if torch says that its guards do not hold for all sizes or depend
    on data; then with the ranges that it suggests, for bounds that nobody gave, or those that it finds itself, if it
    fails to state them. notes: is told which of these served,
    where not the first.
    ConversionError: it cannot be exported; see export_failure().
    """
    args, kwargs = widened(module, example_inputs, example_kwargs, dynamic_shapes)

    def exported(shapes: Any, **options: Any) -> torch.export.ExportedProgram:
        import torch

        with contextlib.ExitStack() as stack:
            stack.enter_context(isolated_inference(module))
            from pinnace.torch.packed_layers import has_packed_layers, packed_as_operators  # imports torch

            traced = stack.enter_context(packed_as_operators(module)) if has_packed_layers(module) else module
            stack.enter_context(without_caches(module, said))
            stack.enter_context(packed_as_padded(said))
            stack.enter_context(attention_in_parts())
            stack.enter_context(pools_of_dynamic_length())
            stack.enter_context(istft_of_dynamic_length())
            stack.enter_context(conversions_to_the_same())
            stack.enter_context(whole_recurrent())
            stack.enter_context(exportable_detectors(said))
            stack.enter_context(torch_said_quietly())
            return torch.export.export(
                traced, args, kwargs, dynamic_shapes=_torch_dims(shapes, hints), strict=False, **options
            )

    said: list[str] = []
    # torchvision's detectors depend on data in any case: one attempt less.
    options: dict[str, Any] = {"prefer_deferred_runtime_asserts_over_guards": True} if takes_images(module) else {}
    first: Exception | None = None
    hints: set[str] = set()  # dimensions of which torch finds the range itself
    for _ in range(MOST_FORMS):
        try:
            program = exported(dynamic_shapes, **options)
        except _core.Error:
            raise
        except Exception as error:
            first = first or error
            if not options and any(words in str(error) for words in _GUARDS):
                options = {"prefer_deferred_runtime_asserts_over_guards": True}
                continue
            if not hints and UNSTATED_RANGE in str(error):
                rows = _dynamic_dims(module, args, kwargs, dynamic_shapes)
                named = [size.name for _, _, size in rows if isinstance(size, Dim) and _is_free(size)]
                hints = {name for name in named if named.count(name) == 1}
                if hints:
                    continue
            narrower, changes = narrowed(dynamic_shapes, str(error))
            if not changes:
                raise export_failure(module, (example_inputs, example_kwargs), (args, kwargs), first) from None
            dynamic_shapes = narrower
            said += changes
        else:
            if hints:
                rows = _dynamic_dims(module, args, kwargs, dynamic_shapes)
                said += _found_ranges(program, [(p, d, s.name) for p, d, s in rows if getattr(s, "name", "") in hints])
            if notes is not None:
                notes += said
            _drop_own_frames(program)
            _add_one_by_one(program)
            return with_one_buffer(program)
    raise _core.ConversionError(f"torch.export narrows the dimensions of {type(module).__name__} without end")


def _drop_own_frames(program: torch.export.ExportedProgram) -> None:
    """From the traces of nodes, whose last frame tells the line of the module's code: functions that stand for torch's
    while it exports are no such code."""
    folder = str(Path(__file__).parents[1])
    own = re.compile(rf'^  File "{re.escape(folder)}/[^\n]*\n(?:    [^\n]*(?:\n|$))*', re.MULTILINE)
    for part in program.graph_module.modules():
        for node in part.graph.nodes if hasattr(part, "graph") else ():
            trace = node.meta.get("stack_trace")
            if trace and folder in trace:
                node.meta["stack_trace"] = own.sub("", trace)


def _add_one_by_one(program: torch.export.ExportedProgram) -> None:
    """torch makes one node of a sum of several sizes, which it cannot save."""
    import torch

    for part in program.graph_module.modules():
        for node in list(part.graph.nodes) if hasattr(part, "graph") else ():
            if node.target is not torch.sym_sum:
                continue
            first, *others = node.args[0] if isinstance(node.args[0], (list, tuple)) else node.args
            total = first
            with part.graph.inserting_before(node):
                for other in others:
                    values = [v.meta["val"] if isinstance(v, torch.fx.Node) else v for v in (total, other)]
                    total = part.graph.call_function(operator.add, (total, other))
                    total.meta = {**node.meta, "val": values[0] + values[1]}
            node.replace_all_uses_with(total)
            part.graph.erase_node(node)


def narrowed(dynamic_shapes: Any, words: str) -> tuple[Any, list[str]]:
    """dynamic_shapes with the ranges that torch suggests in its words, and a sentence for each change.

    Only bounds that are a Dim's defaults are changed. Nothing is, where a suggestion is of another kind: to fix a size,
    for example.
    """
    suggested = words.partition("Suggested fixes:")[2].partition("\n\n")[0].strip().splitlines()
    ranges: dict[str, tuple[int, int | None, int]] = {}
    for line in suggested:
        if found := re.fullmatch(r"\s*(\w+) = Dim\('\w+'(?:, min=(\d+))?(?:, max=(\d+))?\)\s*", line):
            ranges[found[1]] = (int(found[2] or 0), int(found[3]) if found[3] else None, 1)
        elif found := re.fullmatch(r"\s*(\w+) = (\d+)\*_\w+\s*", line):
            ranges[found[1]] = (0, None, int(found[2]))
        else:
            return dynamic_shapes, []
    changes: dict[str, str] = {}

    def convert(value: Any) -> Any:
        if isinstance(value, Dim) and value.name in ranges:
            low, high, k = ranges[value.name]
            own = Dim(value.name)
            free = (
                (low <= value.min or value.min == own.min)
                and (high is None or value.max is None)
                and (k == 1 or value.multiple_of == 1)
            )
            made = (
                replace(
                    value,
                    min=max(value.min, low),
                    max=value.max if high is None else high,
                    multiple_of=max(value.multiple_of, k),
                )
                if free
                else value
            )
            if made != value:
                at_least = f"at least {made.min}" if made.min != value.min else ""
                at_most = f"at most {made.max}" if made.max != value.max else ""
                multiple = f"a multiple of {made.multiple_of}" if made.multiple_of != value.multiple_of else ""
                what = ", ".join(filter(None, (at_least, at_most, multiple)))
                changes[value.name] = f"dimension {value.name!r} is {what}: the module takes no other sizes"
            return made
        if isinstance(value, Mapping):
            return {key: convert(item) for key, item in value.items()}
        if type(value) in (list, tuple):
            return type(value)(convert(item) for item in value)
        return value

    narrower = convert(dynamic_shapes)
    return (narrower, list(changes.values())) if changes.keys() == ranges.keys() else (dynamic_shapes, [])


def _is_free(dim: Dim) -> bool:
    """Whether nobody gave bounds of its own."""
    return dim.min <= 2 and dim.max is None and dim.multiple_of == 1


def _found_ranges(program: torch.export.ExportedProgram, rows: Sequence[tuple[int, int, str]]) -> list[str]:
    """A note for each dimension, (tensor input, dimension, name), of which torch found a range that leaves some out."""
    tensors = input_tensors(program)
    said = []
    for place, dim, name in rows:
        size: Any = tensors[place].shape[dim]
        found = program.range_constraints.get(size.node.expr) if hasattr(size, "node") else None
        if found is None:
            continue
        at_least = f"at least {found.lower}" if found.lower > 2 else ""
        at_most = f"at most {found.upper}" if found.upper.is_finite else ""
        if what := ", ".join(filter(None, (at_least, at_most))):
            said.append(f"dimension {name!r} is {what}: the module takes other sizes in another way")
    return said


def _torch_dims(dynamic_shapes: Any, hints: Set[str] = frozenset()) -> Any:
    """The same nest with pn.Dim turned into torch.export.Dim; a multiple_of k becomes k * Dim, and a smallest size of 0
    becomes 1, the least that torch.export traces. hints: names of those of which torch finds the range.
    InvalidArgument: a Dim has one size."""
    import torch

    made: dict[str, Any] = {}

    def convert(value: Any) -> Any:
        if isinstance(value, Dim) and value.name in hints:
            return torch.export.Dim.DYNAMIC
        if isinstance(value, Dim):
            if value.name not in made:
                k = value.multiple_of
                low, high = -(-value.min // k), None if value.max is None else value.max // k
                if high is not None and low >= high:
                    raise _core.InvalidArgument(
                        f"dynamic_shapes: dimension {value.name!r} has one size, {high * k}: leave it out"
                    )
                base = torch.export.Dim(value.name if k == 1 else f"{value.name}_{k}", min=max(low, 1), max=high)
                made[value.name] = base if k == 1 else k * base
            return made[value.name]
        if isinstance(value, Mapping):
            return {key: convert(item) for key, item in value.items()}
        if isinstance(value, (list, tuple)):
            return type(value)(convert(item) for item in value)
        return value

    return None if dynamic_shapes is None else convert(dynamic_shapes)


def dim_names(
    module: torch.nn.Module,
    example_inputs: Sequence[Any],
    example_kwargs: Mapping[str, Any],
    dynamic_shapes: Any,
) -> list[tuple[int, int, str]]:
    """(tensor input, dimension, name) for every Dim: a saved program has torch's own names, such as s77, only."""
    rows = _dynamic_dims(module, example_inputs, example_kwargs, dynamic_shapes)
    return [(place, dim, size.name if isinstance(size, Dim) else size.__name__) for place, dim, size in rows]


def widened(
    module: torch.nn.Module,
    example_inputs: Sequence[Any],
    example_kwargs: Mapping[str, Any],
    dynamic_shapes: Any,
) -> tuple[tuple[Any, ...], dict[str, Any]]:
    """The example with dimensions of size 1 repeated where a Dim allows more: torch.export takes size 1 for fixed."""
    import torch
    from torch.utils import _pytree

    leaves, spec = _pytree.tree_flatten((tuple(example_inputs), dict(example_kwargs)))
    tensors = [i for i, leaf in enumerate(leaves) if isinstance(leaf, torch.Tensor)]
    for place, dim, size in _dynamic_dims(module, example_inputs, example_kwargs, dynamic_shapes):
        leaf = leaves[tensors[place]]
        if not isinstance(size, Dim) or dim >= leaf.dim() or leaf.shape[dim] != 1:
            continue
        wanted = -(-max(size.min, 2) // size.multiple_of) * size.multiple_of
        if size.max is None or wanted <= size.max:
            leaves[tensors[place]] = leaf.repeat_interleave(wanted, dim)
    args, kwargs = _pytree.tree_unflatten(leaves, spec)
    return args, kwargs


def _dynamic_dims(
    module: torch.nn.Module, example_inputs: Sequence[Any], example_kwargs: Mapping[str, Any], dynamic_shapes: Any
) -> list[tuple[int, int, Any]]:
    """(place among the call's tensors, dimension, pn.Dim or torch's Dim) for every dynamic dimension."""
    import torch
    from torch.utils import _pytree

    # The call's tensors, each replaced by its place among them, in the arguments that the shapes are given for.
    leaves, spec = _pytree.tree_flatten((tuple(example_inputs), dict(example_kwargs)))
    places = iter(range(len(leaves)))
    numbered = [next(places) if isinstance(leaf, torch.Tensor) else None for leaf in leaves]
    args, kwargs = _pytree.tree_unflatten(numbered, spec)
    bound = bound_arguments(module, args, kwargs)
    found: list[tuple[int, int, Any]] = []

    def walk(value: Any, shapes: Any) -> None:
        if isinstance(shapes, Mapping):
            items = list(shapes.items())
        elif isinstance(shapes, (list, tuple)):
            items = list(enumerate(shapes))
        else:
            return
        if isinstance(value, int):
            found.extend((value, int(dim), size) for dim, size in items if isinstance(size, (Dim, torch.export.Dim)))
        elif isinstance(value, Mapping):
            for key, inner in items:
                if key in value:
                    walk(value[key], inner)
        elif isinstance(value, (list, tuple)):
            for key, inner in items:
                if isinstance(key, int) and key < len(value):
                    walk(value[key], inner)

    walk(bound if isinstance(dynamic_shapes, Mapping) else list(bound.values()), dynamic_shapes)
    return found


def exported_parts(program: torch.export.ExportedProgram, name: str) -> list[tuple[str, Any]]:
    """What torch.export.save would write into an archive, as (name in the archive, its bytes), for _core's
    load_torch_program. Weights are arrays over the memory of torch's tensors.

    The text is made by torch's own serialiser. Its comparison with a canonical form, which torch makes to check itself
    and throws away, and its pickles, which the importer never reads, are left out: they take half of the time. Named
    tuples, which torch refuses, are described as dicts of the same leaves.

    ConversionError with torch's words, and `name` for the model, where it serialises the program in no way.
    """
    try:
        return [
            ("archive_format", b"pt2"),
            ("models/model.json", _program_text(program)),
            *_payload_parts("data/weights/", "model_weights_config.json", "weight_", program.state_dict),
            *_payload_parts("data/constants/", "model_constants_config.json", "tensor_", program.constants),
        ]
    except Exception as error:
        text = f"{type(error).__name__}: {error}".strip()
        raise _core.ConversionError(f"{name}: torch.export cannot save it: {text}") from error


def _program_text(program: torch.export.ExportedProgram) -> bytes:
    """models/model.json: the same fields as ExportedProgramSerializer.serialize gives them."""
    import torch
    from torch._export.serde import schema, serialize

    calls = [
        replace(
            entry,
            signature=entry.signature
            and replace(
                entry.signature, in_spec=_plain(entry.signature.in_spec), out_spec=_plain(entry.signature.out_spec)
            ),
        )
        for entry in program.module_call_graph
    ]
    serde: Any = serialize
    with serde._enable_graph_inputs_of_type_nn_module(program.example_inputs):
        program.validate()  # type: ignore[no-untyped-call]
        serializer = serialize.GraphModuleSerializer(program.graph_signature, calls)
        written = schema.ExportedProgram(
            graph_module=serializer.serialize(program.graph_module),
            opset_version={"aten": torch._C._get_max_operator_version()},
            range_constraints=serialize.serialize_range_constraints(program.range_constraints),
            schema_version=schema.SchemaVersion(*schema.SCHEMA_VERSION),
            verifiers=[verifier.dialect for verifier in program.verifiers],
            torch_version=torch.__version__,
            guards_code=program._guards_code,
        )
        return serialize._to_json_bytes(written)


def _payload_parts(folder: str, config_name: str, prefix: str, payloads: Mapping[str, Any]) -> list[tuple[str, Any]]:
    """The config of weights or constants and their storages: tensors of one storage share it, as views of it."""
    import json

    import torch
    from torch._export.serde.serialize import EnumEncoder, _dataclass_to_dict, serialize_tensor_meta
    from torch._subclasses.fake_tensor import FakeTensor

    config: dict[str, Any] = {}
    storages: dict[int, str] = {}  # by address
    parts: list[tuple[str, Any]] = []
    for key, held in payloads.items():
        is_tensor = isinstance(held, torch.Tensor)
        lazy = is_tensor and type(held.data) is torch.Tensor and (held.is_conj() or held.is_neg())
        value = held.detach().resolve_conj().resolve_neg() if lazy else held
        fake = isinstance(value, FakeTensor)
        # Subclasses and objects, which an archive has as pickles: the importer refuses them where they are read.
        pickled = not is_tensor or (not fake and type(value.data) is not torch.Tensor)
        place = ""
        if not pickled:
            storage = None if fake or not value.data_ptr() else value.untyped_storage()
            address = storage.data_ptr() if storage is not None else 0
            place = storages.setdefault(address, f"{prefix}{len(storages)}")
            if len(parts) < len(storages):
                parts.append((folder + place, _storage_bytes(storage)))
        config[key] = {
            "path_name": place,
            "is_param": isinstance(held, torch.nn.Parameter),
            "use_pickle": pickled,
            "tensor_meta": serialize_tensor_meta(value) if is_tensor else None,
        }
    plain = _dataclass_to_dict({"config": config})  # type: ignore[no-untyped-call]
    text = json.dumps(plain, cls=EnumEncoder)
    return [(folder + config_name, text.encode()), *parts]


def _storage_bytes(storage: torch.UntypedStorage | None) -> Any:
    """A storage as an array of bytes that keeps it alive, without a copy where it lies in the host's memory."""
    import torch

    if storage is None:
        return b""
    host = storage if storage.device.type == "cpu" else storage.cpu()  # type: ignore[no-untyped-call]
    return torch.empty(0, dtype=torch.uint8).set_(host).numpy()


def _plain(spec: Any) -> Any:
    """The nest of arguments or outputs with fields' names for those containers that torch has no words for in a file:
    namedtuples, and the tuples of topk, max and sort."""
    from torch.utils import _pytree

    if spec.is_leaf():
        return spec
    children = [_plain(child) for child in spec.children()]
    if hasattr(spec.context, "_fields"):  # a namedtuple, which archives describe by its class
        return _pytree.TreeSpec(dict, list(spec.context._fields), children)
    bare = _pytree.TreeSpec(spec.type, spec.context, [_pytree.tree_structure(0)] * len(children))
    try:
        _pytree.treespec_dumps(bare)
        return _pytree.TreeSpec(spec.type, spec.context, children)
    except (NotImplementedError, TypeError):
        # Of a dataclass the context has the fields that are there, and those that are None.
        context = spec.context if isinstance(spec.context, list | tuple) else ()
        for fields in (context, *context[:1], getattr(spec.type, "__match_args__", ())):
            if isinstance(fields, list | tuple) and len(fields) == len(children) and _are_texts(fields):
                return _pytree.TreeSpec(dict, list(fields), children)
        return _pytree.TreeSpec(tuple, None, children)


def with_ways_out(error: _core.ConversionError) -> _core.ConversionError:
    """The error with a sentence on what its reader can do about nodes that were refused, where there is something."""
    rules = [problem.rule for problem in error.nodes]
    ways = []
    if any(rule.startswith("random numbers differ") for rule in rules):
        ways.append('load(..., random="seeded") draws random numbers from a generator of pinnace\'s, where it has them')
    if any(rule.startswith("operator not mapped") for rule in rules):
        ways.append("write it with other operators, or give its shape rule and code with custom_op()")
    if not ways:
        return error
    told = _core.ConversionError(f"{error}\nWhat can be done: {'; '.join(ways)}.")
    told.nodes = error.nodes
    return told


def decomposed_note(error: _core.ConversionError) -> str:
    """What decompose() does about it, for the notes of a model."""
    if any("autocast" in problem.rule for problem in error.nodes):
        return "autocast regions traced by torch with their casts"
    ops = sorted({problem.op for problem in error.nodes})
    if any(_INNER_TENSOR in op for op in ops):
        return "tensors that hold others (quantised weights) taken apart by torch"
    if any("_functorch" in op for op in ops):
        return "vmap traced by torch on whole batches"
    experts = [op for op in ops if "grouped_mm" in op]
    said = [f"a mixture of experts ({op}): each expert computes all rows, and its own are chosen" for op in experts]
    others = [op for op in ops if op not in experts]
    return "; ".join([*said, *(["decomposed by torch: " + ", ".join(others)] if others else [])])


def _are_texts(values: Sequence[Any]) -> bool:
    return all(isinstance(value, str) for value in values)


def decompose(
    program: torch.export.ExportedProgram, error: _core.ConversionError
) -> torch.export.ExportedProgram | None:
    """The program with only those operators decomposed that the importer did not know; None if that changes nothing.

    Autocast regions, functorch's transforms and tensors that hold others are traced once more with every operator
    kept: that makes casts explicit, vmap() operators on whole batches, and the tensors inside parameters. Writes into
    views whose elements share memory are left as they are: torch would add up what is written to each.
    """
    import torch

    if any(_OVERLAPPING in problem.rule for problem in error.nodes):
        return None
    if any(
        "autocast" in problem.rule or "_functorch" in problem.op or _INNER_TENSOR in problem.op
        for problem in error.nodes
    ):
        return program.run_decompositions({})
    table = {**dict(torch.export.default_decompositions()), **own_decompositions()}
    unknown = set()
    for problem in error.nodes:
        parts = problem.op.split(".")
        if len(parts) < 2:
            return None
        packet = getattr(getattr(torch.ops, parts[0], None), parts[1], None)
        if packet is not None:
            unknown.add(packet)
    chosen = {op: f for op, f in table.items() if getattr(op, "overloadpacket", op) in unknown}
    if not chosen:
        return None
    try:
        return program.run_decompositions(chosen)
    except Exception:  # a decomposition that needs to see data: the operator counts as one that has none
        return None
