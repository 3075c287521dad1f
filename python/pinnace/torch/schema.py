"""What of a .pt2 file's JSON torch may be given: every field that is copied, with what it may hold.

A Kind takes a value of the file and returns what is written in its place, or raises Refusal. Fields that are not listed
are left out. Nothing that torch evaluates, looks up by name or writes into Python source passes unless it is listed: it
makes source code of the names of nodes, inputs and keywords, calls what a node's target names, evaluates sizes, and
unpickles what rows say are pickles.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from typing import Any

import numpy as np

from pinnace.torch.expression import ExpressionError, reprinted

MAX_GRAPH_DEPTH = 32
MAX_TEXT = 64 * 1024
STRIDED = 7
TYPE_NUMBERS = {
    "uint8": 1,
    "int8": 2,
    "int16": 3,
    "int32": 4,
    "int64": 5,
    "float16": 6,
    "float32": 7,
    "float64": 8,
    "complex64": 10,
    "complex128": 11,
    "bool": 12,
    "bfloat16": 13,
    "uint16": 28,
    "uint32": 34,
    "uint64": 35,
}
"""torch's numbers of element types: those that the importer reads, and complex64 and complex128."""
SCALAR_TYPES = {n: 2 if name == "bfloat16" else np.dtype(name).itemsize for name, n in TYPE_NUMBERS.items()}
"""Bytes of an element by the number of its type."""
BOOL = TYPE_NUMBERS["bool"]

Kind = Callable[[Any], Any]

_IDENTIFIER = re.compile(r"[A-Za-z_][A-Za-z0-9_]{0,254}", re.ASCII)
_MODULE_PATH = re.compile(r"[A-Za-z0-9_.\[\]]{1,500}", re.ASCII)
_FRAME = re.compile(r'File "([^"\n\r]{1,500})", line (\d{1,8}), in')

# Functions on sizes that are no operators of torch.ops; all but getitem are those of the importer's table.
_OPERATOR = "add and_ eq floordiv ge getitem gt le lt mod mul ne neg or_ pos pow sub truediv"
_SYMBOLIC = "_sym_sqrt sym_float sym_int sym_ite sym_max sym_min sym_not sym_sqrt"
_HIGHER_ORDER = "cond map_impl scan while_loop wrap_with_autocast wrap_with_set_grad_enabled"
FUNCTIONS = frozenset(
    [f"_operator.{name}" for name in _OPERATOR.split()]
    + [f"math.{name}" for name in ("ceil", "floor", "trunc")]
    + [f"torch.{name}" for name in _SYMBOLIC.split()]
)
HIGHER_ORDER = frozenset(_HIGHER_ORDER.split())


class Refusal(Exception):
    """A value that is not passed on: where it stands, and the rule."""

    def __init__(self, rule: str) -> None:
        super().__init__(rule)
        self.rule = rule
        self.place: list[str] = []

    def within(self, part: str) -> Refusal:
        """The same, one level further out."""
        self.place.insert(0, part)
        return self

    def __str__(self) -> str:
        """`graph.nodes[3].target: …`."""
        return f"{'.'.join(self.place).replace('.[', '[')}: {self.rule}"


# ------------------------------------------------------------------------------------------------------------ one value


def shown(value: Any) -> str:
    """At most 60 characters of it, printable."""
    return ascii(value)[:60] if isinstance(value, (str, int, float, bool, type(None))) else type(value).__name__


def whole(value: Any) -> int:
    """An integer of 64 bits."""
    if isinstance(value, bool) or not isinstance(value, int) or not -(2**63) <= value < 2**63:
        raise Refusal(f"{shown(value)} is no 64-bit integer")
    return value


def real(value: Any) -> float | int | str:
    """A number, or the words that stand for those that JSON cannot write."""
    if value in ("Infinity", "-Infinity", "NaN"):
        return str(value)
    if isinstance(value, bool) or not isinstance(value, (int, float)) or abs(value) > 2**64:
        if isinstance(value, float) and value == value and abs(value) != float("inf"):
            return value
        raise Refusal(f"{shown(value)} is no number")
    return value


