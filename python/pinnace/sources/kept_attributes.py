"""State that a module's forward() keeps in plain attributes. torch.export takes their values for constants; as buffers
they become states of a session.

Imports torch only when asked to.
"""

from __future__ import annotations

import functools
from collections import deque
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from pinnace import _core
from pinnace.sources.torch_tensors import output_tensors, version
from pinnace.torch.isolation import isolated_inference

if TYPE_CHECKING:
    import torch

_NOW = "_pinnace_now"  # the attribute with the values of kept attributes during a call
CALLS = 3  # in which a state has to show: a delay of one call shows in the second, a change of a number at the latest
MOST_NAMED = 3  # attributes that a message names
_NUMBERS = (bool, int, float)


@dataclass(frozen=True)
class KeptAttribute:
    """An attribute whose value a call leaves to the next one, which computes with it."""

    path: str  # of the submodule; "" for the module itself
    name: str
    initial: Any  # a tensor
    is_number: bool  # of Python's

    @property
    def full_name(self) -> str:
        """As of a buffer: "encoder.seen"."""
        return f"{self.path}.{self.name}" if self.path else self.name


def kept_attributes(
    original: torch.nn.Module, make: Callable[[], torch.nn.Module], args: Sequence[Any], kwargs: Mapping[str, Any]
) -> list[KeptAttribute]:
    """The attributes that forward() changes and whose change later calls depend on.

    original: the module, whose tensors share memory as its copies' may not. make: gives a copy of it in its initial
    state. The module is called once; where that changes an attribute, it is called several times, with and without the
    changes. Attributes that only cache or note something are none of them. A module that cannot be called counts as one
    without such attributes: the export says what is wrong with it.

    ConversionError: such an attribute is neither a tensor of one shape and type nor a number, or it shares its memory
    with another attribute, a buffer or a parameter.
    """
    try:
        changed, shared = _changes(original, make(), args, kwargs)
        if changed and not shared:
            ran = _Ran(make, args, kwargs)
            left, values = ran.outputs(())
            if _same(left, ran.outputs(changed)[0]):
                return []
            kept = [at for at in changed if not _same(left, ran.outputs([at])[0])] or changed
    except Exception:  # whatever the user's code raises
        return []
    if shared:
        raise _core.ConversionError(shared)
    if not changed:
        return []
    module = make()
    held = {at: [vars(module.get_submodule(at[0])).get(at[1]), *(v.get(at) for v in values)] for at in kept}
    initial = {at: _initial(values[0], values[1:]) for at, values in held.items()}
    refused = [at for at in kept if initial[at] is None]
    if refused:
        raise _core.ConversionError(_refusal(module, {at: held[at] for at in refused}))
    return [KeptAttribute(*at, initial[at], type(held[at][0]) in _NUMBERS) for at in kept]


def _changes(
    original: torch.nn.Module, copied: torch.nn.Module, args: Sequence[Any], kwargs: Mapping[str, Any]
) -> tuple[list[tuple[str, str]], str]:
    """The attributes that a call of the copy changes, and what _shared_memory() says of it."""
    with isolated_inference():
        before, versions = _images(copied), {name: version(tensor) for name, tensor in _registered(copied)}
        values = {at: vars(copied.get_submodule(at[0]))[at[1]] for at in before}
        copied(*args, **kwargs)
        after = _images(copied)
        changed = [at for at in {**before, **after} if before.get(at) != after.get(at)]
        # An attribute that is set to another tensor has left the memory that it shared.
        same = {at for at in changed if at in values and vars(copied.get_submodule(at[0])).get(at[1]) is values[at]}
        written = {name for name, tensor in _registered(copied) if versions.get(name) != version(tensor)}
        return changed, _shared_memory(original, same, written, set(changed) - same)


def _registered(module: torch.nn.Module) -> Iterator[tuple[str, torch.Tensor]]:
    """(kind and name, tensor) of buffers and parameters."""
    yield from ((f"buffer {name!r}", tensor) for name, tensor in module.named_buffers())
    yield from ((f"parameter {name!r}", tensor) for name, tensor in module.named_parameters())


