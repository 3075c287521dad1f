"""The graphs of TorchScript, read into plain steps: what runs them needs nothing of torch's graph any more.

Methods stay calls, so that a step knows its module; functions are read with what they call in one graph.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import torch

from pinnace import _core

MOST_STEPS = 1_000_000  # in all graphs of a module
MOST_NESTED = 100  # blocks in each other

_core_torch: Any = torch._C


@dataclass(frozen=True)
class Constant:
    """A tensor that the graphs hold, by its place in Script.tensors."""

    place: int


@dataclass(frozen=True)
class Place:
    """Where a step stands in the source of the module; line 0: nobody knows."""

    file: str
    line: int

    def __str__(self) -> str:
        return f"{self.file}:{self.line}" if self.line else ""


@dataclass(eq=False)
class Block:
    """Steps with the values that they start from and end with."""

    inputs: tuple[int, ...]
    steps: list[Step] = field(default_factory=list)
    outputs: tuple[int, ...] = ()

    @property
    def raises(self) -> bool:
        """Whether it always ends with an exception."""
        return any(step.kind == "prim::RaiseException" for step in self.steps)


@dataclass(eq=False)
class Step:
    """One node. Values are numbers that are unique within a graph."""

    kind: str
    inputs: tuple[int, ...]
    outputs: tuple[int, ...]
    place: Place
    name: str = ""  # of an attribute, a method, a constant or a function of Python
    value: Any = None  # of a constant; the type of an object that is made; sizes of a chunk
    blocks: tuple[Block, ...] = ()
    code: Block | None = None  # of a function or a forked part that is called
    schema: Any = None
    overload: Any = None  # of torch's dispatcher
    owner: str = ""  # of an attribute or method: the type of the object


@dataclass
class Script:
    """The graphs that forward() of a module can reach."""

    methods: dict[tuple[str, str], Block] = field(default_factory=dict)  # by type and name
    tensors: list[torch.Tensor] = field(default_factory=list)
    read: dict[str, set[str]] = field(default_factory=dict)  # attributes that are read, by type
    written: dict[str, set[str]] = field(default_factory=dict)
    kinds: set[str] = field(default_factory=set)  # of all steps
    count: int = 0
    parameters: dict[int, Any] = field(default_factory=dict)  # made of tensors, by their ids


def type_name(module: Any) -> str:
    """Of a torch._C.ScriptModule or ScriptObject."""
    return str(module._type().qualified_name())


def read_script(module: Any, parts: Iterator[Any]) -> Script:
    """module: the torch._C.ScriptModule whose forward() is called; parts: it and what is in it.

    ConversionError: the graphs have more steps, or are nested deeper, than this reader takes.
    """
    reader = _Reader(list(parts))
    reader.method(type_name(module), "forward", module._get_method("forward").graph)
    reader.finish()
    return reader.script


def source_place(node: Any) -> Place:
    """Of a node: the innermost frame outside torch; nowhere, if what the file says of it is damaged: torch reads that
    only now, and it decides nothing.
    """
    try:
        text = node.sourceRange()
    except (RuntimeError, UnicodeDecodeError):
        return Place("", 0)
    frames = re.findall(r'^\s*(?:Serialized\s+)?File "([^"\n]+)", line (\d+)', text, re.MULTILINE)
    frames = frames or re.findall(r"^(\S.*)\((\d+)\): ", text, re.MULTILINE)
    own = [f for f in frames if "/torch/" not in f[0]] or frames
    return Place(own[0][0], int(own[0][1])) if own else Place("", 0)


def check_layout(tensor: torch.Tensor) -> None:
    """Unsupported: its elements are laid out for a library of torch's, whose operators crash on other tensors."""
    if tensor.layout != torch.strided:
        raise _core.Unsupported(
            f"TorchScript with a tensor of layout {str(tensor.layout).removeprefix('torch.')}: load the module as it "
            "was before torch.jit.optimize_for_inference() or to_sparse()"
        )


