"""A module's call from what a user gives as examples, and its dynamic dimensions from what a user gives as shapes.

Imports torch only when asked to.
"""

from __future__ import annotations

import dataclasses
import inspect
import keyword
import typing
from collections.abc import Iterator, Mapping, Sequence, ValuesView
from numbers import Number
from typing import TYPE_CHECKING, Any

import numpy as np

from pinnace import _core
from pinnace.arrays import as_tensor, input_array
from pinnace.files import one_line
from pinnace.torch.caches import is_cache, way_out
from pinnace.torch.detection import takes_images
from pinnace.types import Dim

if TYPE_CHECKING:
    import torch

_WANTED = "a tensor, an array, a number, or a tuple, list or dict of these"


def is_array(value: Any) -> bool:
    """A tensor, a numpy array, or what gives its memory by DLPack."""
    return isinstance(value, (np.ndarray, np.generic)) or hasattr(value, "__dlpack__")


def is_number(value: Any) -> bool:
    """A number of Python's, without element type; True and False too."""
    return isinstance(value, Number) and not isinstance(value, np.generic)


def is_numbers(value: Any) -> bool:
    """A list, perhaps of lists, of numbers alone: one array."""
    return isinstance(value, list) and bool(value) and all(is_number(v) or is_numbers(v) for v in value)


def one_or_several(example_inputs: Any) -> Any:
    """A mapping as it is, else the sequence of inputs: a lone array, number or list of numbers is the only one.

    InvalidArgument: of another kind, text or a table for instance.
    """
    if isinstance(example_inputs, (Mapping, tuple)):
        return example_inputs
    if example_inputs is None:
        return ()
    if is_array(example_inputs) or is_number(example_inputs) or is_numbers(example_inputs):
        return (example_inputs,)
    if isinstance(example_inputs, (list, Iterator, ValuesView)):
        return tuple(example_inputs)
    raise _wrong_kind("example_inputs", example_inputs)


def module_call(
    module: torch.nn.Module, example_inputs: Any, example_kwargs: Mapping[str, Any]
) -> tuple[tuple[Any, ...], dict[str, Any]]:
    """Arguments of the module's call, by position and by name, with arrays as tensors.

    InvalidArgument: an argument is of no kind that a call can have, or they do not fit forward().
    """
    given = (example_inputs,) if _is_list_argument(module, example_inputs) else one_or_several(example_inputs)
    args: tuple[Any, ...] = () if isinstance(given, Mapping) else given
    by_name = given if isinstance(given, Mapping) else {}
    named = {**example_kwargs, **by_name}
    _check_names(module, named)
    if twice := [name for name in by_name if name in example_kwargs]:
        raise _core.InvalidArgument(f"example_inputs and example_kwargs both have {twice[0]!r}")
    if len(args) == 1 and (is_number(args[0]) or is_numbers(args[0])) and not isinstance(example_inputs, tuple):
        args = (_numbers_tensor(args[0]),)
    seen: list[torch.Tensor] = []
    made = tuple(_argument(f"example_inputs[{i}]", value, seen) for i, value in enumerate(args))
    kwargs = {name: _argument(f"example_inputs[{name!r}]", value, seen) for name, value in named.items()}
    bound_arguments(module, made, kwargs)
    if (made or kwargs) and not seen:
        raise _core.InvalidArgument(
            f"example_inputs of {type(module).__name__} has no tensor or array, and the program would have no inputs: "
            "numbers and lists of numbers among the arguments are constants of the call. What is an input is an "
            "array: numpy.float32(2.0), numpy.array([1.0, 2.0])"
        )
    return made, kwargs


def _is_list_argument(module: torch.nn.Module, example_inputs: Any) -> bool:
    """Whether a list of arrays is the first argument itself."""
    is_list = type(example_inputs) is list and bool(example_inputs) and all(map(is_array, example_inputs))
    return is_list and takes_list(module)


def takes_list(module: torch.nn.Module) -> bool:
    """Whether the first argument is a list of tensors: forward() says so, or the module is one of torchvision's
    detectors, whose forward() need not say it."""
    import torch

    if takes_images(module):
        return True
    try:
        hints = typing.get_type_hints(module.forward)
        first = next(iter(inspect.signature(module.forward).parameters), "")
    except Exception:  # whatever evaluating the annotations of users raises
        return False
    hint = hints.get(first)
    return typing.get_origin(hint) in (list, Sequence) and typing.get_args(hint) == (torch.Tensor,)


