"""Faults of many kinds, planted one at a time into the text form of a converted model, to see whether they are found.

A fault is one edit of one line, or one node more. Which lines it can go to follows from the text; a seed chooses.
"""

from __future__ import annotations

import random
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass

ACTIVATIONS = ("relu", "clip", "sigmoid", "tanh", "gelu", "hard_swish", "hard_sigmoid", "silu", "elu", "softplus")
_NODE = re.compile(r"^  (?P<results>%.*?) = (?P<op>\w+)@(?P<version>\d+) (?P<name>\"[^\"]*\") \((?P<inputs>[^)]*)\)")
_CONST = re.compile(r"^  const %(?P<name>\S+) : f32\[(?P<shape>[\d,]*)\] = ")
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

    def weights(self, rank: int) -> Iterator[tuple[int, str, list[int]]]:
        """Float constants of at least that rank, and more than one element, that a node reads."""
        for number, line in enumerate(self.lines):
            found = _CONST.match(line)
            if found:
                shape = [int(size) for size in found["shape"].split(",") if size]
                if len(shape) >= rank and max(shape, default=1) > 1:
                    yield number, found["name"], shape

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


def _scaled(factor: str, rank: int, most: int = 9) -> Maker:
    def make(model: _Lines) -> Iterator[tuple[str, Callable[[], str]]]:
        for number, name, shape in model.weights(rank):
            if len(shape) > most:
                continue
            extra = [
                f"  const %fault.factor : f32[] = {{{factor}}}",
                f'  %fault.value : f32[{",".join(map(str, shape))}] = mul@1 "fault" (%{name}, %fault.factor)',
            ]
            yield name, lambda n=number, w=name, e=extra: model.read_as(n, w, "fault.value", *e)  # type: ignore[misc]

    return make


def _swapped_channels(model: _Lines) -> Iterator[tuple[str, Callable[[], str]]]:
    for number, name, shape in model.weights(1):
        order = [1, 0, *range(2, shape[0])]
        if shape[0] < 2:
            continue
        extra = [
            f"  const %fault.order : i64[{shape[0]}] = {{{','.join(map(str, order))}}}",
            f'  %fault.value : f32[{",".join(map(str, shape))}] = gather@1 "fault" (%{name}, %fault.order) {{axis=0}}',
        ]
        yield name, lambda n=number, w=name, e=extra: model.read_as(n, w, "fault.value", *e)  # type: ignore[misc]


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


def _attribute(op: str, pattern: str, new: str) -> Maker:
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


KINDS: dict[str, Maker] = {
    "a weight x 1.01": _scaled("1.01", 2),
    "a vector x 1.01": _scaled("1.01", 1, 1),
    "a vector dropped": _scaled("0", 1, 1),
    "a weight's sign": _scaled("-1", 2),
    "swapped channels": _swapped_channels,
    "a dropped activation": _dropped_activation,
    "padding moved": _attribute("conv", r"pads=\[1,1,1,1\]", "pads=[0,2,2,0]"),
    "padding moved, larger kernel": _attribute("conv", r"pads=\[2,2,2,2\]", "pads=[1,3,3,1]"),
    "padding moved in one dimension": _attribute("conv", r"pads=\[(\d*[1-9]),\1\]", "pads=[0,\\1\\1]"),
    "a larger epsilon": _attribute("layer_normalization", r"epsilon=[\d.e+-]+", "epsilon=0.01"),
    "a larger epsilon of batch norm": _attribute("batch_normalization", r"epsilon=[\d.e+-]+", "epsilon=0.01"),
    "another axis": _attribute("softmax", r"axis=-1", "axis=-2"),
    "add for mul": _replaced("mul", "add"),
    "sub for add": _replaced("add", "sub"),
    "average for maximum": _replaced("reduce_mean", "reduce_max"),
    "relu for sigmoid": _replaced("sigmoid", "relu"),
    "silu for gelu": _replaced("gelu", "silu"),
    "tanh for sigmoid": _replaced("sigmoid", "tanh"),
    "swapped operands": _swapped_operands,
    "a state not written": _kept_state,
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
