"""Faults of many kinds, planted one at a time into the text form of a converted model, to see whether they are found.

A fault is one edit of one line, or one node more. Which lines it can go to follows from the text; a seed chooses.
"""

from __future__ import annotations

import itertools
import random
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass

ACTIVATIONS = ("relu", "clip", "sigmoid", "tanh", "gelu", "hard_swish", "hard_sigmoid", "silu", "elu", "softplus")
_NODE = re.compile(r"^  (?P<results>%.*?) = (?P<op>\w+)@(?P<version>\d+) (?P<name>\"[^\"]*\") \((?P<inputs>[^)]*)\)")
_CONST = re.compile(r"^  const %(?P<name>\S+) : (?P<type>\w+)\[(?P<shape>[\d,]*)\] = (?P<data>.*)")
_ATTRIBUTES = re.compile(r" \{(?P<text>[^{}]*)\}")


@dataclass(frozen=True)
class Fault:
    """What was done, and the model's text after it."""

    kind: str
    place: str
    text: str


@dataclass(frozen=True)
class _Lines:
    lines: list[str]

    def nodes(self, *ops: str) -> Iterator[tuple[int, re.Match[str]]]:
        for number, line in enumerate(self.lines):
            found = _NODE.match(line)
            if found and (not ops or found["op"] in ops):
                yield number, found

    def weights(self, rank: int, *types: str) -> Iterator[tuple[int, str, str]]:
        """Constants of those types, at least that rank, and more than one element: line, name, type with shape."""
        fine = self.fine()
        for number, line in enumerate(self.lines):
            found = _CONST.match(line)
            if found and found["type"] in types and found["name"] not in fine:
                shape = [int(size) for size in found["shape"].split(",") if size]
                if len(shape) >= rank and max(shape, default=1) > 1:
                    yield number, found["name"], f"{found['type']}[{found['shape']}]"

    def fine(self) -> set[str]:
        """Constants that dequantize one of 32 bits, as biases are: what a step of it is changes nothing that shows."""
        types = {found["name"]: found["type"] for found in map(_CONST.match, self.lines) if found}
        read = [node["inputs"].replace("%", "").split(", ") for _, node in self.nodes("dequantize_linear")]
        return {name for inputs in read if types.get(inputs[0]) == "i32" for name in inputs[1:]}

    def constants(self) -> dict[str, re.Match[str]]:
        return {found["name"]: found for line in self.lines if (found := _CONST.match(line))}

    def changed(self, number: int, *lines: str) -> str:
        return "\n".join([*self.lines[:number], *lines, *self.lines[number + 1 :]])

    def read_as(self, number: int, name: str, other: str, *extra: str) -> str:
        """With the constant of line `number` read under another name, which the `extra` lines behind it make."""
        pattern = re.compile(rf"%{re.escape(name)}(?=[,)\s])")
        later = [
            pattern.sub(f"%{other}", line) if _NODE.match(line) or line.startswith("  output ") else line
            for line in self.lines[number + 1 :]
        ]
        return "\n".join([*self.lines[: number + 1], *extra, *later])


Maker = Callable[[_Lines], Iterator[tuple[str, Callable[[], str]]]]


def _scaled(factor: str, rank: int, most: int = 9, type: str = "f32") -> Maker:
    def make(model: _Lines) -> Iterator[tuple[str, Callable[[], str]]]:
        for number, name, shape in model.weights(rank, type):
            if shape.count(",") >= most:
                continue
            extra = [
                f"  const %fault.factor : {type}[] = {{{factor}}}",
                f'  %fault.value : {shape} = mul@1 "fault" (%{name}, %fault.factor)',
            ]
            yield name, lambda n=number, w=name, e=extra: model.read_as(n, w, "fault.value", *e)  # type: ignore[misc]

    return make