def _shared_memory(
    module: torch.nn.Module,
    changed: Collection[tuple[str, str]],
    written: Collection[str],
    replaced: Collection[tuple[str, str]],
) -> str:
    """What to say where an attribute is a tensor in the memory of another one, a buffer or a parameter, and forward()
    writes to one of them: both change, which two states do not. Empty: none is.

    changed: attributes that are written to. written: names of _registered() that are. replaced: attributes that a call
    sets to another value, which are left out.
    """
    owners: dict[int, tuple[str, bool]] = {}  # by address: who, and whether it is written to
    for name, tensor in _registered(module):
        owners.setdefault(_address(tensor), (name, name in written))
    for path, name in _attributes(module):
        value = vars(module.get_submodule(path))[name]
        if (path, name) in replaced or not (address := _address(value)):
            continue
        full, changes = f"{path}.{name}" if path else name, (path, name) in changed
        owner, is_written = owners.setdefault(address, (f"attribute {full!r}", changes))
        if owner == f"attribute {full!r}" or not (changes or is_written):
            continue
        if any(value is tensor for _, tensor in _registered(module)):
            continue  # another name of the same tensor
        return (
            f"attribute {full!r} of {type(module).__name__} shares memory with {owner}, and forward() writes to it: "
            "keep one of them, and make the other of it in forward()"
        )
    return ""


def _address(value: Any) -> int:
    """Of the memory that a tensor has; 0: it is none, or has none of its own to point to."""
    import torch

    if not isinstance(value, torch.Tensor) or value.layout != torch.strided or not value.numel():
        return 0
    try:
        return value.untyped_storage().data_ptr()
    except (RuntimeError, NotImplementedError):  # subclasses without memory
        return 0


def with_buffers(module: torch.nn.Module, kept: Sequence[KeptAttribute]) -> torch.nn.Module:
    """The module, changed: what a call leaves in those attributes is in buffers of their names.

    During a call the attributes are values like any others, of which code may keep an earlier one; the call ends with
    a copy of the last into the buffer.
    """
    parts: dict[str, list[KeptAttribute]] = {"": []}
    for attribute in kept:
        parts.setdefault(attribute.path, []).append(attribute)
    for path, attributes in parts.items():
        part = module.get_submodule(path)
        for attribute in attributes:
            delattr(part, attribute.name)
            part.register_buffer(attribute.name, attribute.initial.clone())
        kind = type(part)
        members: dict[str, Any] = {a.name: property(_reader(a.name, a.is_number)) for a in attributes}
        members["__setattr__"] = _writer(kind, set(members))
        if not path:
            members["forward"] = _forward_that_keeps(kind, set(parts))
        members |= {"__module__": kind.__module__, "__qualname__": kind.__qualname__, "__doc__": kind.__doc__}
        part.__class__ = type(kind.__name__, (kind,), members)
    return module


def _reader(name: str, is_number: bool) -> Callable[[Any], Any]:
    """What a call reads in place of a buffer. A number is another tensor each time: an operator in place must not
    change what was read before."""

    def read(self: Any) -> Any:
        now = vars(self).setdefault(_NOW, {})
        if name not in now:
            now[name] = self._buffers[name].clone()
        return now[name].clone() if is_number else now[name]

    return read


def _writer(kind: Any, names: set[str]) -> Callable[[Any, str, Any], None]:
    """__setattr__ of a submodule in which a call writes those names: a module would put tensors into its buffers."""

    def write(self: Any, name: str, value: Any) -> None:
        import torch

        if name not in names:
            kind.__setattr__(self, name, value)
            return
        tensor = value if isinstance(value, torch.Tensor) else torch.tensor(value, dtype=self._buffers[name].dtype)
        vars(self).setdefault(_NOW, {})[name] = tensor

    return write


