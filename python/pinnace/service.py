"""Service: what an application wishes of its sessions beside right results."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from operator import index
from os import PathLike, fspath
from typing import Any, SupportsFloat

from pinnace import _core

__all__ = ["PREFERENCES", "PRIORITIES", "Service", "core_service"]

# The words of C++'s Service.
PREFERENCES = ("low_power", "fast_single_answer", "sustained_speed")
PRIORITIES = ("low", "medium", "high")


@dataclass(frozen=True, kw_only=True)
class Service:
    """Quality of service of a session, for Session(service=). A member that is left out leaves the matter to the back
    end and, for NNAPI, to its environment variables, over which members win. No member changes a result. What a back
    end has no use of, its first node's notice in `placement` says.

    preference    "low_power", "fast_single_answer" or "sustained_speed". NNAPI hands it to the driver. On the CPU
                  "low_power" lets workers sleep between the loops of a run and keeps runs on the processors of the
                  slowest kind, where the system lists several kinds; "fast_single_answer" is how the CPU works anyway.
    priority      "low", "medium" or "high": beside other applications. NNAPI from feature level 4 on.
    deadline      seconds for a compilation, and for each run of a compiled part, on a device; a part that misses it
                  goes to the next target. NNAPI from feature level 4 on. The timeout of Session.run ends runs on every
                  back end.
    loop_timeout  seconds for each loop whose turns are not counted; one that takes longer ends its run with Cancelled.
    cache_folder  where the driver keeps what it compiled: made if it is not there, passed over with a notice where
                  others may write to it. NNAPI from feature level 3 on.
    device        the device by its name, as devices() has it. NNAPI from feature level 3 on.
    processors    the processors, by the system's numbers, that runs stay on, the calling thread's part included; with
                  threads=0 a run uses as many threads. Linux alone.

    InvalidArgument: a word that is not listed here, or a time that is not above 0. TypeError: a member of another type.
    Session() raises InvalidArgument for a processor that the calling thread may not use; Unsupported for a device that
    is not there and for processors elsewhere than on Linux.
    """

    preference: str = ""
    priority: str = ""
    deadline: float | None = None
    loop_timeout: float | None = None
    cache_folder: str | PathLike[str] = ""
    device: str = ""
    processors: Sequence[int] = ()

    def __post_init__(self) -> None:
        """Refuses what is none of these, before a session is made."""
        for name, words in (("preference", PREFERENCES), ("priority", PRIORITIES), ("device", ())):
            value = getattr(self, name)
            if not isinstance(value, str):
                raise TypeError(f"{name} must be text, is {value!r}")
            if words and value and value not in words:
                raise _core.InvalidArgument(f"{name} is {value!r}, must be one of {', '.join(words)}")
        for name in ("deadline", "loop_timeout"):
            value = getattr(self, name)
            if value is not None and (isinstance(value, bool) or not isinstance(value, SupportsFloat)):
                raise TypeError(f"{name} must be a number of seconds, or None, is {value!r}")
        given: Any = self.processors
        if isinstance(given, str) or not isinstance(given, Iterable):
            raise TypeError(f"processors must be a list of numbers, is {given!r}")
        try:
            numbers = tuple(index(number) for number in given)
        except TypeError:
            raise TypeError(f"processors must be whole numbers, are {given!r}") from None
        object.__setattr__(self, "processors", numbers)
        core_service(self)


def core_service(service: Service | None) -> _core.Service:
    """The extension's. Raises InvalidArgument for what is no Service and for times, TypeError for members of a wrong
    type."""
    chosen = Service() if service is None else service
    if not isinstance(chosen, Service):
        raise _core.InvalidArgument(f"service must be a Service, is {type(service).__name__}")
    return _core.Service(
        chosen.preference,
        chosen.priority,
        chosen.deadline,
        chosen.loop_timeout,
        fspath(chosen.cache_folder),
        chosen.device,
        list(chosen.processors),
    )
