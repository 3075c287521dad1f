"""Targets of this build: which of them can run on this machine."""

from __future__ import annotations

from dataclasses import dataclass

from pinnace import _core


@dataclass(frozen=True)
class Device:
    """A target of this build on this machine.

    target       what Session(target=...) and --target take: "cpu", "vulkan", "vulkan:1".
    available    whether programs can run there.
    description  the device: processor and instruction sets, the GPU's name; where it is not available, the reason.
    """

    target: str
    available: bool
    description: str


def devices() -> list[Device]:
    """Every target of this build, in the order in which "auto" prefers them, the CPU last.

    A target that cannot run here is no error: its description is the reason.
    """
    return [Device(**row) for row in _core.devices()]


__all__ = ["Device", "devices"]
