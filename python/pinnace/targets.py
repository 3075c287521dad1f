"""Targets of this build: which of them can run on this machine."""

from __future__ import annotations

from dataclasses import dataclass

from pinnace import _core

# What drivers of Vulkan that compute on the processor call themselves.
_SOFTWARE_DRIVERS = ("llvmpipe", "lavapipe", "swiftshader")


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

    @property
    def software(self) -> bool:
        """Whether this machine's processor stands in for the device: softmetal, Vulkan in software, an NNAPI library
        that computes on the processor (pinnace's own, or Android's reference). Answers there are worth as much as a
        device's, times are not. False for the target cpu: it is that processor.
        """
        target, said = self.target.partition(":")[0], self.description.lower()
        if target == "nnapi":
            return said.startswith(("pinnace-cpu ", "nnapi-reference "))
        return target == "softmetal" or ", software" in said or said.startswith(_SOFTWARE_DRIVERS)


def devices() -> list[Device]:
    """Every target of this build, in the order in which "auto" prefers them, the CPU last.

    A target that cannot run here is no error: its description is the reason.
    """
    return [Device(**row) for row in _core.devices()]


__all__ = ["Device", "devices"]