def _forward_that_keeps(kind: Any, paths: set[str]) -> Callable[..., Any]:
    """forward() of the module itself, which ends with what the submodules of those paths keep in their buffers."""

    @functools.wraps(kind.forward)
    def forward(self: Any, *args: Any, **kwargs: Any) -> Any:
        parts = [self.get_submodule(path) for path in paths]
        try:
            made = kind.forward(self, *args, **kwargs)
            for part in parts:
                for name, value in vars(part).get(_NOW, {}).items():
                    part._buffers[name].copy_(value)
            return made
        finally:
            for part in parts:
                vars(part).pop(_NOW, None)

    return forward


def attribute_values(module: torch.nn.Module, kept: Sequence[KeptAttribute]) -> dict[str, torch.Tensor]:
    """Their values in a module whose attributes they still are, by full name."""
    import torch

    found = {}
    for attribute in kept:
        value: Any = functools.reduce(
            getattr, attribute.full_name.split("."), module
        )  # scripts have no get_submodule()
        is_tensor = isinstance(value, torch.Tensor)
        found[attribute.full_name] = value.detach() if is_tensor else torch.tensor(value, dtype=attribute.initial.dtype)
    return found


class _Ran:
    """Calls in a row of a fresh copy, the first with the example, the others with noise added to its floats, unless
    the module does not take those. Each starts with some attributes put back to their initial values."""

    def __init__(self, make: Callable[[], torch.nn.Module], args: Sequence[Any], kwargs: Mapping[str, Any]) -> None:
        self._make = make
        self._calls = [(args, kwargs), *(other_call(args, kwargs, seed) for seed in range(1, CALLS))]
        try:
            self.outputs(())
        except Exception:  # whatever the user's code raises
            self._calls = [(args, kwargs)] * CALLS

    def outputs(self, reset: Sequence[tuple[str, str]]) -> tuple[list[torch.Tensor], list[dict[tuple[str, str], Any]]]:
        """All outputs, and the attributes' values after each call."""
        outputs: list[torch.Tensor] = []
        values = []
        with isolated_inference():  # the same random numbers each time
            module = self._make()
            for args, kwargs in self._calls:
                fresh = self._make() if reset else module
                for path, name in reset:
                    own, initial = vars(module.get_submodule(path)), vars(fresh.get_submodule(path))
                    own.pop(name, None)
                    if name in initial:
                        own[name] = initial[name]
                outputs += [t.detach().clone() for t in output_tensors(module(*args, **kwargs))]
                values.append({at: _value(module, *at) for at in _attributes(module)})
        return outputs, values


def _value(module: torch.nn.Module, path: str, name: str) -> Any:
    """A tensor as a copy, since the next call may write into it."""
    import torch

    value = vars(module.get_submodule(path))[name]
    return value.detach().clone() if isinstance(value, torch.Tensor) else value


def _attributes(module: torch.nn.Module) -> Iterator[tuple[str, str]]:
    """(path of a submodule, name) of what is neither parameter, buffer, submodule nor torch's own."""
    import torch

    own = {*vars(torch.nn.Module()), "_is_hf_initialized"}
    for path, part in module.named_modules():
        yield from ((path, name) for name in vars(part) if name not in own)


def _images(module: torch.nn.Module) -> dict[tuple[str, str], Any]:
    """What tells whether an attribute has changed, also inside of containers and objects of the user's classes. What a
    buffer in one of them holds is state of the module anyhow."""
    buffers = {id(buffer): buffer for buffer in module.buffers()}
    return {
        (path, name): _image(vars(module.get_submodule(path))[name], dict(buffers))
        for path, name in _attributes(module)
    }