def truth(value: Any) -> bool:
    """True or False."""
    if not isinstance(value, bool):
        raise Refusal(f"{shown(value)} is neither true nor false")
    return value


def text(value: Any) -> str:
    """Any text: where it is written into source code, it is written as a literal."""
    if not isinstance(value, str) or len(value) > MAX_TEXT or not value.isprintable():
        raise Refusal(f"{shown(value)} is no text of at most {MAX_TEXT} printable characters")
    return value


def identifier(value: Any) -> str:
    """A name that becomes one in Python source."""
    if not isinstance(value, str) or not _IDENTIFIER.fullmatch(value):
        raise Refusal(f"{shown(value)} is no identifier")
    return value


def one_of(allowed: Iterable[Any]) -> Kind:
    """One of the listed values."""
    values = frozenset(allowed)

    def kind(value: Any) -> Any:
        if isinstance(value, bool) or not isinstance(value, (int, str)) or value not in values:
            raise Refusal(f"{shown(value)} is none of those that are read")
        return value

    return kind


def always(value: Any) -> Kind:
    """Whatever stands there is replaced."""
    return lambda _: value


def refused(what: str) -> Kind:
    """A form that is never passed on."""

    def kind(value: Any) -> Any:
        raise Refusal(f"{what} is not read")

    return kind


# ------------------------------------------------------------------------------------------------------ composed values


def maybe(kind: Kind) -> Kind:
    """The same, or null."""
    return lambda value: None if value is None else kind(value)


def listing(kind: Kind) -> Kind:
    """A list of such."""

    def check(value: Any) -> list[Any]:
        if not isinstance(value, list):
            raise Refusal(f"{shown(value)} is no list")
        made = []
        for i, item in enumerate(value):
            try:
                made.append(kind(item))
            except Refusal as error:
                raise error.within(f"[{i}]") from None
        return made

    return check


def table(key: Kind, kind: Kind) -> Kind:
    """An object with such keys and values."""

    def check(value: Any) -> dict[str, Any]:
        if not isinstance(value, dict):
            raise Refusal(f"{shown(value)} is no object")
        made = {}
        for name, item in value.items():
            try:
                made[key(name)] = kind(item)
            except Refusal as error:
                raise error.within(shown(name)) from None
        return made

    return check


REQUIRED = object()


def record(fields: Mapping[str, tuple[Kind, Any]]) -> Kind:
    """An object with these fields: (kind, what stands there if the file has none; REQUIRED: the file must)."""

    def check(value: Any) -> dict[str, Any]:
        if not isinstance(value, dict):
            raise Refusal(f"{shown(value)} is no object")
        made = {}
        for name, (kind, missing) in fields.items():
            if name not in value:
                if missing is REQUIRED:
                    raise Refusal(f"there is no field {name!r}")
                made[name] = missing
                continue
            try:
                made[name] = kind(value[name])
            except Refusal as error:
                raise error.within(name) from None
        return made

    return check


def required(**kinds: Kind) -> Kind:
    """record() of fields that the file must have."""
    return record({name: (kind, REQUIRED) for name, kind in kinds.items()})


def union(**kinds: Kind) -> Kind:
    """An object with exactly one of these keys."""

    def check(value: Any) -> dict[str, Any]:
        if not isinstance(value, dict) or len(value) != 1:
            raise Refusal(f"{shown(value)} is no object with one key")
        ((name, item),) = value.items()
        if name not in kinds:
            raise Refusal(f"{shown(name)} is not read")
        try:
            return {name: kinds[name](item)}
        except Refusal as error:
            raise error.within(name) from None

    return check


# ---------------------------------------------------------------------------------------------------- the whole program


def trace_of(value: Any) -> str:
    """A stack trace of one frame, the last that is not torch's own: file and line, without the source line."""
    if not isinstance(value, str):
        return ""
    frames = [f for f in _FRAME.findall(value[-MAX_TEXT:]) if "-packages/torch/" not in f[0] and f[0].isprintable()]
    return f'File "{frames[-1][0]}", line {frames[-1][1]}, in forward\n    code\n' if frames else ""


