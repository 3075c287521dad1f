"""load()'s `stream`: the inputs that come in chunks, and their axes of time, which a module's export leaves dynamic."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from typing import Any

from pinnace import _core
from pinnace.types import Dim


def stream_axes(stream: Any) -> dict[str, int]:
    """load()'s `stream`: input name -> its axis of time. InvalidArgument: it is anything else."""
    if not isinstance(stream, Mapping) or not stream:
        raise _core.InvalidArgument(
            f"stream is a dict input name -> axis of time, such as {{'audio': 2}}, is {stream!r}"
        )
    for name, axis in stream.items():
        if not isinstance(name, str) or isinstance(axis, bool) or not isinstance(axis, int):
            raise _core.InvalidArgument(f"stream: {name!r}: {axis!r} is no input name with an axis")
    return dict(stream)


def dynamic_time(arguments: Mapping[str, Any], streams: Mapping[str, int], refusals: Sequence[str] = ()) -> Any:
    """dynamic_shapes of a module with the streams' axes dynamic, at sizes that torch suggested when refusing others;
    None where a stream is no argument by itself. InvalidArgument: an argument has no such axis.
    """
    if not set(streams) <= set(arguments):
        return None
    name = re.sub(r"\W", "_", next(iter(streams))) + "_time"
    least = max([0, *(int(n) for text in refusals for n in re.findall(rf"\b{name}', min=(\d+)", text))])
    multiple = math.lcm(*(int(n) for text in refusals for n in re.findall(rf"\b{name} = (\d+)\*_{name}\b", text)))
    shapes: dict[str, Any] = dict.fromkeys(arguments)
    for argument, axis in streams.items():
        rank = getattr(arguments[argument], "ndim", 0)
        if not -rank <= axis < rank:
            raise _core.InvalidArgument(f"stream: {argument!r} has {rank} dimensions, its axis of time is {axis}")
        time = Dim(name, -(-least // multiple) * multiple, multiple_of=multiple)
        shapes[argument] = {axis + rank if axis < 0 else axis: time}
    return shapes


__all__ = ["dynamic_time", "stream_axes"]
