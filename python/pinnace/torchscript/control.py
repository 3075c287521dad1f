"""Branches of TorchScript; loops.py has the loops. What the example's numbers and sizes settle is settled while graphs
are followed; what depends on data becomes torch's cond and while_loop.

A part of the graph that becomes a graph of its own is run twice. The first run, without being recorded, tells what it
reads and what it leaves: results, changed lists and attributes, tensors written in place. Then it is recorded, with
the tensors that it reads as inputs and all that it leaves as outputs. Numbers travel as tensors with one element.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, Any

import torch

from pinnace import _core
from pinnace.torchscript.levels import Left, Level, Log, Twins, contents_of, identity, restore
from pinnace.torchscript.rows import Rows
from pinnace.torchscript.values import (
    Differs,
    Missing,
    Nest,
    Number,
    Object,
    SizeTensor,
    Slot,
    built,
    is_symbolic,
    join,
    key_of,
    number_dtype,
    number_kind,
    picked,
    symbols_of,
    tensors_in,
    unbacked,
)

if TYPE_CHECKING:
    from pinnace.torchscript.graph import Block, Step

_sym: Any = torch  # whose functions of symbolic numbers have no types


class Control:
    """The interpreter's part for control flow."""

    _attributes: dict[int, dict[str, Any]]
    left: int
    emitted: int
    place: str  # of the step that runs
    block: Callable[[Block, dict[int, Any]], None]

    def __init__(self, given: Sequence[Any], own: Sequence[Any]) -> None:
        """For a call with those arguments."""
        from torch._subclasses.fake_tensor import FakeTensor

        tensors = [t for t in (*tensors_in(list(given)), *own) if isinstance(t, FakeTensor)]
        self.levels: list[Level] = []
        self._logs: list[Log] = []
        self._items: list[dict[int, tuple[Any, Any]]] = [{}]  # per graph the numbers that were read of tensors
        self._fake = tensors[0].fake_mode if tensors else None
        self.active = bool(tensors)
        self._carriers: list[dict[Any, Any]] = [_carriers(tensors)]
        self.twins = Twins()
        self.has_rows = False  # whether a list may have some
        self.left_out: dict[str, None] = {}  # places of exceptions that depend on data

    # ------------------------------------------------------------------------------------------------------- values

    def here(self, value: Any) -> Any:
        """A tensor as the graph that is being recorded has it."""
        if self.twins.stale:
            self.check_fresh(value)
        for level in self.levels:
            found = level.tensors.get(id(value))
            if found is not None:
                value = found[1]
            elif not level.recorded and id(value) not in level.made:
                inner = value.detach().clone()
                level.tensors[id(value)] = (value, inner)
                self.note_made(inner)
                value = inner
        return value

    def rows(self, tensor: torch.Tensor | None, kind: str) -> Rows:
        """Elements of a list, of which nobody knows how many there are."""
        self.has_rows = True
        return Rows(tensor, kind)

    def check_fresh(self, value: Any) -> None:
        """ConversionError: it was changed under another name, which a branch or loop has given it by data."""
        if isinstance(value, (torch.Tensor, list, dict, Object)) and identity(value) in self.twins.stale:
            kind = "tensor" if isinstance(value, torch.Tensor) else "list, dict or object"
            raise _core.ConversionError(
                f"a {kind} that a branch or loop gives a second name, depending on data, is changed under one name at "
                f"{self.twins.stale[identity(value)] or 'an unknown place'} and read under the other: change a copy"
            )

    def plain(self, value: Any) -> Any:
        """A number that Python computes with, an expression perhaps; any other value as it is."""
        if isinstance(value, SizeTensor):
            return self.plain(value.value)
        if isinstance(value, Number):
            tensor = self.here(value.tensor)
            items = self._items[-1]
            if id(tensor) not in items:
                number = tensor.item()
                kind = {"bool": bool, "int": int, "float": float}[value.kind]
                if not is_symbolic(number):
                    number = kind(number)
                elif number_kind(number) != value.kind:
                    number = _converted(number, value.kind)
                self._own(symbols_of(number))
                items[id(tensor)] = (tensor, number)
            return items[id(tensor)][1]
        return self._number_here(value) if is_symbolic(value) else value

    def plain_parts(self, value: Any) -> Any:
        """As plain(), also the elements of lists."""
        if isinstance(value, (list, tuple)):
            return type(value)(map(self.plain_parts, value)) if type(value) in (list, tuple) else value
        return self.plain(value)

    def _number_here(self, value: Any) -> Any:
        for level in self.levels:
            symbols = symbols_of(value)
            data = unbacked(symbols)
            if level.recorded:
                found = level.numbers.get(key_of(value))
                if found is not None:
                    value = found[1] if not isinstance(found[1], Number) else self._inner_number(found[1])
            elif data and not data & level.own_symbols:
                level.numbers[key_of(value)] = (value, value)
            level.symbols |= symbols - data
        return value

    def _inner_number(self, number: Number) -> Any:
        """Of an operand, whose tensor is the current graph's."""
        items = self._items[-1]
        if id(number.tensor) not in items:
            made = number.tensor.item()
            made = made if number_kind(made) == number.kind else _converted(made, number.kind)
            items[id(number.tensor)] = (number.tensor, made)
        return items[id(number.tensor)][1]

    def item(self, tensor: Any, kind: str) -> Any:
        """The number in a tensor."""
        if self.active:
            # The tensor may be written in place afterwards.
            own = torch.ops.aten.to.dtype(self.here(tensor), number_dtype(kind), copy=True)
            self.note_made([own])
            return Number(own, kind)
        return {"bool": bool, "int": int, "float": float}[kind](tensor.item())

    def tensor_of(self, value: Any, kind: str) -> Any:
        """A number as a tensor without dimensions, of the type that such numbers have."""
        dtype = number_dtype(kind)
        if isinstance(value, Number):
            tensor = self.here(value.tensor)
            tensor = tensor.reshape([]) if tensor.dim() else tensor
            return tensor if tensor.dtype == dtype else tensor.to(dtype)
        value = self.plain(value)
        if isinstance(value, torch.SymBool):
            return torch.ops.aten.scalar_tensor.default(_sym.sym_ite(value, 1, 0), dtype=torch.int64).to(torch.bool)
        if is_symbolic(value):
            return torch.ops.aten.scalar_tensor.default(value, dtype=dtype)
        return torch.ops.aten.full.default([], value, dtype=dtype)

    def note_made(self, value: Any, given: Any = ()) -> None:
        """Of a value that a step has made: it is none from outside, but for tensors that the step was given."""
        if isinstance(value, (list, dict, Object)):
            for log in self._logs:
                log.new[id(value)] = value
        if not self.levels:
            return
        before = {id(t) for t in tensors_in(given)}
        for tensor in tensors_in(value):
            if id(tensor) in before:
                continue
            self._own(set().union(*(symbols_of(s) for s in tensor.shape)))
            for level in self.levels:
                if not level.recorded and id(tensor) not in level.tensors:
                    level.made[id(tensor)] = tensor

    def _own(self, symbols: set[Any]) -> None:
        for level in self.levels:
            if not level.recorded:
                level.own_symbols |= unbacked(symbols) - {
                    s for outside, _ in level.numbers.values() for s in symbols_of(outside)
                }

    def changing(self, container: Any) -> Any:
        """The container, which is about to change."""
        if self.twins.sources:
            self.twins.change(container, self.place)
        for log in self._logs:
            if id(container) not in log.before and id(container) not in log.new:
                log.before[id(container)] = (container, contents_of(container))
        return container

    def listed(self, values: list[Any], index: Any) -> Any:
        """The element at an index that depends on data: of tensors alike, or of numbers."""
        kinds = {number_kind(v) for v in values}
        if len(kinds) == 1 and (kind := kinds.pop()):
            stacked = torch.ops.aten.stack.default([self.tensor_of(v, kind) for v in values])
        elif values and all(isinstance(v, torch.Tensor) for v in values):
            kind, stacked = "", torch.ops.aten.stack.default([self.here(v) for v in values])
        else:
            raise _core.ConversionError("an index that depends on data, into a list of neither tensors nor numbers")
        place = self.tensor_of(index, "int")
        place = torch.ops.aten.where.self(place < 0, place + len(values), place)
        row = torch.ops.aten.index_select.default(stacked, 0, place.reshape([1])).squeeze(0)
        return Number(row, kind) if kind else row

    # ----------------------------------------------------------------------------------------------------- branches

    def known(self, value: Any) -> bool | None:
        """What a condition is, whatever the sizes and the data; None where they decide."""
        from torch.fx.experimental.symbolic_shapes import statically_known_true

        if isinstance(value, Number):
            tensor = self.here(value.tensor)
            if getattr(tensor, "constant", None) is None:
                return None
            value = self.plain(value)
        if isinstance(value, torch.SymBool):
            if statically_known_true(value):
                return True if _at_one(value) is not False else None
            if statically_known_true(_sym.sym_not(value)):
                return False if _at_one(value) is not True else None
            return None
        return bool(value)

    def branch(self, step: Step, values: list[Any], env: dict[int, Any]) -> None:
        """prim::If"""
        condition = values[0] if isinstance(values[0], Number) else self.plain(values[0])
        taken = self.known(condition)
        of_sizes = isinstance(condition, torch.SymBool) and not unbacked(symbols_of(condition))
        if taken is None and (step.blocks[0].raises or step.blocks[1].raises):
            # Assertions: those on sizes become bounds, those on data are left out.
            taken = bool(condition) if of_sizes else step.blocks[1].raises
            if not of_sizes:
                self.left_out[str(step.place)] = None
        if taken is None:
            try:
                self._either(step, condition, env)
                return
            except Differs as error:
                if not of_sizes:
                    raise _core.ConversionError(
                        f"`if` at {str(step.place) or 'an unknown place'} depends on data, and its two ways cannot be "
                        f"one: {error}"
                    ) from None
                taken = bool(condition)
        chosen = step.blocks[0 if taken else 1]
        self.block(chosen, env)
        env.update(zip(step.outputs, [env[v] for v in chosen.outputs], strict=True))

    def _either(self, step: Step, condition: Any, env: dict[int, Any]) -> None:
        sides = [self.looked_at(block, env) for block in step.blocks]
        containers = {key: pair[0] for side in sides for key, pair in side.changed.items()}
        whole = [[*side.values, *(side.contents(k, own) for k, own in containers.items())] for side in sides]
        slots: list[Slot] = []
        template = join(whole[0], whole[1], slots, alike)
        written = list({id(t): t for side in sides for t in side.written}.values())
        for side, values in zip(sides, whole, strict=True):
            self._read_in(side.level, list(picked(template, values)))
        if slots or written:
            leaves = self._recorded_either(step, condition, sides, template, slots, written, containers, env)
        else:
            leaves = []
        values = built(template, leaves)
        for side, own in zip(sides, whole, strict=True):
            self.twins.take(side.twins)
            self.note_twins(template, values, own, side, len(step.outputs))
        env.update(zip(step.outputs, values, strict=False))
        for container, contents in zip(containers.values(), values[len(step.outputs) :], strict=True):
            restore(self.changing(container), contents)

    def _recorded_either(
        self,
        step: Step,
        condition: Any,
        sides: Sequence[Left],
        template: Any,
        slots: Sequence[Slot],
        written: Sequence[Any],
        containers: dict[int, Any],
        env: dict[int, Any],
    ) -> list[Any]:
        if self.levels and not self.levels[-1].recorded:
            self.read_by(sides, written, condition)
            return [self.stand_in(slot) for slot in slots]
        operands, names = self.operands_of(sides, written)

        def side(block: Block) -> Callable[..., tuple[Any, ...]]:
            def run(*given: Any) -> tuple[Any, ...]:
                with self.recording(operands, names, given, written) as level:
                    self.block(block, env)
                    values = [*(env[v] for v in block.outputs), *map(contents_of, containers.values())]
                    leaves = list(picked(template, values))
                    own = [self.leaf_of(v, slot, given) for v, slot in zip(leaves, slots, strict=True)]
                    return (*own, *(level.tensors[id(t)][1] for t in written))

            return run

        if isinstance(condition, Number):
            condition = self.tensor_of(condition, "bool")
        self.emitted += 1
        run = torch.ops.higher_order.cond
        made = run(condition, side(step.blocks[0]), side(step.blocks[1]), tuple(operands))
        return self.results_after(made, slots, written)

    def note_twins(self, template: Any, made: Any, own: Any, side: Left, count: int | None = None) -> None:
        """Of results `made`, what each may be in a part that gives `own`, where that was there before. count: of the
        values that are results; more of them are contents."""
        if isinstance(own, Missing):
            return
        if isinstance(template, Nest) or count is not None:
            if count is None and isinstance(own, (list, dict, Object)) and id(own) not in side.new:
                self.twins.join(made, own)
            parts, split = (template.parts, template.split) if isinstance(template, Nest) else (template, list)
            for at, (part, m, o) in enumerate(zip(parts, split(made), split(own), strict=True)):
                if count is None or at < count or not isinstance(part, Nest):
                    self.note_twins(part, m, o, side)
                else:
                    for inner in zip(part.parts, part.split(m), part.split(o), strict=True):
                        self.note_twins(*inner, side)
        elif isinstance(template, Slot) and template.kind == "tensor" and isinstance(own, torch.Tensor):
            for outside in self.tensors_outside(own, side):
                self.twins.join(made, outside)

    @staticmethod
    def tensors_outside(value: torch.Tensor, side: Left) -> list[Any]:
        """The tensors from outside of a part, in whose memory a tensor is that it gives."""
        origins = side.twins.origins(value)
        pairs = side.level.tensors.values()
        inside = [outside for outside, inner in pairs if {identity(inner), identity(outside)} & origins]
        return inside or ([] if id(value) in side.level.made else [value])

    def results_after(self, made: Sequence[Any], slots: Sequence[Slot], written: Sequence[Any]) -> list[Any]:
        """The results of a part as values; those of what it writes are put where they belong."""
        own = list(made)
        self.note_made(own)
        for tensor, value in zip(written, own[len(slots) :], strict=True):
            self.twins.change(tensor, self.place)
            tensor.copy_(value)
        return [v if s.kind == "tensor" else Number(v, s.kind) for v, s in zip(own, slots, strict=False)]

    # ------------------------------------------------------------------------------------------- graphs of their own

    @contextlib.contextmanager
    def quietly(self) -> Iterator[None]:
        """Nothing is recorded in it."""
        from torch.fx.experimental.proxy_tensor import disable_proxy_modes_tracing

        assert self._fake is not None
        shapes = self._fake.shape_env
        with contextlib.ExitStack() as stack:
            stack.enter_context(disable_proxy_modes_tracing())
            stack.enter_context(self._fake)
            if shapes is not None:
                stack.enter_context(shapes.ignore_fresh_unbacked_symbols())
                stack.enter_context(shapes.suppress_guards())
            yield

    @contextlib.contextmanager
    def _undone(self) -> Iterator[Log]:
        """Changes of containers are taken back at the end."""
        log, twins = Log(), self.twins
        self._logs.append(log)
        self.twins = twins.copy()
        try:
            yield log
        finally:
            self._logs.remove(log)
            self.twins = twins
            for container, contents in log.before.values():
                restore(container, contents)

    def looked_at(
        self,
        block: Block,
        env: dict[int, Any],
        assumed: dict[int, Any] | None = None,
        containers: dict[int, Any] | None = None,
        free: Sequence[Any] = (),
    ) -> Left:
        """Runs the block without recording it. assumed: contents of containers for that run. free: stand-ins, which
        are nothing from outside."""
        level = Level(recorded=False)
        for value in free:
            tensor = value.tensor if isinstance(value, Number) else value
            level.made[id(tensor)] = tensor
        with self.quietly(), self._undone() as log:
            self.levels.append(level)
            self._items.append({})
            try:
                for key, contents in (assumed or {}).items():
                    restore(self.changing((containers or {})[key]), contents)
                self.block(block, env)
                values = [env[v] for v in block.outputs]
                for value in values:
                    self._read(value)
                changed = {key: (own, contents_of(own)) for key, (own, _) in log.before.items()}
                for _, contents in changed.values():
                    self._read(list(contents.values()) if isinstance(contents, dict) else contents)
            finally:
                self.levels.remove(level)
                self._items.pop()
            written = [outside for outside, inside in level.tensors.values() if inside._version > 0]
            return Left(values, changed, level, written, log.new, self.twins)

    def _read(self, value: Any) -> None:
        """Notes tensors and numbers that are left as they were read."""
        if isinstance(value, torch.Tensor):
            self.here(value)
        elif isinstance(value, Number):
            self.here(value.tensor)
        elif is_symbolic(value):
            self._number_here(value)
        elif isinstance(value, (list, tuple)):
            for v in value:
                self._read(v)
        elif isinstance(value, dict):
            for v in value.values():
                self._read(v)
        elif isinstance(value, Object):
            self._read(value.attributes)
        elif isinstance(value, Rows) and value.tensor is not None:
            self.here(value.tensor)

    def _read_in(self, level: Level, values: list[Any]) -> None:
        """What a part gives as it was before, it reads."""
        with self.quietly():
            self.levels.append(level)
            try:
                self._read(values)
            finally:
                self.levels.remove(level)

    def read_by(self, sides: Sequence[Left], written: Sequence[Any], *values: Any) -> None:
        """What parts within a part read and write, it does."""
        with self.quietly():
            for tensor in written:
                self.twins.change(tensor, self.place)
                self.here(tensor).zero_()
        for side in sides:
            for outside, _ in side.level.tensors.values():
                self.here(outside)
            for outside, _ in side.level.numbers.values():
                self._number_here(outside)
            for level in self.levels:
                level.symbols |= side.level.symbols
        for value in values:
            self._read(value)

    def operands_of(self, sides: Sequence[Left], written: Sequence[Any]) -> tuple[list[Any], dict[str, Any]]:
        """The tensors that a part reads, and by expression its numbers that depend on data, as tensors."""
        tensors: dict[int, Any] = {}
        numbers: dict[str, Any] = {}
        symbols: set[Any] = set()
        for side in sides:
            tensors |= {id(outside): outside for outside, _ in side.level.tensors.values()}
            numbers |= {k: outside for k, (outside, _) in side.level.numbers.items()}
            symbols |= side.level.symbols
        self._check_apart(list(tensors.values()), written)
        operands = list(tensors.values())
        names = {}
        for key, value in numbers.items():
            names[key] = self.tensor_of(value, number_kind(value))
            operands.append(names[key])
        known = {s for t in operands for size in t.shape for s in alone(size)}
        for symbol in sorted(symbols - known, key=str):
            carrier = self._carriers[-1].get(symbol)
            if carrier is not None and not any(carrier is t for t in operands):
                operands.append(carrier)
        if not operands:  # torch takes none for a mistake
            operands.append(torch.ops.aten.full.default([], 0, dtype=torch.int64))
        return operands, names

    @staticmethod
    def _check_apart(tensors: Sequence[Any], written: Sequence[Any]) -> None:
        for tensor in written:
            own = tensor.untyped_storage()._cdata
            if any(t is not tensor and t.untyped_storage()._cdata == own for t in tensors):
                raise _core.ConversionError(
                    "a branch or loop that depends on data writes into a tensor and reads another view of it"
                )

    @contextlib.contextmanager
    def recording(
        self, operands: Sequence[Any], names: dict[str, Any], given: Sequence[Any], written: Sequence[Any]
    ) -> Iterator[Level]:
        """For the graph whose inputs `given` stand for the operands. Containers are as before afterwards."""
        level = Level(recorded=True)
        inner = {id(o): g for o, g in zip(operands, given, strict=True)}
        for operand in operands:
            value = inner[id(operand)]
            level.tensors[id(operand)] = (operand, value.clone() if any(operand is w for w in written) else value)
        for key, tensor in names.items():
            level.numbers[key] = (tensor, Number(inner[id(tensor)], key.partition(" ")[0]))
        with self._undone():
            self.levels.append(level)
            self._carriers.append(_carriers(list(given)))
            self._items.append({})
            try:
                yield level
            finally:
                self.levels.remove(level)
                self._carriers.pop()
                self._items.pop()

    def leaf_of(self, value: Any, slot: Slot, given: Sequence[Any]) -> Any:
        """What a part gives for a slot: a tensor that is none of its inputs, in memory of its own."""
        if isinstance(value, Missing):
            return self._zeros(slot)
        if slot.kind != "tensor":
            made = self.tensor_of(value, slot.kind)
            return made.clone() if any(made is g for g in given) or isinstance(value, Number) else made
        if isinstance(value, SizeTensor):
            return torch.ops.aten.scalar_tensor.default(self.plain(value.value), dtype=value.dtype)
        return self.here(value).clone()

    def stand_in(self, slot: Slot) -> Any:
        """A value for a slot of which nothing but its type is known."""
        with self.quietly():
            if slot.kind != "tensor":
                made = torch.zeros((), dtype=number_dtype(slot.kind))
            elif isinstance(slot.example, SizeTensor):
                made = torch.zeros((), dtype=slot.example.dtype)
            else:
                made = torch.empty_like(slot.example)
            made = made.clone()  # none of which torch knows the elements
        self.note_made([made])
        return made if slot.kind == "tensor" else Number(made, slot.kind)

    def _zeros(self, slot: Slot) -> Any:
        if slot.kind != "tensor":
            return torch.ops.aten.full.default([], 0, dtype=number_dtype(slot.kind))
        sizes = [self.plain(s) for s in slot.example.shape]
        return torch.ops.aten.full.default(sizes, 0, dtype=slot.example.dtype)