def uncompiled(module: torch.nn.Module) -> torch.nn.Module:
    """The module that torch.compile was given: what it returns has neither its signature nor its name."""
    original = getattr(module, "_orig_mod", None)
    return module if original is None or type(module).__name__ != "OptimizedModule" else original


def bound_arguments(module: torch.nn.Module, args: Sequence[Any], kwargs: Mapping[str, Any]) -> dict[str, Any]:
    """Arguments by the names of forward()'s parameters, *args and **kwargs as one. InvalidArgument: they do not fit."""
    name = type(module).__name__
    signature = inspect.signature(module.forward)
    try:
        return dict(signature.bind(*args, **kwargs).arguments)
    except TypeError as error:
        if not args and not kwargs:
            raise _core.InvalidArgument(
                f"load({name}) needs example_inputs to export the module with: {name}.forward takes {signature}"
            ) from error
        one = kwargs and not args and len(signature.parameters) == 1
        hint = "; a dict gives arguments by name: for one argument that is a dict, write ({...},)" if one else ""
        raise _core.InvalidArgument(
            f"the example does not fit {name}.forward, which takes {signature}: {error}{hint}"
        ) from error


def named_dims(module: torch.nn.Module, dynamic_shapes: Any, args: Sequence[Any], kwargs: Mapping[str, Any]) -> Any:
    """dynamic_shapes with a Dim for each name, dimensions counted from the first, and those of a call's only argument
    in their place. Arguments that are not named have fixed sizes.

    InvalidArgument: an argument that the call does not have; dimensions of no argument, of a call with several; a
    dimension that a tensor does not have, or one given twice; a name that is no identifier; two ranges of one name.
    """
    if dynamic_shapes is None:
        return None
    bound = bound_arguments(module, args, kwargs)
    if isinstance(dynamic_shapes, Mapping) and dynamic_shapes and all(map(_is_index, dynamic_shapes)):
        if len(args) + len(kwargs) != 1:
            names = f"{{{', '.join(f'{n!r}: {{...}}' for n in kwargs) or '...'}}}" if not args else "({...}, {...})"
            raise _core.InvalidArgument(
                f"dynamic_shapes: {{dimension: name}} is for a call with one argument, this one has "
                f"{len(args) + len(kwargs)}; give one for each, such as {names}, with None for those that stay fixed"
            )
        kinds = inspect.signature(module.forward).parameters
        several = {name for name in bound if kinds[name].kind is inspect.Parameter.VAR_POSITIONAL}
        dynamic_shapes = {
            name: (dynamic_shapes,) if name in several else _for_each(value, dynamic_shapes)
            for name, value in bound.items()
        }
    elif isinstance(dynamic_shapes, Mapping):
        if unknown := [name for name in dynamic_shapes if name not in bound]:
            raise _core.InvalidArgument(
                f"dynamic_shapes: the call has no argument {', '.join(map(repr, unknown))}; it has "
                f"{', '.join(map(repr, bound)) or 'none'}"
            )
        dynamic_shapes = {name: dynamic_shapes.get(name) for name in bound}
    values = bound if isinstance(dynamic_shapes, Mapping) else list(bound.values())
    return _placed("dynamic_shapes", dynamic_shapes, values, _dims(dynamic_shapes))


def _for_each(value: Any, shapes: Any) -> Any:
    """Of a list of tensors, such as images: each has these shapes."""
    return [shapes] * len(value) if isinstance(value, list) else shapes


def _is_index(key: Any) -> bool:
    return isinstance(key, (int, np.integer)) and not isinstance(key, bool)


def _dims(shapes: Any) -> dict[str, Dim]:
    """By name, those with a range."""
    found: dict[str, Dim] = {}
    left = [shapes]
    while left:
        value = left.pop()
        if isinstance(value, Dim):
            other = found.setdefault(value.name, value)
            if other != value:
                raise _core.InvalidArgument(
                    f"dynamic_shapes: {value.name!r} is {other!r} and {value!r}; it is one size"
                )
        elif isinstance(value, (Mapping, list, tuple)):
            left.extend(value.values() if isinstance(value, Mapping) else value)
    return found