def _swapped_channels(model: _Lines) -> Iterator[tuple[str, Callable[[], str]]]:
    for number, name, shape in model.weights(1, "f32", "f16", "i8", "u8"):
        count = int(re.findall(r"\d+", shape.partition("[")[2])[0])
        values = model.constants()[name]["data"].strip("{}").split(",") if count > 1 else []
        row = len(values) // count
        if not row or values[:row] == values[row : 2 * row]:
            continue
        order = ",".join(map(str, [1, 0, *range(2, count)]))
        extra = [
            f"  const %fault.order : i64[{count}] = {{{order}}}",
            f'  %fault.value : {shape} = gather@1 "fault" (%{name}, %fault.order) {{axis=0}}',
        ]
        yield name, lambda n=number, w=name, e=extra: model.read_as(n, w, "fault.value", *e)  # type: ignore[misc]


def _quantiser(operand: int, change: Callable[[str], str]) -> Maker:
    """Of one quantize_linear or dequantize_linear alone: another scale (operand 1) or zero point (2)."""

    def make(model: _Lines) -> Iterator[tuple[str, Callable[[], str]]]:
        constants, fine = model.constants(), model.fine()
        for number, node in model.nodes("quantize_linear", "dequantize_linear"):
            inputs = node["inputs"].split(", ")
            name = inputs[operand].removeprefix("%") if len(inputs) > operand else ""
            found = constants.get(name)
            if found is None or name in fine:
                continue
            values = ",".join(change(value) for value in found["data"].strip("{}").split(","))
            other = f"  const %fault.value : {found['type']}[{found['shape']}] = {{{values}}}"
            old = ", ".join(inputs)
            inputs[operand] = "%fault.value"
            line = model.lines[number].replace(f"({old})", f"({', '.join(inputs)})", 1)
            yield node["name"], lambda n=number, new=(other, line): model.changed(n, *new)  # type: ignore[misc]

    return make


def _reversed_operands(model: _Lines) -> Iterator[tuple[str, Callable[[], str]]]:
    for number, node in model.nodes("concat"):
        inputs = node["inputs"].split(", ")
        if len(set(inputs)) > 1:
            line = model.lines[number].replace(f"({node['inputs']})", f"({', '.join(reversed(inputs))})", 1)
            yield node["name"], lambda n=number, line=line: model.changed(n, line)  # type: ignore[misc]


def _exchanged_axes(model: _Lines) -> Iterator[tuple[str, Callable[[], str]]]:
    """Two axes of one size, of the input of a transpose: its output has the type that it had."""
    types = dict(re.findall(r"(%\S+) : \w+\[([\d,]*)\] = ", "\n".join(model.lines)))
    for number, node in model.nodes("transpose"):
        found = re.search(r"perm=\[([\d,]*)\]", model.lines[number])
        sizes = types.get(node["inputs"], "").split(",")
        if not found:
            continue
        perm = [int(axis) for axis in found[1].split(",")]
        pairs = [
            (a, b)
            for a, b in itertools.combinations(range(len(perm)), 2)
            if len(sizes) == len(perm) and sizes[perm[a]] == sizes[perm[b]] != "1"
        ]
        for a, b in pairs[:1]:
            perm[a], perm[b] = perm[b], perm[a]
            line = model.lines[number].replace(found[0], f"perm=[{','.join(map(str, perm))}]")
            yield node["name"], lambda n=number, line=line: model.changed(n, line)  # type: ignore[misc]


def _dropped_activation(model: _Lines) -> Iterator[tuple[str, Callable[[], str]]]:
    for number, node in model.nodes(*ACTIVATIONS):
        first = node["inputs"].split(", ")[0]
        line = f"  {node['results']} = identity@1 {node['name']} ({first})"
        yield node["name"], lambda n=number, line=line: model.changed(n, line)  # type: ignore[misc]


def _replaced(old: str, new: str) -> Maker:
    """Another operator with the same inputs and attributes."""

    def make(model: _Lines) -> Iterator[tuple[str, Callable[[], str]]]:
        for number, node in model.nodes(old):
            line = model.lines[number].replace(f"= {old}@{node['version']} ", f"= {new}@1 ", 1)
            yield node["name"], lambda n=number, line=line: model.changed(n, line)  # type: ignore[misc]

    return make