class _Reader:
    def __init__(self, parts: list[Any]) -> None:
        self.script = Script()
        self._parts = parts
        self._left: list[tuple[str, str, Any]] = []
        self._known: set[tuple[str, str]] = set()
        self._keep: list[Any] = []  # graphs whose nodes are being read

    def method(self, owner: str, name: str, graph: Any) -> None:
        if (owner, name) not in self._known:
            self._known.add((owner, name))
            self._left.append((owner, name, graph))

    def finish(self) -> None:
        while self._left:
            owner, name, graph = self._left.pop()
            self._keep.append(graph)
            self.script.methods[owner, name] = self._graph(graph)
        self._keep.clear()

    def _graph(self, graph: Any) -> Block:
        return self._block(graph, 0)

    def _block(self, block: Any, depth: int) -> Block:
        if depth > MOST_NESTED:
            raise _core.ConversionError(f"TorchScript with blocks nested more than {MOST_NESTED} deep")
        made = Block(tuple(v.unique() for v in block.inputs()))
        for node in block.nodes():
            made.steps.append(self._step(node, depth))
        made.outputs = tuple(v.unique() for v in block.outputs())
        return made

    def _step(self, node: Any, depth: int) -> Step:
        self.script.count += 1
        if self.script.count > MOST_STEPS:
            raise _core.ConversionError(f"TorchScript with more than {MOST_STEPS} nodes")
        kind = node.kind()
        if "mkldnn" in kind.lower() and kind != "prim::is_mkldnn":  # torch crashes where such tensors are not real
            raise _core.Unsupported(
                f"TorchScript with {kind}: load the module as it was before torch.jit.optimize_for_inference()"
            )
        self.script.kinds.add(kind)
        step = Step(
            kind,
            tuple(v.unique() for v in node.inputs()),
            tuple(v.unique() for v in node.outputs()),
            source_place(node),
            blocks=tuple(self._block(b, depth + 1) for b in node.blocks()),
        )
        special = _SPECIAL.get(kind)
        if special is not None:
            special(self, node, step)
        elif not kind.startswith("prim::") or node.schema() != "(no schema)":
            _find_operator(node, step)
        return step

    def _constant(self, node: Any, step: Step) -> None:
        output = node.output()
        if output.type().kind() == "FunctionType":
            step.name = "function"
            return
        try:
            value = output.toIValue()
        except RuntimeError:  # a value without a form in Python
            step.name, step.value = "unknown", str(output.type())
            return
        step.value = self._held(value)

    def _held(self, value: Any) -> Any:
        if isinstance(value, torch.Tensor):
            check_layout(value)
            self.script.tensors.append(value.detach())
            return Constant(len(self.script.tensors) - 1)
        if isinstance(value, (list, tuple)):
            made = [self._held(v) for v in value]
            return made if isinstance(value, list) else tuple(made)
        if isinstance(value, dict):
            return {k: self._held(v) for k, v in value.items()}
        return value

    def _attribute(self, node: Any, step: Step) -> None:
        step.name = node.s("name")
        step.owner = str(next(iter(node.inputs())).type().str())
        table = self.script.read if step.kind == "prim::GetAttr" else self.script.written
        table.setdefault(step.owner, set()).add(step.name)

    def _call_method(self, node: Any, step: Step) -> None:
        step.name = node.s("name")
        kind = next(iter(node.inputs())).type()
        if kind.kind() == "InterfaceType":
            for part in self._parts:
                if part._has_method(step.name):
                    self.method(type_name(part), step.name, part._get_method(step.name).graph)
            return
        step.owner = str(kind.qualified_name())
        if not step.owner.startswith("__torch__.torch.classes."):
            made = _core_torch._create_object_with_type(kind)
            self.method(step.owner, step.name, made._get_method(step.name).graph)

    def _with(self, node: Any, step: Step) -> None:
        """The start or the end of a `with` block."""
        kind = next(iter(node.inputs())).type()
        step.owner, step.name = str(kind.qualified_name()), "__enter__" if step.kind == "prim::Enter" else "__exit__"
        made = _core_torch._create_object_with_type(kind)
        self.method(step.owner, step.name, made._get_method(step.name).graph)

    def _call_function(self, node: Any, step: Step) -> None:
        """Its body: a graph with that call alone, with all calls in it replaced by what they do."""
        graph = _core_torch.Graph()
        inputs = list(node.inputs())
        function = graph.createClone(inputs[0].node(), lambda value: value)
        graph.appendNode(function)
        given = [function.output()]
        for value in inputs[1:]:
            added = graph.addInput()
            added.setType(value.type())
            given.append(added)
        call = graph.create("prim::CallFunction", given, node.outputsSize())
        graph.appendNode(call)
        for made, value in zip(call.outputs(), node.outputs(), strict=True):
            made.setType(value.type())
            graph.registerOutput(made)
        _core_torch._jit_pass_inline(graph)
        self._keep.append(graph)
        step.code = self._graph(graph)
        step.inputs = step.inputs[1:]

    def _create(self, node: Any, step: Step) -> None:
        step.value = node.output().type()

    def _fork(self, node: Any, step: Step) -> None:
        graph = node.g("Subgraph")
        self._keep.append(graph)
        step.code = self._graph(graph)

    def _tuple(self, node: Any, step: Step) -> None:
        step.value = str(node.output().type().str())

    def _chunk(self, node: Any, step: Step) -> None:
        step.value = (node.i("chunks"), node.i("dim"))

    def _isinstance(self, node: Any, step: Step) -> None:
        step.value = [str(t) for t in node.tys("types")]

    def _python(self, node: Any, step: Step) -> None:
        step.name = str(node.pyname())

    def _named_type(self, node: Any, step: Step) -> None:
        step.value = node.output().type().annotation_str


_SPECIAL = {
    "prim::Constant": _Reader._constant,
    "prim::GetAttr": _Reader._attribute,
    "prim::SetAttr": _Reader._attribute,
    "prim::CallMethod": _Reader._call_method,
    "prim::CallFunction": _Reader._call_function,
    "prim::CreateObject": _Reader._create,
    "prim::fork": _Reader._fork,
    "prim::Enter": _Reader._with,
    "prim::Exit": _Reader._with,
    "prim::TupleConstruct": _Reader._tuple,
    "prim::ConstantChunk": _Reader._chunk,
    "prim::isinstance": _Reader._isinstance,
    "prim::PythonOp": _Reader._python,
    "prim::tolist": _Reader._named_type,
    "prim::ListConstruct": _Reader._named_type,
}


def _find_operator(node: Any, step: Step) -> None:
    text = node.schema()
    if text == "(no schema)":
        return
    step.schema = _core_torch.parse_schema(text)
    namespace, _, name = step.kind.partition("::")
    packet = getattr(getattr(torch.ops, namespace, None), name, None)
    step.overload = getattr(packet, step.schema.overload_name or "default", None)


__all__ = ["Block", "Constant", "Place", "Script", "Step", "check_layout", "read_script", "source_place", "type_name"]