def _placed(place: str, shapes: Any, value: Any, dims: Mapping[str, Dim]) -> Any:
    """The part of dynamic_shapes for one value of the call; None for a value that is not known."""
    import torch

    name = shapes if isinstance(shapes, str) else shapes.name if isinstance(shapes, Dim) else None
    if name is not None:
        if not name.isidentifier() or keyword.iskeyword(name):
            raise _core.InvalidArgument(
                f"{place}: the name {name!r} is no identifier; torch takes letters, digits and _"
            )
        return dims.get(name) or Dim(name)
    if isinstance(shapes, Mapping):
        numbered: dict[Any, Any] = {}
        for key, item in shapes.items():
            at = _dimension(place, key, value) if isinstance(value, torch.Tensor) and _is_index(key) else key
            if at in numbered:
                raise _core.InvalidArgument(f"{place}: dimension {at} is given twice, once as {key}")
            inner = value.get(key) if isinstance(value, Mapping) else None
            numbered[at] = _placed(f"{place}[{key!r}]", item, inner, dims)
        return numbered
    if type(shapes) in (list, tuple):
        inner = value if isinstance(value, (list, tuple)) else ()
        return type(shapes)(
            _placed(f"{place}[{i}]", item, inner[i] if i < len(inner) else None, dims) for i, item in enumerate(shapes)
        )
    return shapes


def _dimension(place: str, key: Any, tensor: torch.Tensor) -> int:
    rank = tensor.dim()
    if not -rank <= key < rank:
        has = f"dimensions {-rank} to {rank - 1}" if rank else "no dimensions"
        raise _core.InvalidArgument(
            f"{place}: dimension {key} of a tensor of shape {list(tensor.shape)}, which has {has}"
        )
    return int(key) % rank


def _check_names(module: torch.nn.Module, kwargs: Mapping[Any, Any]) -> None:
    wrong = [name for name in kwargs if not isinstance(name, str)]
    if wrong:
        raise _core.InvalidArgument(
            f"example_inputs: the key {wrong[0]!r} is {_kind(wrong[0])}; it must be a name of an argument of "
            f"{type(module).__name__}.forward"
        )


def _numbers_tensor(value: Any) -> torch.Tensor:
    import torch

    try:
        return torch.tensor(value)
    except (ValueError, TypeError, OverflowError, RuntimeError) as error:
        raise _core.InvalidArgument(f"example_inputs is not an array: {one_line(error, 160)}") from error


def _argument(place: str, value: Any, seen: list[torch.Tensor]) -> Any:
    """One argument, in any nest of containers that torch knows, with its arrays as tensors; `seen` are the call's
    tensors so far."""
    from torch.utils import _pytree

    leaves, spec = _pytree.tree_flatten_with_path(value)
    made = [own_tensor(_leaf(f"{place}{_pytree.keystr(path)}", leaf), seen) for path, leaf in leaves]
    return _pytree.tree_unflatten(made, spec)


def own_tensor(value: Any, seen: list[torch.Tensor]) -> Any:
    """The value, or a copy of a tensor that the call has already: torch.export takes one tensor given twice for one
    input, and ignores what the second is in later calls."""
    import torch

    if not isinstance(value, torch.Tensor):
        return value
    own = value.detach().clone() if any(value is other for other in seen) else value
    seen.append(own)
    return own


def _leaf(place: str, value: Any) -> Any:
    import torch

    if value is None or isinstance(value, (torch.Tensor, str)) or is_number(value):
        return value
    if is_array(value):
        array = input_array(place, value)
        try:
            return as_tensor(array)
        except _core.InvalidArgument as error:
            raise _core.InvalidArgument(f"{place}: {error}") from error
    if type(value).__module__.partition(".")[0] == "torch":  # dtypes, devices and other things that torch exports
        return value
    raise _wrong_kind(place, value)


def _wrong_kind(place: str, value: Any) -> _core.InvalidArgument:
    return _core.InvalidArgument(f"{place} is {_kind(value)}; it must be {_WANTED}{_way_out(value)}")


def _kind(value: Any) -> str:
    if isinstance(value, type):
        return f"the class {value.__name__}"
    if inspect.isroutine(value):
        return f"the function {getattr(value, '__name__', '')!r}"
    if isinstance(value, str):
        return f"text ({value[:40]!r})"
    return "bytes" if isinstance(value, bytes) else f"of type {type(value).__name__}"


def _way_out(value: Any) -> str:
    """What gives the array in it, where it is known to have one."""
    if hasattr(value, "to_numpy"):
        return "; take the array from it with .to_numpy()"
    if hasattr(value, "__array__"):
        return "; take the array from it with numpy.asarray()"
    if is_cache(value):
        return way_out()
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return f"; torch knows a dataclass after torch.export.register_dataclass({type(value).__name__})"
    return "; call it, and give what it returns" if inspect.isroutine(value) else ""


__all__ = [
    "bound_arguments",
    "is_array",
    "is_number",
    "is_numbers",
    "module_call",
    "named_dims",
    "one_or_several",
    "own_tensor",
    "takes_list",
    "uncompiled",
]