def _image(value: Any, seen: dict[int, Any]) -> Any:
    import torch

    if id(value) in seen:
        return "seen"
    if isinstance(value, torch.Tensor):
        return ("tensor", _Same(value), version(value))
    if isinstance(value, np.ndarray):
        return ("array", value.dtype, value.shape, value.tobytes())
    if value is None or isinstance(value, (*_NUMBERS, complex, str, bytes)):
        return (type(value), repr(value))
    seen[id(value)] = value
    if isinstance(value, Mapping):
        return (type(value), [(_image(k, seen), _image(v, seen)) for k, v in value.items()])
    if isinstance(value, (list, tuple, deque)):
        return (type(value), [_image(v, seen) for v in value])
    if isinstance(value, (set, frozenset)):
        return (type(value), sorted(map(repr, value)))
    own = getattr(value, "__dict__", None)
    if type(own) is dict and not isinstance(value, (type, torch.nn.Module)) and not callable(value):
        return (_Same(value), [(name, _image(v, seen)) for name, v in own.items()])
    return _Same(value)


class _Same:
    """Equal where the object is the same one, which lives on meanwhile."""

    def __init__(self, value: Any) -> None:
        self._value = value

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Same) and self._value is other._value

    def __hash__(self) -> int:
        return id(self._value)


def other_call(args: Sequence[Any], kwargs: Mapping[str, Any], seed: int) -> tuple[Sequence[Any], Mapping[str, Any]]:
    """The call with noise of up to twice their largest magnitude added to its floats."""
    import torch
    from torch.utils import _pytree

    random = torch.Generator().manual_seed(seed)

    def other(value: Any) -> Any:
        if not isinstance(value, torch.Tensor) or not value.is_floating_point() or not value.numel():
            return value
        noise = torch.rand(value.shape, generator=random).to(value) * 4 - 2
        return value.detach() + noise * value.detach().abs().max().clamp(min=1)

    made: tuple[Sequence[Any], Mapping[str, Any]] = _pytree.tree_map(other, (tuple(args), dict(kwargs)))
    return made


def _same(a: Sequence[torch.Tensor], b: Sequence[torch.Tensor]) -> bool:
    import torch

    return len(a) == len(b) and all(
        x.shape == y.shape and x.dtype == y.dtype and torch.equal(x.nan_to_num(), y.nan_to_num())
        for x, y in zip(a, b, strict=True)
    )


def _initial(initial: Any, after: Sequence[Any]) -> torch.Tensor | None:
    """The value before the first call as a tensor of the type that later ones have; None: they are of several kinds."""
    import torch

    if type(initial) is torch.Tensor and initial.layout == torch.strided:
        like = all(isinstance(v, torch.Tensor) and v.shape == initial.shape and v.dtype == initial.dtype for v in after)
        return initial.detach().clone() if like else None
    if type(initial) not in _NUMBERS:
        return None
    if all(type(v) is type(initial) for v in after):
        return torch.tensor(initial, dtype=torch.float64 if type(initial) is float else None)
    if all(isinstance(v, torch.Tensor) and v.dim() == 0 and v.dtype == after[0].dtype for v in after):
        return torch.tensor(initial, dtype=after[0].dtype)
    return None


def _refusal(module: torch.nn.Module, held: Mapping[tuple[str, str], Sequence[Any]]) -> str:
    """held: the values that each attribute had, one after the other."""
    named = []
    for (path, name), values in list(held.items())[:MOST_NAMED]:
        kinds = " then ".join(dict.fromkeys(map(_kind, values)))
        place = f"{type(module.get_submodule(path)).__name__} {path!r}" if path else type(module).__name__
        named.append(f"{name!r} of {place} ({kinds})")
    more = f" and {len(held) - MOST_NAMED} more" if len(held) > MOST_NAMED else ""
    return (
        f"forward() of {type(module).__name__} keeps state between calls in {', '.join(named)}{more}. A state is a "
        "tensor of one shape and type, or a number: use register_buffer(), or make it an input and an output. To "
        "convert what the first call computes, load() its ExportedProgram"
    )


def _kind(value: Any) -> str:
    import torch

    if isinstance(value, torch.Tensor):
        return f"{str(value.dtype).removeprefix('torch.')}{list(value.shape)}"
    return "None" if value is None else f"a {type(value).__name__}"


__all__ = ["KeptAttribute", "attribute_values", "kept_attributes", "other_call", "with_buffers"]
