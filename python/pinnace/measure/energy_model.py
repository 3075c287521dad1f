"""A model of the energy of one run where nothing counts it: multiply-adds and bytes with published coefficients.

These are of one process and of simple machines, and what a run really moves is not known. The result is an order of
magnitude, says so by its bounds, and is called modelled everywhere.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from pinnace import _core
from pinnace.measure.energy import Energy
from pinnace.measure.place import devices_of
from pinnace.program import Program, core_of
from pinnace.session import Session
from pinnace.types import Array

_HOROWITZ = "M. Horowitz, Computing's energy problem (and what we can do about it), ISSCC 2014: 45 nm, 0.9 V"
_DALLY = "W. Dally, keynote at DAC 2021 (Semiconductor Engineering, January 2022): process not stated"
FACTOR = 10.0  # the error either way


@dataclass(frozen=True)
class Coefficient:
    """Picojoules for each `of`, and where that is from."""

    picojoules: float
    of: str
    source: str


# Multiplications and additions together; those of bytes are summed in 32 bits.
COEFFICIENTS = {
    "fp32": Coefficient(4.6, "multiply-add of fp32: 3.7 and 0.9", _HOROWITZ),
    "fp16": Coefficient(1.5, "multiply-add of fp16, which stands for bf16 too: 1.1 and 0.4", _HOROWITZ),
    "int8": Coefficient(0.3, "multiply-add of int8: 0.2 and 0.1 for 32 bits", _HOROWITZ),
    "cpu instruction": Coefficient(70.0, "instruction of a processor: fetching, decoding, registers", _HOROWITZ),
    "gpu instruction": Coefficient(30.0, "multiply-add of a GPU's thread: fetching, decoding, registers", _DALLY),
    "cache": Coefficient(100 / 8, "byte of a cache of 1 MB: 100 for 8 bytes", _HOROWITZ),
    "dram": Coefficient(1950 / 8, "byte of DRAM: 1300 to 2600 for 8 bytes, of which the middle", _HOROWITZ),
}

# Bits of a register, by the end of a kernel's name; the longest name that fits counts. Those of SVE are 128 at least.
_REGISTER_BITS = {
    "generic": 128,
    "avx2": 256,
    "avx_vnni": 256,
    "avx512": 512,
    "avx512_vnni": 512,
    "avx512_bf16": 512,
    "amx_int8": 512,
    "amx_bf16": 512,
    "neon_dotprod": 128,
    "neon_i8mm": 128,
    "sve": 128,
}
_TILE = {"amx_int8": 16384, "amx_bf16": 8192}  # multiply-adds of an instruction
_NO_DOT_PRODUCT = ("generic", "avx2", "avx512")  # three instructions for what one does elsewhere, on bytes
_SETS = re.compile("|".join(sorted(_REGISTER_BITS, key=len, reverse=True)))
_GPUS = ("vulkan", "metal")


def modelled_energy(
    session: Session, program: Program, inputs: Mapping[str, Array], software: bool, why: str
) -> Energy:
    """Of one run of a session that has run on these inputs.

    software  whether this processor stands in for the session's device.
    why       why it was not measured.
    """
    try:
        parts = _picojoules(session, program, inputs, software)
    except _core.Unsupported as error:
        return Energy("none", why=f"{why}; not modelled either: {error}")
    joules = sum(parts.values()) * 1e-12
    source = "coefficients of the literature: " + ", ".join(
        f"{name} {share / sum(parts.values()):.0%}" for name, share in parts.items() if share
    )
    return Energy("modelled", joules, joules / FACTOR, joules * FACTOR, source=source, why=why)


def _picojoules(session: Session, program: Program, inputs: Mapping[str, Array], software: bool) -> dict[str, float]:
    """By what they are spent on: arithmetic, instructions, cache, dram. Unsupported: some are not known."""
    places = {place.node: place for place in session.placement if not place.path}
    if software and devices_of(session):
        raise _core.Unsupported("this processor stands in for the device, for which there are no coefficients")
    if any(place.backend == "nnapi" for place in places.values()):
        raise _core.Unsupported("there are no coefficients for what stands behind NNAPI")
    trial = program.try_shapes([inputs[name].shape for name in program.inputs], details=True)
    if not trial.fits:
        raise _core.Unsupported(f"the sizes are not known: {trial.failure}")
    constants = {row["name"]: row["bytes"] for row in core_of(program).constants}
    spent = {"arithmetic": 0.0, "instructions": 0.0, "cache": 0.0, "dram": float(sum(constants.values()))}
    sizes: dict[str, int] = {}
    for name, value in trial.values.items():
        if name not in constants and None not in value.shape:
            sizes[name] = math.prod(size or 0 for size in value.shape) * np.dtype(_dtype(value.dtype)).itemsize
    for node in trial.nodes:
        if node.multiply_adds is None:
            raise _core.Unsupported(f"the sizes of node {node.name!r} depend on data")
        backend, kernel = (places[node.name].backend, places[node.name].kernel) if node.name in places else ("cpu", "")
        first = trial.values.get(node.inputs[0]) if node.inputs else None
        kind = _arithmetic(first.dtype if first else "float32", session.precision)
        spent["arithmetic"] += node.multiply_adds * COEFFICIENTS[kind].picojoules
        if backend in _GPUS:
            spent["instructions"] += node.multiply_adds * COEFFICIENTS["gpu instruction"].picojoules
        else:
            each = multiply_adds_of_an_instruction(kernel, kind)
            spent["instructions"] += node.multiply_adds / each * COEFFICIENTS["cpu instruction"].picojoules
        spent["cache"] += sum(sizes.get(name, 0) for name in (*node.inputs, *node.outputs))
    read = {name for node in trial.nodes for name in node.inputs}
    results = {name for node in trial.nodes for name in node.outputs} - read
    spent["dram"] += sum(array.nbytes for array in inputs.values()) + sum(sizes.get(name, 0) for name in results)
    spent["cache"] *= COEFFICIENTS["cache"].picojoules
    spent["dram"] *= COEFFICIENTS["dram"].picojoules
    return spent


def _arithmetic(dtype: str, precision: str) -> str:
    """Which coefficient a node's multiply-adds have, by the type of its first input."""
    if dtype in ("int8", "uint8"):
        return "int8"
    if dtype in ("float16", "bfloat16") or (dtype == "float32" and precision in ("fp16", "bf16")):
        return "fp16"
    return "fp32"  # and wider types, which have none of their own


def multiply_adds_of_an_instruction(kernel: str, kind: str) -> float:
    """By the instruction set in the kernel's name, 128 bits where it has none; reference code takes one at a time."""
    if kernel == "reference":
        return 1.0
    found = _SETS.search(kernel)
    name = found[0] if found else "generic"
    if name in _TILE and (kind == "int8") == (name == "amx_int8"):
        return _TILE[name]
    bits = _REGISTER_BITS[name]
    if kind == "int8":
        return bits / 8 / (3 if name in _NO_DOT_PRODUCT else 1)
    return bits / (16 if kind == "fp16" else 32)


def _dtype(name: str) -> str:
    """What stands for it in numpy, which has none of 16 bits with the exponent of 32, nor of less than 8."""
    try:
        return np.dtype(name).name
    except TypeError:
        return "float16" if name == "bfloat16" else "uint8"


__all__ = ["COEFFICIENTS", "FACTOR", "Coefficient", "modelled_energy", "multiply_adds_of_an_instruction"]