def module_stack_of(value: Any) -> str:
    """The innermost module, with the number of its call: "L__self__a_b@1,a.b,torch.nn.Module"."""
    parts = value.rsplit(";", 1)[-1].split(",") if isinstance(value, str) and len(value) <= MAX_TEXT else []
    if len(parts) < 2 or not _MODULE_PATH.fullmatch(parts[1]):
        return ""
    key, path = re.sub(r"[^A-Za-z0-9_]", "_", parts[1]), re.sub(r"[\[\]]", "", parts[1])
    call = re.search(r"@\d{1,6}", parts[0])
    return f"L__self__{key}{call[0] if call else ''},{path},torch.nn.Module"


def metadata(value: Any) -> dict[str, str]:
    """Of a node: where in the source it comes from. torch looks up all else as names of classes and functions."""
    value = value if isinstance(value, dict) else {}
    made = {
        "stack_trace": trace_of(value.get("stack_trace")),
        "nn_module_stack": module_stack_of(value.get("nn_module_stack")),
    }
    return {key: item for key, item in made.items() if item}


class ProgramSchema:
    """The Kinds of one program. `target` decides which operators pass; `symbols` collects the names in its sizes."""

    def __init__(self, target: Kind, weight_name: Kind) -> None:
        """`weight_name` gives parameters, buffers and constants the names that torch knows them by."""
        self.symbols: set[str] = set()
        self._depth = 0
        expression = record(
            {
                "expr_str": (self._expression, REQUIRED),
                "hint": (maybe(union(as_int=whole, as_bool=truth, as_float=real)), None),
            }
        )
        size = union(as_expr=expression, as_int=whole)
        device = always({"type": "cpu", "index": None})
        self.meta = record(
            {
                "dtype": (one_of(SCALAR_TYPES), REQUIRED),
                "sizes": (listing(size), REQUIRED),
                "requires_grad": (always(False), False),
                "device": (device, REQUIRED),
                "strides": (listing(size), REQUIRED),
                "storage_offset": (size, REQUIRED),
                "layout": (one_of([STRIDED]), REQUIRED),
            }
        )
        named = required(name=identifier)
        sym_int = union(as_name=identifier, as_int=whole)
        sym_float = union(as_name=identifier, as_float=real)
        sym_bool = union(as_name=identifier, as_bool=truth)
        optional_tensor = union(as_tensor=named, as_none=truth)
        argument = union(
            as_none=truth,
            as_tensor=named,
            as_tensors=listing(named),
            as_int=whole,
            as_ints=listing(whole),
            as_float=real,
            as_floats=listing(real),
            as_string=text,
            as_strings=listing(text),
            as_sym_int=sym_int,
            as_sym_ints=listing(sym_int),
            as_scalar_type=one_of(SCALAR_TYPES),
            as_memory_format=one_of([1, 2, 3, 4]),
            as_layout=one_of([STRIDED]),
            as_device=device,
            as_bool=truth,
            as_bools=listing(truth),
            as_sym_bool=sym_bool,
            as_sym_bools=listing(sym_bool),
            as_graph=required(name=identifier, graph=self._graph),
            as_optional_tensors=listing(optional_tensor),
            as_optional_tensor=optional_tensor,
            as_sym_float=sym_float,
            as_sym_floats=listing(sym_float),
            as_complex=required(real=real, imag=real),
            as_custom_obj=refused("a custom object"),
            as_operator=refused("an operator as an argument"),
        )
        keyword = record(
            {"name": (maybe(self._keyword), ""), "arg": (argument, REQUIRED), "kind": (maybe(one_of([1, 2])), None)}
        )
        node = record(
            {
                "target": (target, REQUIRED),
                "inputs": (listing(keyword), REQUIRED),
                "outputs": (listing(argument), REQUIRED),
                "metadata": (metadata, {}),
                "is_hop_single_tensor_return": (maybe(truth), None),
                "name": (maybe(identifier), None),
            }
        )
        self._inner = record(
            {
                "inputs": (listing(argument), REQUIRED),
                "outputs": (listing(argument), REQUIRED),
                "nodes": (listing(node), REQUIRED),
                "tensor_values": (table(identifier, self.meta), REQUIRED),
                "sym_int_values": (table(identifier, size), REQUIRED),
                "sym_bool_values": (table(identifier, union(as_expr=expression, as_bool=truth)), REQUIRED),
                "is_single_tensor_return": (truth, False),
                "custom_obj_values": (always({}), {}),
                "sym_float_values": (table(identifier, union(as_expr=expression, as_float=real)), {}),
            }
        )
        constant = union(as_none=truth, as_int=whole, as_float=real, as_string=text, as_bool=truth)
        inputs = union(
            user_input=required(arg=argument),
            parameter=required(arg=named, parameter_name=weight_name),
            buffer=required(arg=named, buffer_name=weight_name, persistent=truth),
            tensor_constant=required(arg=named, tensor_constant_name=weight_name),
            constant_input=required(name=identifier, value=constant),
        )
        outputs = union(
            user_output=required(arg=argument),
            buffer_mutation=required(arg=named, buffer_name=weight_name),
            user_input_mutation=required(arg=named, user_input_name=identifier),
            parameter_mutation=required(arg=named, parameter_name=weight_name),
        )
        self._program = required(
            graph_module=required(
                graph=self._graph,
                signature=required(input_specs=listing(inputs), output_specs=listing(outputs)),
            ),
            schema_version=required(major=one_of([8])),
        )
        self._range = required(min_val=self._bound, max_val=self._bound)

    def program(self, value: Any) -> dict[str, Any]:
        """The program: graph, signature and ranges; what else torch wants is the caller's to write."""
        made: dict[str, Any] = self._program(value)
        ranges = value.get("range_constraints", {})
        if not isinstance(ranges, dict):
            raise Refusal(f"range_constraints: {shown(ranges)} is no object")
        made["range_constraints"] = {n: self._range(r) for n, r in ranges.items() if n in self.symbols}
        verifiers = value.get("verifiers")
        training = isinstance(verifiers, list) and "TRAINING" in verifiers
        made["verifiers"] = ["TRAINING" if training else "ATEN"]
        return made

    def _expression(self, value: Any) -> str:
        if not isinstance(value, str):
            raise Refusal(f"{shown(value)} is no text")
        try:
            return reprinted(value, self.symbols)
        except ExpressionError as error:
            raise Refusal(f"symbolic size: {error}") from None

    @staticmethod
    def _keyword(value: Any) -> str:
        return "" if value == "" else identifier(value)

    @staticmethod
    def _bound(value: Any) -> int | None:
        """Bounds beyond 64 bits are none."""
        if value is None or isinstance(value, bool) or not isinstance(value, int):
            return None
        return value if -(2**63) < value < 2**63 - 1 else None

    def _graph(self, value: Any) -> dict[str, Any]:
        if self._depth > MAX_GRAPH_DEPTH:
            raise Refusal(f"graphs are nested more than {MAX_GRAPH_DEPTH} deep")
        self._depth += 1
        try:
            made: dict[str, Any] = self._inner(value)
            return made
        finally:
            self._depth -= 1


def file_schema(schema: ProgramSchema) -> Kind:
    """Of data/weights and data/constants: rows by name."""
    row = record(
        {
            "path_name": (text, REQUIRED),
            "is_param": (truth, False),
            "use_pickle": (truth, False),
            "tensor_meta": (maybe(schema.meta), None),
        }
    )
    return required(config=table(text, row))


__all__ = [
    "BOOL",
    "FUNCTIONS",
    "HIGHER_ORDER",
    "SCALAR_TYPES",
    "STRIDED",
    "TYPE_NUMBERS",
    "ProgramSchema",
    "Refusal",
    "file_schema",
    "identifier",
    "shown",
]
