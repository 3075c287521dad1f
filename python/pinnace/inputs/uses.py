"""What a graph does with the values of its inputs, as far as that says which values are sensible: what they index, what
they are compared with, which sizes they are."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from pinnace.shape_trials import ShapeTrial, TrialNode

# Operators whose output holds elements of the operands listed here as they are.
PASSING: dict[str, tuple[int, ...]] = {
    **dict.fromkeys(
        (
            *("identity", "cast", "cast_like", "reshape", "squeeze", "unsqueeze", "flatten", "transpose", "expand"),
            *("tile", "slice", "split", "gather", "gather_elements", "gather_nd", "clip", "reduce_max", "reduce_min"),
        ),
        (0,),
    ),
    "where": (1, 2),
    "scatter_nd": (0, 2),
    "scatter_elements": (0, 2),
    "concat": tuple(range(64)),
    "max": (0, 1),
    "min": (0, 1),
    "top_k": (0,),  # output 0; packed sequences are sorted by their lengths
}
# Operators that read an operand as an index into operand 0 along their attribute "axis".
INDEXING = {"gather": 1, "gather_elements": 1, "scatter_elements": 1}
INDEXING_MANY = {"gather_nd": 1, "scatter_nd": 1}
ORDERING = {"less", "less_or_equal", "greater", "greater_or_equal"}
# Operators that read an operand as lengths of sequences along an axis of operand 0.
LENGTHS = {"lstm": (4, 0), "gru": (4, 0), "rnn": (4, 0), "reverse_sequence": (1, 0)}
# Operators that read an operand as sizes, counts or places, or divide by it: small positive numbers.
SIZES = {
    "div": (1,),
    "mod": (1,),
    "reshape": (1,),
    "expand": (1,),
    "tile": (1,),
    "constant_of_shape": (0,),
    "loop": (0,),
    "range": (0, 1, 2),
    "slice": (1, 2, 3, 4),
    "pad": (1,),
    "resize": (1, 2, 3),
    "top_k": (1,),
    "split": (1,),
    "center_crop_pad": (1,),
}
STEPS = 20_000  # values followed from one input


@dataclass
class Uses:
    """What an input's elements are used for.

    limits     the element x as an index: 0 <= scale * x + offset < size, one (scale, offset, size, reader) each. What
               is compared for equality with the constants 0, 1, 2, … is such an index too.
    constants  what it is compared with, in the order of the graph.
    lengths    sizes of the axes along which it is a length, or a place that others are compared with.
    sizes      nodes that take it as a size, a count or a place.
    least      ranges of constants that it is the lower bound of: "those from x on"; greatest: the upper bound of.
    """

    limits: list[tuple[int, int, int, str]] = field(default_factory=list)
    constants: list[int] = field(default_factory=list)
    lengths: list[int] = field(default_factory=list)
    sizes: list[str] = field(default_factory=list)
    least: list[tuple[float, float]] = field(default_factory=list)
    greatest: list[tuple[float, float]] = field(default_factory=list)

    def bounds(self) -> tuple[int, int, str] | None:
        """The least and greatest element that all limits admit, and the narrowest's reader; None without limits."""
        low, high, why = 0, None, ""
        for scale, offset, size, reader in self.limits:
            ends = sorted(((0 - offset) / scale, (size - 1 - offset) / scale))
            low = max(low, -int(-ends[0] // 1))
            top = int(ends[1] // 1)
            if high is None or top < high:
                high, why = top, f"'{reader}' reads by it what has {size}"
        return None if high is None else (min(low, max(high, 0)), max(high, 0), why)


def uses_of(trial: ShapeTrial, name: str) -> Uses:
    """The uses of the input of that name, from a shape trial with details."""
    return _Walk(trial).walk(name)


class _Walk:
    def __init__(self, trial: ShapeTrial) -> None:
        self.values = trial.values
        self.readers: dict[str, list[tuple[TrialNode, int]]] = defaultdict(list)
        self.makers = {}
        for node in trial.nodes:
            for place, value in enumerate(node.inputs):
                if value:
                    self.readers[value].append((node, place))
            for value in node.outputs:
                self.makers[value] = node

    def walk(self, name: str) -> Uses:
        """Follows the input through all that hands its elements on, times a constant and plus one at most."""
        uses = Uses()
        seen = {(name, 1, 0)}
        waiting = [(name, 1, 0)]
        while waiting and len(seen) < STEPS:
            value, scale, offset = waiting.pop(0)
            for node, place in self.readers[value]:
                self.note(uses, node, place, scale, offset)
                for step in self.onward(node, place, scale, offset):
                    if step not in seen:
                        seen.add(step)
                        waiting.append(step)
        return uses

    def shape(self, value: str) -> Sequence[int | None]:
        return self.values[value].shape if value in self.values else []

    def contents(self, value: str) -> Sequence[int] | None:
        return self.values[value].contents if value in self.values else None

    def number(self, value: str) -> int | None:
        """The value that all elements have, where it is known."""
        known = self.contents(value)
        return known[0] if known and min(known) == max(known) else None

    def onward(self, node: TrialNode, place: int, scale: int, offset: int) -> Iterator[tuple[str, int, int]]:
        op, inputs, outputs = node.op, node.inputs, node.outputs
        if place in PASSING.get(op, ()):
            for output in outputs[:1] if op == "top_k" else outputs:
                yield output, scale, offset
        elif op in ("add", "sub", "mul") and len(inputs) == 2:
            other = self.number(inputs[1 - place])
            if other is None:
                return
            if op == "add":
                yield outputs[0], scale, offset + other
            elif op == "mul" and other:
                yield outputs[0], scale * other, offset * other
            elif op == "sub":
                sign = 1 if place == 0 else -1
                yield outputs[0], sign * scale, sign * offset - sign * other

    def note(self, uses: Uses, node: TrialNode, place: int, scale: int, offset: int) -> None:
        name, op, inputs, attrs = node.name, node.op, node.inputs, node.attributes
        if INDEXING.get(op) == place:
            shape = self.shape(inputs[0])
            size = shape[attrs.get("axis", 0)] if -len(shape) <= attrs.get("axis", 0) < len(shape) else None
            if size:
                uses.limits.append((scale, offset, size, name))
        elif INDEXING_MANY.get(op) == place:
            shape, index = self.shape(inputs[0]), self.shape(inputs[1])
            first = attrs.get("batch_dims", 0)
            sizes = [s for s in shape[first : first + (index[-1] or 1) if index else first] if s]
            if sizes:
                uses.limits.append((scale, offset, min(sizes), name))
        elif op == "one_hot" and place == 0:
            depth = self.number(inputs[1])
            if depth:
                uses.limits.append((scale, offset, depth, name))
        elif op in LENGTHS and LENGTHS[op][0] == place:
            axis = attrs.get("time_axis", 0) if op == "reverse_sequence" else LENGTHS[op][1]
            shape = self.shape(inputs[0])
            if axis < len(shape) and shape[axis]:
                uses.lengths.append(shape[axis] or 1)
        elif op == "equal" or op in ORDERING:
            self.compared(uses, inputs[1 - place], node, scale, offset)
            self.bounding(uses, inputs[1 - place], op, place)
        if place in SIZES.get(op, ()):
            uses.sizes.append(name)

    def compared(self, uses: Uses, other: str, node: TrialNode, scale: int, offset: int) -> None:
        name, op = node.name, node.op
        known = self.contents(other)
        counting = known is not None and len(known) > 2 and list(known) == list(range(known[0], known[0] + len(known)))
        if known and counting and op == "equal":  # a one-hot encoding, written out
            uses.limits.append((scale, offset - known[0], len(known), name))
            return
        if counting or self.counts(other):
            sizes = [size for size in self.shape(other) if size and size > 1]
            if sizes:
                uses.lengths.append(max(sizes))
            return
        for constant in known or ():
            if scale in (1, -1):
                wanted = (constant - offset) * scale
                near = (wanted,) if op == "equal" else (wanted, wanted + 1, wanted - 1)
                uses.constants.extend(x for x in near if x >= 0 and x not in uses.constants)

    def bounding(self, uses: Uses, other: str, op: str, place: int) -> None:
        """What a float is compared with, where that are several constants, some of which it is to select."""
        range_ = self.values[other].range if other in self.values else None
        if range_ is None or range_[0] == range_[1] or op == "equal":
            return
        (uses.least if op.startswith("less") == (place == 0) else uses.greatest).append(range_)

    def counts(self, value: str) -> bool:
        """Whether a value is 0, 1, 2, … made by the graph."""
        for _ in range(8):
            node = self.makers.get(value)
            if node is None:
                return False
            if node.op in ("range", "cum_sum"):
                return True
            if 0 not in PASSING.get(node.op, ()):
                return False
            value = node.inputs[0]
        return False


__all__ = ["Uses", "uses_of"]
