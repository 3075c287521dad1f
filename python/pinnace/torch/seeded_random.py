"""Random numbers of exported programs from a generator of our own, Philox4x32-10, so that a program and its source draw
the same ones: operators of ATen that draw are replaced by arithmetic on its words.

Imports torch only when asked to.
"""

from __future__ import annotations

import copy
import functools
import math
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    import torch

    Size = int | torch.fx.Node

STATE = "random_position"
NOTE = "random numbers are Philox4x32-10's: the same in each session, going on from run to run"
# Random bits of a uniform number: as many as its type's significand has.
_BITS = {"float16": 11, "bfloat16": 8, "float32": 24, "float64": 53}
_MOST_RANGE = 1 << 31  # of integers: times a word it stays below 2^63


def philox_words(low: int, high: int, count: int, key: int) -> np.ndarray[Any, np.dtype[np.int64]]:
    """`count` words from block low + 2^64 high on, as the operator random_philox gives them (docs/operators.md)."""
    blocks = np.arange((count + 3) // 4, dtype=np.uint64)
    mask, half = np.uint64(0xFFFFFFFF), np.uint64(32)
    first = np.uint64(low % 2**64)
    with np.errstate(over="ignore"):
        at = first + blocks
        above = np.uint64(high % 2**64) + (at < first).astype(np.uint64)
    c0, c1, c2, c3 = at & mask, at >> half, above & mask, above >> half
    k0, k1 = key % 2**32, key // 2**32 % 2**32
    for _ in range(10):
        a, b = np.uint64(0xD2511F53) * c0, np.uint64(0xCD9E8D57) * c2
        c0, c1, c2, c3 = (b >> half) ^ c1 ^ np.uint64(k0), b & mask, (a >> half) ^ c3 ^ np.uint64(k1), a & mask
        k0, k1 = (k0 + 0x9E3779B9) % 2**32, (k1 + 0xBB67AE85) % 2**32
    return np.stack([c0, c1, c2, c3], 1).reshape(-1)[:count].astype(np.int64)


@functools.cache
def _philox() -> Any:
    """torch's operator pinnace::philox, which the importer makes random_philox."""
    import torch

    def run(counter: torch.Tensor, sizes: Sequence[int], key: int) -> torch.Tensor:
        low, high = counter.tolist()
        return torch.from_numpy(philox_words(low, high, math.prod(sizes), key)).reshape(list(sizes))

    schema = "(Tensor counter, SymInt[] sizes, int key) -> Tensor"
    operator = torch.library.custom_op("pinnace::philox", run, mutates_args=(), schema=schema)
    operator.register_fake(lambda counter, sizes, key: counter.new_empty(sizes))
    return torch.ops.pinnace.philox.default


def draws_random(program: torch.export.ExportedProgram) -> bool:
    """Whether its graph, those within it left out, has operators that seeded() replaces."""
    draws = _draws()
    return any(node.op == "call_function" and _name(node) in draws for node in program.graph.nodes)


def seeded(program: torch.export.ExportedProgram) -> torch.export.ExportedProgram:
    """The program with the operators replaced that draw random numbers, and one more buffer, STATE: how many runs there
    were. Draw i of run n starts at block 2^32 i of the blocks whose upper half is n; the key is 0.

    The same program if nothing in its graph is replaced. Operators without a replacement, and those in graphs within
    it, stay.
    """
    import torch
    from torch.export.graph_signature import ExportGraphSignature, InputKind, InputSpec, OutputKind, OutputSpec
    from torch.export.graph_signature import TensorArgument as Tensor

    draws = _draws()

    made: Any = copy.deepcopy(program.graph_module)
    graph, signature = made.graph, program.graph_signature
    for before, node in zip(program.graph.nodes, graph.nodes, strict=True):
        node.name = before.name  # the copy calls "input" and other names of Python's otherwise
    name = STATE
    while name in program.state_dict or name in program.constants:
        name += "_"
    specs = list(signature.input_specs)
    placeholders = [node for node in graph.nodes if node.op == "placeholder"]
    user = next((i for i, spec in enumerate(specs) if spec.kind.name == "USER_INPUT"), len(specs))
    behind = placeholders[user] if user < len(placeholders) else next(n for n in graph.nodes if n.op != "placeholder")
    with graph.inserting_before(behind):
        position = graph.placeholder(f"b_{name}")
    mode = _fake_mode(graph)
    start = torch.zeros((), dtype=torch.int64)
    position.meta["val"] = mode.from_tensor(start)
    specs.insert(user, InputSpec(InputKind.BUFFER, Tensor(position.name), name, True))
    count = 0
    for node in list(graph.nodes):
        if node.op == "call_function" and _name(node) in draws:
            with graph.inserting_before(node):
                drawn = draws[_name(node)](_Place(graph, mode, node, position, count))
            if drawn is not None:
                _replace(graph, node, drawn)
                count += 1
    if not count:
        return program
    end = next(node for node in reversed(graph.nodes) if node.op == "output")
    with graph.inserting_before(end):
        after = _Place(graph, mode, None, position, 0).call(torch.ops.aten.add.Tensor, position, 1)
    end.args = ((after, *end.args[0]),)
    # What a node drew may be an output itself.
    named = [o.name if isinstance(o, torch.fx.Node) else None for o in end.args[0]]
    outputs = [OutputSpec(OutputKind.BUFFER_MUTATION, Tensor(after.name), name)]
    for spec, own in zip(signature.output_specs, named[1:], strict=True):
        outputs.append(
            replace(spec, arg=Tensor(own)) if own and hasattr(spec.arg, "name") and spec.arg.name != own else spec
        )
    graph.lint()
    made.recompile()
    return program._update(
        made,
        ExportGraphSignature(input_specs=specs, output_specs=outputs),
        state_dict={**program.state_dict, name: start},
    )


def _name(node: Any) -> str:
    """ "aten.dropout"; empty for what is no operator."""
    schema = getattr(node.target, "_schema", None)
    return schema.name.replace("::", ".") if schema is not None else ""


def _fake_mode(graph: Any) -> Any:
    from torch._guards import detect_fake_mode
    from torch._subclasses.fake_tensor import FakeTensorMode

    values = [node.meta["val"] for node in graph.nodes if node.meta.get("val") is not None]
    return detect_fake_mode(values) or FakeTensorMode()


def _replace(graph: Any, node: Any, drawn: Any) -> None:
    """A tensor, or a tuple of them for an operator with several results."""
    if isinstance(drawn, tuple):
        for user in list(node.users):
            user.replace_all_uses_with(drawn[user.args[1]])
            graph.erase_node(user)
    else:
        node.replace_all_uses_with(drawn)
    graph.erase_node(node)


class _Place:
    """A node that draws: its arguments, and new nodes in front of it with the words that are its own."""

    def __init__(self, graph: Any, mode: Any, node: Any, position: Any, number: int) -> None:
        """position: the node with the number of the run; number: of this one among those that draw."""
        self.graph, self.mode, self.node, self.position, self.number = graph, mode, node, position, number
        self.given: dict[str, Any] = {}
        if node is not None:
            declared = node.target._schema.arguments
            self.given = {a.name: a.default_value for a in declared if a.has_default_value()}
            self.given |= {a.name: value for a, value in zip(declared, node.args, strict=False)} | node.kwargs

    def call(self, target: Any, *args: Any, **kwargs: Any) -> Any:
        """A new node, with what is known of its result, and the line of the node that it stands for."""
        import torch

        made = self.graph.call_function(target, args, kwargs)

        def value(of: Any) -> Any:
            return of.meta["val"]

        with self.mode:
            known = torch.fx.node.map_arg((args, kwargs), value)
            made.meta["val"] = target(*known[0], **known[1])
        for key in ("stack_trace", "nn_module_stack", "source_fn_stack", "torch_fn"):
            if self.node is not None and key in self.node.meta:
                made.meta[key] = self.node.meta[key]
        return made

    @property
    def dtype(self) -> Any:
        value = self.node.meta["val"]
        return (value[0] if isinstance(value, tuple) else value).dtype

    def sizes(self, of: str = "") -> list[Any] | None:
        """Of the result, or of an argument: numbers, and nodes where they are dynamic. None: they cannot be told."""
        import torch

        if not of and "size" in self.given:
            return list(self.given["size"])
        source = self.given[of] if of else self.node
        value = source.meta["val"]
        value = value[0] if isinstance(value, tuple) else value
        if all(isinstance(size, int) for size in value.shape):
            return list(value.shape)
        tensors = [a for a in self.given.values() if isinstance(a, torch.fx.Node)]
        same = next((t for t in tensors if tuple(t.meta["val"].shape) == tuple(value.shape)), None)
        if same is None:
            return None
        return [
            size if isinstance(size, int) else self.call(torch.ops.aten.sym_size.int, same, dim)
            for dim, size in enumerate(value.shape)
        ]

    def to(self, x: Any, dtype: Any) -> Any:
        import torch

        return x if x.meta["val"].dtype == dtype else self.call(torch.ops.aten._to_copy.default, x, dtype=dtype)

    def words(self, sizes: Sequence[Any]) -> Any:
        """int64 in [0, 2^32)."""
        import torch

        aten = torch.ops.aten
        low = self.call(aten.full.default, [], self.number << 32, dtype=torch.int64)
        counter = self.call(aten.stack.default, [low, self.position])
        return self.call(_philox(), counter, list(sizes), 0)

    def fraction(self, words: Any, bits: int) -> Any:
        """The upper bits of words, as integers."""
        import torch

        return self.call(torch.ops.aten.bitwise_right_shift.Tensor_Scalar, words, 32 - bits)

    def uniform(self, sizes: Sequence[Any], dtype: Any) -> Any:
        """In [0, 1)."""
        import torch

        aten, bits = torch.ops.aten, _BITS[str(dtype).removeprefix("torch.")]
        if bits > 32:
            pairs = self.words([*sizes, 2])
            upper, lower = (self.call(aten.select.int, pairs, -1, i) for i in (0, 1))
            upper = self.call(aten.mul.Tensor, upper, 1 << (bits - 32))
            whole = self.call(aten.add.Tensor, upper, self.fraction(lower, bits - 32))
        else:
            whole = self.fraction(self.words(sizes), bits)
        wide = torch.float64 if bits > 24 else torch.float32
        return self.to(self.call(aten.mul.Tensor, self.to(whole, wide), 2.0**-bits), dtype)

    def normal(self, sizes: Sequence[Any], dtype: Any) -> Any:
        """Box and Muller: sqrt(-2 log u) cos(2 pi v), of 32 bits for u in (0, 1] and 24 for v."""
        import torch

        aten, call = torch.ops.aten, self.call
        pairs = self.words([*sizes, 2])
        wide = torch.float64 if dtype == torch.float64 else torch.float32
        u = call(aten.add.Tensor, call(aten.select.int, pairs, -1, 0), 1)
        u = call(aten.mul.Tensor, self.to(u, wide), 2.0**-32)
        radius = call(aten.sqrt.default, call(aten.mul.Tensor, call(aten.log.default, u), -2.0))
        v = self.to(self.fraction(call(aten.select.int, pairs, -1, 1), 24), wide)
        angle = call(aten.mul.Tensor, v, 2 * math.pi * 2.0**-24)
        return self.to(call(aten.mul.Tensor, radius, call(aten.cos.default, angle)), dtype)

    def chosen(self, sizes: Sequence[Any], p: float) -> Any:
        """True with probability p, compared as integers: in every precision the same."""
        import torch

        share = self.fraction(self.words(sizes), 24)
        return self.call(torch.ops.aten.lt.Scalar, share, math.ceil(p * 2**24))


def _draws() -> dict[str, Callable[[_Place], Any]]:
    """By operator what takes its place: the new node, or None where it has no such form."""
    import torch

    aten = torch.ops.aten

    def written(make: Callable[[_Place], Any]) -> Callable[[_Place], Any]:
        """The operator that writes its result into self."""

        def into(at: _Place) -> Any:
            made = make(at)
            return (
                None
                if made is None
                else at.call(aten.copy_.default, at.given["self" if "self" in at.given else "input"], made)
            )

        return into

    def of_sizes(make: Callable[[_Place, list[Any]], Any]) -> Callable[[_Place], Any]:
        def made(at: _Place) -> Any:
            sizes = at.sizes()
            return None if sizes is None else make(at, sizes)

        return made

    def uniform(at: _Place, sizes: list[Any]) -> Any:
        low, high = at.given.get("from", 0.0), at.given.get("to", 1.0)
        u = at.uniform(sizes, at.dtype)
        return at.call(aten.add.Tensor, at.call(aten.mul.Tensor, u, high - low), low)

    def normal(at: _Place, sizes: list[Any]) -> Any:
        z = at.normal(sizes, at.dtype)
        for operator, name in ((aten.mul.Tensor, "std"), (aten.add.Tensor, "mean")):
            z = at.call(operator, z, at.given[name])
        return at.to(z, at.dtype)

    def integers(at: _Place, sizes: list[Any]) -> Any:
        low, high = at.given.get("low", 0), at.given["high"]
        if not isinstance(low, int) or not isinstance(high, int) or not 0 < high - low <= _MOST_RANGE:
            return None
        scaled = at.call(aten.mul.Tensor, at.words(sizes), high - low)
        below = at.call(aten.bitwise_right_shift.Tensor_Scalar, scaled, 32)
        return at.to(at.call(aten.add.Tensor, below, low), at.dtype)

    def bernoulli(at: _Place, sizes: list[Any]) -> Any:
        p = at.given.get("p")
        if isinstance(p, float | int):
            return at.to(at.chosen(sizes, p), at.dtype)
        chance = at.given["self"] if p is None else p
        # In single precision whatever the type is: of half precision the numbers would be multiples of 2^-11.
        u = at.uniform(sizes, torch.float64 if chance.meta["val"].dtype == torch.float64 else torch.float32)
        return at.to(at.call(aten.lt.Tensor, u, chance), at.dtype)

    def exponential(at: _Place, sizes: list[Any]) -> Any:
        u = at.call(aten.rsub.Scalar, at.uniform(sizes, at.dtype), 1)
        return at.call(aten.mul.Tensor, at.call(aten.log.default, u), -1 / at.given["lambd"])

    def kept(at: _Place, sizes: Sequence[Any], p: float) -> tuple[Any, Any]:
        """What stays and the factor of each element: 0, or 1 / (1 - p)."""
        stays = at.chosen(sizes, 1 - p)
        return stays, at.call(aten.mul.Tensor, at.to(stays, at.dtype), 1 / (1 - p) if p < 1 else 0.0)

    def dropout(at: _Place) -> Any:
        x, p = at.given["input"], at.given["p"]
        sizes = at.sizes("input")
        if not at.given["train"] or not p or sizes is None:
            return None
        return at.call(aten.mul.Tensor, x, kept(at, sizes, p)[1])

    def feature_dropout(at: _Place) -> Any:
        x, p = at.given["input"], at.given["p"]
        sizes = at.sizes("input")
        if not at.given["train"] or not p or sizes is None or len(sizes) < 2:
            return None
        return at.call(aten.mul.Tensor, x, kept(at, [*sizes[:2], *[1] * (len(sizes) - 2)], p)[1])

    def native_dropout(at: _Place) -> Any:
        x, p = at.given["input"], at.given["p"]
        sizes = at.sizes("input")
        if at.given["train"] is False or not p or sizes is None:
            return None
        stays, factor = kept(at, sizes, p)
        return at.call(aten.mul.Tensor, x, factor), stays

    plain = {
        "aten.bernoulli": of_sizes(bernoulli),
        "aten.dropout": dropout,
        "aten.exponential": of_sizes(exponential),
        "aten.feature_dropout": feature_dropout,
        "aten.normal": of_sizes(normal),
        "aten.uniform": of_sizes(uniform),
    }
    numbers = {
        "aten.native_dropout": native_dropout,
        "aten.normal_functional": of_sizes(normal),
        "aten.rand": of_sizes(lambda at, sizes: at.uniform(sizes, at.dtype)),
        "aten.rand_like": of_sizes(lambda at, sizes: at.uniform(sizes, at.dtype)),
        "aten.randint": of_sizes(integers),
        "aten.randint_like": of_sizes(integers),
        "aten.randn": of_sizes(lambda at, sizes: at.normal(sizes, at.dtype)),
        "aten.randn_like": of_sizes(lambda at, sizes: at.normal(sizes, at.dtype)),
    }
    return {**plain, **numbers, **{f"{name}_": written(make) for name, make in plain.items()}}


__all__ = ["NOTE", "STATE", "draws_random", "philox_words", "seeded"]
