"""Loops of TorchScript: unrolled as far as the number of their iterations is known; else torch's while_loop, and scan
where a list grows in them, which then is as many rows of a tensor.
"""

from __future__ import annotations

import operator
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import torch

from pinnace import _core
from pinnace.torchscript.control import Control, alike, alone
from pinnace.torchscript.levels import Left, Level, Twins, contents_of, identity, restore
from pinnace.torchscript.rows import Growing, Rows, growth
from pinnace.torchscript.values import (
    Differs,
    Nest,
    Number,
    Same,
    Slot,
    built,
    freed,
    is_symbolic,
    join,
    picked,
    symbols_of,
    unbacked,
    widened,
)

if TYPE_CHECKING:
    from pinnace.torchscript.graph import Block, Step

MOST_UNROLLED = 2048  # iterations of one loop
MOST_ROUNDS = 12  # runs of a loop's body until it is known what changes in it
_NO_LIMIT = 1 << 62


@dataclass(eq=False)
class _Loop:
    """A loop of the program: from iteration `count` on, with what its body changes."""

    step: Step
    count: int
    limit: Any
    start: list[Any]  # the condition and the carried values before it
    env: dict[int, Any]
    containers: dict[int, Any] = field(default_factory=dict)  # that it changes
    growing: dict[int, Growing] = field(default_factory=dict)  # lists that become longer
    parts: list[Any] = field(default_factory=list)  # of the carried values and contents
    slots: list[Slot] = field(default_factory=list)
    written: dict[int, Any] = field(default_factory=dict)  # tensors from outside
    overwritten: set[int] = field(default_factory=set)  # slots whose tensors the body writes into

    @property
    def place(self) -> str:
        return str(self.step.place) or "an unknown place"

    @property
    def body(self) -> Block:
        return self.step.blocks[0]

    @property
    def template(self) -> Nest:
        return Nest(list, self.parts, list, (list, len(self.parts)))

    def first(self) -> list[Any]:
        """What it starts with."""
        return [*self.start, *map(contents_of, self.containers.values())]


