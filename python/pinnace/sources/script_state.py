"""What a scripted module keeps in attributes between calls: which of them are state of a session, and from where on.

A call may make its own start: attributes that are empty or zero at first and have another shape or a fixed value from
the first call on. Such a module starts from zeros of the later shapes, if that gives the same results bit by bit.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import torch

from pinnace import _core
from pinnace.sources.kept_attributes import CALLS, MOST_NAMED, other_call
from pinnace.torch.isolation import isolated_inference
from pinnace.torchscript.interpreter import Attribute, ScriptInterpreter, ScriptState
from pinnace.torchscript.values import is_symbolic, number_dtype, number_kind, same_bits

Make = Callable[[], ScriptInterpreter]
_RULE = "A state is a tensor of one shape and type, or a number: make it an input and an output"


@dataclass
class _Ran:
    outputs: list[Any]
    values: list[dict[Attribute, Any]]


def script_state(make: Make, args: Sequence[Any], kwargs: Mapping[str, Any]) -> ScriptState:
    """make: an interpreter of the module in its initial state.

    ConversionError: an attribute that later calls depend on is neither a tensor of one shape and type nor a number.
    """
    with isolated_inference():
        own = make()
        if not own.keeps_attributes:
            return ScriptState()
        initial = _copied(own.initial_values())
        calls = [(args, kwargs), *(other_call(args, kwargs, seed) for seed in range(1, CALLS))]
        try:
            ran = _run(make(), calls, {})
        except _core.Error:
            raise
        except Exception:  # what an example of other values makes the module do
            calls = [(args, kwargs)] * CALLS
            ran = _run(make(), calls, {})
        changed = [at for at in ran.values[0] if not all(same_bits(initial.get(at), v.get(at)) for v in ran.values)]
        if not changed or _same_without(make, calls, ran, changed):
            return ScriptState(dropped=set(changed))
        kept = [at for at in changed if not _same_without(make, calls, ran, [at])] or changed
        return _settled(make, calls, ran, initial, kept, changed)


def with_unsettled(make: Make, state: ScriptState, found: Mapping[Attribute, Any]) -> ScriptState:
    """The state with more attributes: few calls do not show what the hundredth one does.

    found: what a recorded call leaves in attributes that it reads and changes. Of those that the calls have changed
    without another result, tensors whose shapes change stay out: they cache something.
    ConversionError: such an attribute is neither a tensor of one shape and type nor a number.
    """
    with isolated_inference():
        initial = make().initial_values()
    made = ScriptState(dict(state.kept), set(state.numbers), dict(state.fixed), set(state.dropped))
    for at, value in found.items():
        before = initial.get(at)
        kind = number_kind(before)
        if kind and number_kind(value) == kind:
            made.kept[at] = torch.tensor(before, dtype=number_dtype(kind))
            made.numbers.add(at)
        elif isinstance(before, torch.Tensor) and isinstance(value, torch.Tensor) and _alike(before, value):
            made.kept[at] = before.detach().clone()
        elif at not in state.dropped:
            kinds = " then ".join(dict.fromkeys((_kind(before), _kind(value))))
            raise _core.ConversionError(
                f"forward() keeps state between calls in {_names([at])} ({kinds}), which not every call changes. "
                f"{_RULE}"
            )
        made.fixed.pop(at, None)
    return made


def _alike(before: torch.Tensor, value: torch.Tensor) -> bool:
    fixed = not any(map(is_symbolic, value.shape))
    return fixed and before.shape == value.shape and before.dtype == value.dtype


def _same_without(make: Make, calls: Sequence[tuple[Any, Any]], ran: _Ran, reset: Sequence[Attribute]) -> bool:
    """Whether the calls give the same where each starts with the initial values of those attributes."""
    try:
        return same_bits(ran.outputs, _run(make(), calls, {}, reset).outputs)
    except Exception:  # initial values that do not fit the others
        return False


def _settled(
    make: Make,
    calls: Sequence[tuple[Any, Any]],
    ran: _Ran,
    initial: Mapping[Attribute, Any],
    kept: Sequence[Attribute],
    changed: Sequence[Attribute],
) -> ScriptState:
    for settle_numbers in (True, False):
        made = ScriptState()
        others = []
        for at in (*kept, *(at for at in changed if at not in kept)):
            before, later = initial.get(at), [v.get(at) for v in ran.values]
            steady = all(same_bits(v, later[0]) for v in later)
            if isinstance(later[0], torch.Tensor) and all(map(_like(later[0]), later)):
                as_before = isinstance(before, torch.Tensor) and _like(before)(later[0])
                if at in kept or not as_before:
                    first: Any = before if as_before else torch.zeros_like(later[0])
                    made.kept[at] = first.clone()
            elif steady and not _has_tensors(later[0]) and (settle_numbers or not number_kind(before)):
                made.fixed[at] = later[0]
            elif number_kind(before) and all(number_kind(v) == number_kind(before) for v in later):
                if at in kept:
                    made.kept[at] = torch.tensor(before, dtype=number_dtype(number_kind(before)))
                    made.numbers.add(at)
            elif at in kept:
                others.append(at)
        made.dropped = set(changed) - made.kept.keys() - made.fixed.keys()
        if others:
            raise _refusal(others, initial, ran)
        start: dict[Attribute, Any] = {**made.kept, **made.fixed}
        start = {at: _number(value) if at in made.numbers else value for at, value in start.items()}
        again = _run(make(), calls, start)
        if same_bits(ran.outputs, again.outputs):
            return made
    raise _core.ConversionError(
        f"forward() computes {_names(kept)} anew in its first call, from which later calls go on, and starting from "
        "zeros gives other results: make what is kept between calls an input and an output"
    )


def _number(value: Any) -> Any:
    return value.item()


def _run(
    run: ScriptInterpreter,
    calls: Sequence[tuple[Any, Any]],
    start: Mapping[Attribute, Any],
    reset: Sequence[Attribute] = (),
) -> _Ran:
    """Calls in a row, each with what the one before left, but for attributes that are reset."""
    initial = {at: v for at, v in _copied(run.initial_values()).items() if at in reset}
    made = _Ran([], [])
    run.start = _copied(dict(start))
    torch.manual_seed(0)
    for args, kwargs in calls:
        with torch.no_grad():
            made.outputs.append(_copied(run(*args, **kwargs)))
        after = _copied(run.after)
        made.values.append(after)
        run.start = {**after, **_copied(initial)}
    return made


def _copied(value: Any) -> Any:
    """With tensors of its own: the next call may write into them."""
    if isinstance(value, torch.Tensor):
        return value.detach().clone()
    if isinstance(value, dict):
        return {k: _copied(v) for k, v in value.items()}
    if isinstance(value, list):
        return [_copied(v) for v in value]
    if type(value) is tuple:
        return tuple(_copied(v) for v in value)
    return value


def _like(a: torch.Tensor) -> Callable[[Any], bool]:
    return lambda b: isinstance(b, torch.Tensor) and b.shape == a.shape and b.dtype == a.dtype


def _has_tensors(value: Any) -> bool:
    if isinstance(value, (list, tuple)):
        return any(map(_has_tensors, value))
    return isinstance(value, torch.Tensor) or (isinstance(value, dict) and any(map(_has_tensors, value.values())))


def _names(kept: Sequence[Attribute]) -> str:
    names = [repr(f"{path}.{name}" if path else name) for path, name in kept]
    more = f" and {len(names) - MOST_NAMED} more" if len(names) > MOST_NAMED else ""
    return ", ".join(names[:MOST_NAMED]) + more


def _kind(value: Any) -> str:
    if isinstance(value, torch.Tensor):
        return f"{str(value.dtype).removeprefix('torch.')}{list(value.shape)}"
    return "None" if value is None else f"{type(value).__name__}"


def _refusal(others: Sequence[Attribute], initial: Mapping[Attribute, Any], ran: _Ran) -> _core.ConversionError:
    at = others[0]
    kinds = " then ".join(dict.fromkeys(_kind(v) for v in (initial.get(at), *(v.get(at) for v in ran.values))))
    return _core.ConversionError(f"forward() keeps state between calls in {_names(others)} ({kinds}). {_RULE}")


__all__ = ["script_state", "with_unsettled"]
