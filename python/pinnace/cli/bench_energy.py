"""`pinnace bench --energy`: measured where the system counts energy, else modelled, and what is said of it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from functools import partial

from pinnace import _core
from pinnace.measure.counters import Meter, Rapl, find_meter
from pinnace.measure.energy import Energy, measured_energy
from pinnace.measure.energy_model import FACTOR, modelled_energy
from pinnace.measure.place import devices_of
from pinnace.measure.runs import OTHERS_LIMIT
from pinnace.program import Program
from pinnace.session import Session
from pinnace.types import Array


class Energies:
    """Gives the energy of one run, session by session, with the meter that was found when it was made."""

    def __init__(self) -> None:
        """Looks for a meter."""
        self._meter: Meter | None = None
        self._why = ""
        try:
            self._meter = find_meter()
        except _core.Unsupported as error:
            self._why = str(error)

    def of(self, session: Session, program: Program, inputs: Mapping[str, Array], software: bool) -> Energy:
        """session: has run on `inputs`; software: whether this processor stands in for its device. What
        Session.run() raises."""
        if self._meter is None:
            return modelled_energy(session, program, inputs, software, self._why)
        try:
            found = measured_energy(partial(session.run, inputs), self._meter)
        except _core.Unsupported as error:
            return modelled_energy(session, program, inputs, software, str(error))
        if not software and devices_of(session) and isinstance(self._meter, Rapl):
            missing = "what a device draws that is not in the processor's package is missing"
            return replace(found, source=f"{found.source}; {missing}")
        return found


def energy_text(energy: Energy) -> str:
    """As a part of a line."""
    if energy.joules is None or energy.low is None or energy.high is None:
        return f"no energy: {energy.why}"
    if energy.kind == "modelled":
        return (
            f"energy modelled, not measured: about {joules_text(energy.joules, 1)} a run, within a factor of "
            f"{FACTOR:g} either way ({energy.source}); {energy.why}"
        )
    before, after = energy.idle_watts or (0.0, 0.0)
    return (
        f"energy measured: median {joules_text(energy.joules)} a run (p10 {joules_text(energy.low)}, p90 "
        f"{joules_text(energy.high)}, {energy.repetitions} repetitions) by {energy.source}, less idle power of "
        f"{before:.3g} W before and {after:.3g} W after"
    )


def energy_cell(energy: Energy) -> str:
    """For a table: a figure is never without the word modelled where it is not measured. A ~ stands before one that
    other programs disturbed."""
    if energy.joules is None or energy.low is None or energy.high is None:
        return "none"
    digits = 1 if energy.kind == "modelled" else 3
    figures = [joules_text(x, digits) for x in (energy.joules, energy.low, energy.high)]
    disturbed = energy.others is not None and energy.others > OTHERS_LIMIT
    word = "modelled: about " if energy.kind == "modelled" else "~" if disturbed else ""
    return f"{word}{figures[0]} ({figures[1]} to {figures[2]})"


def joules_text(joules: float, digits: int = 3) -> str:
    """With a unit that leaves few zeros: "41.2 mJ"."""
    for unit, size in (("J", 1.0), ("mJ", 1e-3), ("µJ", 1e-6)):
        if abs(joules) >= size:
            return f"{float(f'{joules / size:.{digits}g}'):g} {unit}"
    return f"{float(f'{joules / 1e-9:.{digits}g}'):g} nJ"


__all__ = ["Energies", "energy_cell", "energy_text", "joules_text"]