class Loops(Control):
    """The interpreter's part for loops."""

    def loop(self, step: Step, values: list[Any], env: dict[int, Any]) -> None:
        """prim::Loop: iterations as long as their number and the conditions are known; then a loop in the program."""
        limit, condition, *carried = values
        (body,) = step.blocks
        count = 0
        limit = self.plain(limit)
        while True:
            going = self._going(count, limit, condition)
            if going is None or (going and self.active and count >= MOST_UNROLLED):
                carried = self._looped(_Loop(step, count, limit, [condition, *carried], env))
                break
            if not going:
                break
            env.update(zip(body.inputs, [count, *carried], strict=True))
            self.block(body, env)
            condition, *carried = [env[v] for v in body.outputs]
            count += 1
        env.update(zip(step.outputs, carried, strict=True))

    def _going(self, count: int, limit: Any, condition: Any) -> bool | None:
        if not self.active:
            return count < limit and bool(condition)
        going = self.known(condition if isinstance(condition, Number) else self.plain(condition))
        # torch takes it for known that a dynamic size is at least 2.
        within = None if is_symbolic(limit) else self.known(count < limit)
        return False if going is False or within is False else None if going is None or within is None else True

    def _looped(self, loop: _Loop) -> list[Any]:
        body, env = loop.body, loop.env
        for _ in range(MOST_ROUNDS):
            with self.quietly():
                free = [Number(torch.zeros((), dtype=torch.int64), "int"), *(self.stand_in(s) for s in loop.slots)]
            now = loop.first()
            assumed = [built(p, free[1:]) for p in loop.parts] if loop.parts else now
            env.update(zip(body.inputs, [free[0], *assumed[1 : len(loop.start)]], strict=True))
            contents = dict(zip(loop.containers, assumed[len(loop.start) :], strict=True))
            contents |= {key: own.contents() for key, own in loop.growing.items()}
            known = {**loop.containers, **{key: own.own for key, own in loop.growing.items()}}
            try:
                left = self.looked_at(body, env, contents, known, free)
            except _core.Error:
                raise
            except Exception:  # what the first iteration's numbers make of an example that ends before
                if loop.parts:
                    raise
                loop.parts = [freed(v, loop.slots) for v in now]
                continue
            after = [*left.values, *(left.contents(k, c) for k, c in loop.containers.items())]
            try:
                if self._settled(loop, left, after, now):
                    break
            except Differs as error:
                raise _core.ConversionError(
                    f"a loop ({loop.place}) whose number of iterations depends on data or on a dynamic size changes "
                    f"what it carries from one to the next: {error}"
                ) from None
        else:
            raise _core.ConversionError(f"a loop ({loop.place}) whose carried values do not settle")
        loop.overwritten = {i for i, v in enumerate(free[1:]) if isinstance(v, torch.Tensor) and v._version > 0}
        template, now = loop.template, loop.first()
        following = list(picked(template, after))
        self._check_carried(loop, list(picked(template, now)), following, free[1:], left)
        self._check_added(loop, following, left)
        for leaf, slot in zip(picked(template, now), loop.slots, strict=True):
            if slot.index in loop.overwritten and isinstance(leaf, torch.Tensor):
                self.twins.replace(leaf, loop.place)
        return self._recorded_loop(loop, left, after)

    def _settled(self, loop: _Loop, left: Left, after: list[Any], now: list[Any]) -> bool:
        """Notes what one more run of the body changes; whether that was known. Differs: no loop can carry it."""
        found = {k: own for k, (own, _) in left.changed.items() if k not in loop.containers and k not in loop.growing}
        longer = {}
        for key, own in found.items():
            made = growth(own, left.contents(key, own), self.rows(None, "")) if isinstance(own, list) else None
            if made is not None:
                longer[key] = made
        for key, grown in loop.growing.items():
            grown.take(left.contents(key, grown.own))
        found = {k: own for k, own in found.items() if k not in longer}
        wider: list[Slot] = []
        if loop.parts:
            made_parts = [widened(p, v, wider, alike) for p, v in zip(loop.parts, after, strict=True)]
        else:
            made_parts = [join(a, b, wider, alike) for a, b in zip(now, after, strict=True)]
        made_parts += [join(contents_of(own), left.contents(k, own), wider, alike) for k, own in found.items()]
        written = {id(t): t for t in left.written}
        settled = bool(loop.parts) and len(wider) == len(loop.slots) and not found and not longer
        settled = settled and written.keys() == loop.written.keys()
        loop.parts, loop.slots = made_parts, wider
        loop.containers |= found
        loop.growing |= longer
        loop.written = written
        return settled

    def _check_carried(
        self, loop: _Loop, first: Sequence[Any], following: Sequence[Any], free: Sequence[Any], left: Left
    ) -> None:
        """ConversionError: the body writes into a tensor that has, in some iteration, another name that it reads."""
        outside = {identity(own) for own, _ in left.level.tensors.values()}
        inside = {identity(inner) for _, inner in left.level.tensors.values()}
        changed = {identity(own) for own in left.written}
        changed_inside = {identity(inner) for own, inner in left.level.tensors.values() if identity(own) in changed}
        starts = [identity(v) if isinstance(v, torch.Tensor) else None for v in first]
        carried = [identity(v) if isinstance(v, torch.Tensor) else None for v in free]
        for i, (start, then) in enumerate(zip(starts, following, strict=True)):
            made = identity(then) if isinstance(then, torch.Tensor) else None
            others = {j: v for j, v in enumerate(carried) if j != i and v is not None}
            if i in loop.overwritten:
                shared = start in outside or starts.count(start) > 1 or made in inside or made in others.values()
            else:
                overwritten = {v for j, v in others.items() if j in loop.overwritten}
                shared = start in changed or made in changed_inside or made in overwritten
            if shared and start is not None:
                raise _core.ConversionError(
                    f"a loop ({loop.place}) whose number of iterations depends on data or on a dynamic size writes "
                    "into a tensor that it carries or reads under another name: change a copy"
                )

    def _check_added(self, loop: _Loop, following: Sequence[Any], left: Left) -> None:
        """ConversionError: a later iteration writes into a tensor that an earlier one has put into a list."""
        changed = {identity(own) for own in left.written}
        changed |= {identity(inner) for own, inner in left.level.tensors.values() if identity(own) in changed}
        changed |= {
            identity(v) for i, v in enumerate(following) if i in loop.overwritten and isinstance(v, torch.Tensor)
        }
        for grown in loop.growing.values():
            if any(isinstance(v, torch.Tensor) and identity(v) in changed for v in grown.added):
                raise _core.ConversionError(
                    f"a loop ({loop.place}) whose number of iterations depends on data or on a dynamic size writes "
                    "into a tensor that it has put into a list: put a copy there"
                )

    def _recorded_loop(self, loop: _Loop, left: Left, after: Sequence[Any]) -> list[Any]:
        first, template, written = loop.first(), loop.template, list(loop.written.values())
        if not self.levels or self.levels[-1].recorded:
            leaves, rows = (self._scan if loop.growing else self._while)(loop, left)
        else:
            self.read_by([left], written, loop.limit, *picked(template, first))
            leaves = [self.stand_in(slot) for slot in loop.slots]
            rows = [self._rows_stand_in(loop, grown) for grown in loop.growing.values()]
        values = built(template, leaves)
        unlooked = Left([], {}, Level(recorded=False), [], {}, Twins())
        self.twins.take(left.twins)
        self.note_twins(template, values, first, unlooked, len(loop.start))
        self.note_twins(template, values, list(after), left, len(loop.start))
        self._note_added(loop, left, leaves, rows, list(picked(template, after)))
        for container, contents in zip(loop.containers.values(), values[len(loop.start) :], strict=True):
            restore(self.changing(container), contents)
        for grown, made in zip(loop.growing.values(), rows, strict=True):
            restore(self.changing(grown.own), grown.contents(made))
        return list(values[1 : len(loop.start)])

    def _note_added(
        self, loop: _Loop, left: Left, leaves: Sequence[Any], rows: Sequence[Rows], following: Sequence[Any]
    ) -> None:
        """Of elements that were put into lists, which tensors they are beside."""
        for grown, made in zip(loop.growing.values(), rows, strict=True):
            for value in grown.added:
                if not isinstance(value, torch.Tensor) or made.kind != "tensor":
                    continue
                for outside in self.tensors_outside(value, left):
                    self.twins.join(made.tensor, outside)
                for leaf, then in zip(leaves, following, strict=True):
                    tensors = isinstance(then, torch.Tensor) and isinstance(leaf, torch.Tensor)
                    if tensors and identity(then) == identity(value):
                        self.twins.join(made.tensor, leaf)

    def _rows_stand_in(self, loop: _Loop, grown: Growing) -> Rows:
        kind, example = grown.kind()
        with self.quietly():
            shape = [] if kind != "tensor" else [self.plain(s) for s in example.shape]
            dtype = example.dtype if kind == "tensor" else self.tensor_of(example, kind).dtype
            count = (self.plain(loop.limit) - loop.count) * len(grown.added)
            made = torch.empty([count, *shape], dtype=dtype)
        self.note_made([made])
        return self.rows(made, kind)

    def _iteration(
        self, loop: _Loop, read: Sequence[Any], operands: Sequence[Any], names: dict[str, Any], given: Sequence[Any]
    ) -> tuple[list[Any], list[Any], list[Any]]:
        """Records the body, for the iteration, the slots, tensors that it writes and such that it reads.

        Returns the slots' values for the next iteration, what is in the written tensors, and what lists get.
        """
        at = 1 + len(loop.slots)
        written = list(loop.written.values())
        carried = given[at : at + len(written)]
        by_id = {id(t): v for t, v in zip(read, given[at + len(written) :], strict=False)}
        by_id |= {id(t): v for t, v in zip(written, carried, strict=True)}
        template, env, body = loop.template, loop.env, loop.body
        with self.recording(operands, names, [by_id[id(t)] for t in operands], written) as level:
            leaves = [
                Number(v, s.kind) if s.kind != "tensor" else v.clone() if s.index in loop.overwritten else v
                for v, s in zip(given[1:at], loop.slots, strict=True)
            ]
            values = built(template, leaves)
            count = len(loop.start)
            env.update(zip(body.inputs, [Number(given[0], "int"), *values[1:count]], strict=True))
            for container, contents in zip(loop.containers.values(), values[count:], strict=True):
                restore(self.changing(container), contents)
            for grown in loop.growing.values():
                restore(self.changing(grown.own), grown.contents())
            self.block(body, env)
            values = [*(env[v] for v in body.outputs), *map(contents_of, loop.containers.values())]
            following = [self.leaf_of(v, s, given) for v, s in zip(picked(template, values), loop.slots, strict=True)]
            added = []
            for grown in loop.growing.values():
                kind, example = grown.kind()
                slot = Slot(0, kind, example)
                added += [self.leaf_of(v, slot, given) for v in grown.between(contents_of(grown.own))]
            return following, [level.tensors[id(t)][1] for t in written], added

    def _while(self, loop: _Loop, left: Left) -> tuple[list[Any], list[Rows]]:
        written = list(loop.written.values())
        operands, names = self.operands_of([left], written)
        read = [t for t in operands if not any(t is w for w in written)]
        bound = None if isinstance(loop.limit, int) and loop.limit > _NO_LIMIT else self.tensor_of(loop.limit, "int")
        leaves = picked(loop.template, loop.first())
        own = [self.leaf_of(v, s, ()) for v, s in zip(leaves, loop.slots, strict=True)]
        carried = [self.tensor_of(loop.count, "int"), *own, *written]
        captured = [*read, *([] if bound is None else [bound])]
        condition = loop.parts[0] if isinstance(loop.parts[0], Slot) else None

        def again(*given: Any) -> Any:
            tests = []
            if bound is not None:
                tests.append(given[0] < given[-1])
            if condition is not None:
                tests.append(given[1 + condition.index].reshape([]))
            return tests[0] if len(tests) == 1 else torch.ops.aten.logical_and.default(tests[0], tests[1])

        def iteration(*given: Any) -> tuple[Any, ...]:
            following, after, _ = self._iteration(loop, read, operands, names, given)
            return (given[0] + 1, *following, *after)

        if bound is None and condition is None:
            raise _core.Unsupported(f"TorchScript: a loop ({loop.step.place}) without end")
        self.emitted += 1
        run = torch.ops.higher_order.while_loop
        made = list(run(again, iteration, tuple(carried), tuple(captured)))
        return self.results_after(made[1:], loop.slots, written), []

    def _scan(self, loop: _Loop, left: Left) -> tuple[list[Any], list[Rows]]:
        """A loop in which lists grow: as many iterations as its limit says."""
        going = loop.parts[0]
        if not isinstance(going, Same) or going.value is not True or not self._is_bounded(loop.limit):
            raise _core.ConversionError(
                f"a loop ({loop.place}) adds elements to a list until data end it: how many there are has to follow "
                "from sizes, as of `for i in range(x.size(0))` without `break` or `return`"
            )
        written = list(loop.written.values())
        operands, names = self.operands_of([left], written)
        read = [t for t in operands if not any(t is w for w in written)]
        leaves = picked(loop.template, loop.first())
        own = [self.leaf_of(v, s, ()) for v, s in zip(leaves, loop.slots, strict=True)]
        carried = [*own, *written] or [self.tensor_of(0, "int")]  # torch carries something
        steps = torch.ops.aten.arange.start(loop.count, self._size_of(loop.limit), dtype=torch.int64)
        dummy = not own and not written

        def iteration(*given: Any) -> tuple[Any, ...]:
            at = len(carried)
            front = () if dummy else given[:at]
            ordered = [given[at], *front, *given[at + 1 :]]
            following, after, added = self._iteration(loop, read, operands, names, ordered)
            return (*([given[0].clone()] if dummy else []), *following, *after, *added)

        self.emitted += 1
        run = torch.ops.higher_order.scan
        made = list(run(iteration, carried, [steps], tuple(read)))
        self.note_made(made)
        kept = self.results_after(made[: len(carried)] if not dummy else [], loop.slots, written)
        rows, place = [], len(carried)
        for grown in loop.growing.values():
            several = made[place : place + len(grown.added)]
            place += len(several)
            if grown.in_front:
                several = [v.flip(0) for v in several]
            joined = several[0] if len(several) == 1 else torch.stack(several, 1).flatten(0, 1)
            self.note_made([joined])
            rows.append(self.rows(joined, grown.kind()[0]))
        return kept, rows

    def _size_of(self, limit: Any) -> Any:
        """The limit as a size. One that is computed of dynamic sizes becomes a number of data: torch would take it for
        known that it is at least 2."""
        limit = self.plain(limit)
        if not is_symbolic(limit) or (alone(limit) and not unbacked(symbols_of(limit))):
            return limit
        size = self.tensor_of(limit, "int").item()
        check: Any = operator.attrgetter("_check")(torch)
        check(size > 0)  # so scan takes it; of the program, the loop may run no iteration
        return size

    def _is_bounded(self, limit: Any) -> bool:
        return not isinstance(limit, int) or limit <= _NO_LIMIT


__all__ = ["MOST_UNROLLED", "Loops"]