def _at_one(condition: Any) -> bool | None:
    """What a condition on sizes is where all are 1, which torch takes no dynamic size for; None: that does not tell."""
    expression = condition.node.expr
    made = str(expression.subs(dict.fromkeys(expression.free_symbols, 1))) if expression.free_symbols else ""
    return {"True": True, "False": False}.get(made)


def alike(a: torch.Tensor, b: torch.Tensor) -> bool:
    if a.dtype != b.dtype or a.dim() != b.dim():
        return False
    for x, y in zip(a.shape, b.shape, strict=True):
        if is_symbolic(x) or is_symbolic(y):
            if not is_symbolic(x) or not is_symbolic(y) or key_of(x) != key_of(y):
                return False
        elif x != y:
            return False
    return True


def alone(size: Any) -> set[Any]:
    """The symbol that a size is."""
    symbols = symbols_of(size)
    return symbols if len(symbols) == 1 and size.node.expr in symbols else set()


def _carriers(tensors: Sequence[Any]) -> dict[Any, Any]:
    """By symbol a tensor of which it is a size."""
    return {s: t for t in reversed(list(tensors)) for size in t.shape for s in alone(size)}


def _converted(number: Any, kind: str) -> Any:
    if kind == "bool":
        return number != 0
    if number_kind(number) == "bool":
        number = _sym.sym_ite(number, 1, 0)
    return _sym.sym_int(number) if kind == "int" else _sym.sym_float(number)


__all__ = ["Control", "alike", "alone"]