def _attribute(op: str, pattern: str, new: str | Callable[[re.Match[str]], str]) -> Maker:
    """The text of an attribute replaced; one that has its default is not written."""

    def make(model: _Lines) -> Iterator[tuple[str, Callable[[], str]]]:
        for number, node in model.nodes(op):
            line = re.sub(pattern, new, model.lines[number], count=1)
            if line != model.lines[number]:
                yield node["name"], lambda n=number, line=line: model.changed(n, line)  # type: ignore[misc]

    return make


def _swapped_operands(model: _Lines) -> Iterator[tuple[str, Callable[[], str]]]:
    for number, node in model.nodes("sub", "div"):
        a, b = node["inputs"].split(", ")
        line = model.lines[number].replace(f"({a}, {b})", f"({b}, {a})")
        yield node["name"], lambda n=number, line=line: model.changed(n, line)  # type: ignore[misc]


def _kept_state(model: _Lines) -> Iterator[tuple[str, Callable[[], str]]]:
    for number, line in enumerate(model.lines):
        found = re.match(r'  state ("[^"]*") (%\S+) : \S+ next (%\S+) = ', line)
        if found:
            new = line.replace(f"next {found[3]} ", f"next {found[2]} ")
            yield found[1], lambda n=number, line=new: model.changed(n, line)  # type: ignore[misc]


# Those that few networks have come first: a network that gets few faults would not come to them.
KINDS: dict[str, Maker] = {
    "padding moved, larger kernel": _attribute("conv", r"pads=\[2,2,2,2\]", "pads=[1,3,3,1]"),
    "padding moved in one dimension": _attribute(
        "conv", r"pads=\[(\d*[1-9]),\1\]", lambda found: f"pads=[0,{2 * int(found[1])}]"
    ),
    "a larger epsilon of batch norm": _attribute("batch_normalization", r"epsilon=[\d.e+-]+", "epsilon=0.01"),
    "another axis": _attribute("softmax", r"axis=([1-9]\d*)", lambda found: f"axis={int(found[1]) - 1}"),
    "a weight x 1.01": _scaled("1.01", 2),
    "a vector x 1.01": _scaled("1.01", 1, 1),
    "a vector dropped": _scaled("0", 1, 1),
    "a weight's sign": _scaled("-1", 2),
    "swapped channels": _swapped_channels,
    "a dropped activation": _dropped_activation,
    "padding moved": _attribute("conv", r"pads=\[1,1,1,1\]", "pads=[0,2,2,0]"),
    "a larger epsilon": _attribute("layer_normalization", r"epsilon=[\d.e+-]+", "epsilon=0.01"),
    "add for mul": _replaced("mul", "add"),
    "sub for add": _replaced("add", "sub"),
    "average for maximum": _replaced("reduce_mean", "reduce_max"),
    "relu for sigmoid": _replaced("sigmoid", "relu"),
    "silu for gelu": _replaced("gelu", "silu"),
    "tanh for sigmoid": _replaced("sigmoid", "tanh"),
    "swapped operands": _swapped_operands,
    "a state not written": _kept_state,
    "a 16-bit weight x 1.3": _scaled("1.3", 2, type="f16"),
    "a 16-bit vector dropped": _scaled("0", 1, 1, type="f16"),
    "a scale x 1.03": _quantiser(1, lambda value: repr(float(value) * 1.03)),
    "a zero point + 1": _quantiser(2, lambda value: str(int(value) + 1)),
    "another order of parts": _reversed_operands,
    "exchanged axes": _exchanged_axes,
}


def faults(text: str, seed: int, count: int) -> Iterator[Fault]:
    """`count` faults or fewer, no two alike, of all kinds that fit, in turn."""
    chooser = random.Random(seed)
    model = _Lines(text.splitlines())
    left = {kind: list(make(model)) for kind, make in KINDS.items()}
    for places in left.values():
        chooser.shuffle(places)
    made = 0
    while made < count and any(left.values()):
        for kind in [k for k, places in left.items() if places]:
            place, edit = left[kind].pop()
            yield Fault(kind, place, edit() + "\n")
            made += 1
            if made == count:
                return
