"""`pinnace bench --table`: what each back end takes on 1, 2 and 4 cores, and how busy it keeps the processor."""

from __future__ import annotations

import argparse
import datetime
import itertools
import platform
import sys
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

from pinnace import _core
from pinnace.agreement import agreement, bounds_of
from pinnace.cli.bench_energy import Energies
from pinnace.measure.cores import Column, columns, kept_on, own_processors
from pinnace.measure.energy import Energy
from pinnace.measure.place import device_of, devices_of
from pinnace.measure.runs import Runs, calmest_runs, time_runs
from pinnace.program import Program
from pinnace.progress import phase
from pinnace.session import Session, nodes_on
from pinnace.targets import Device, devices
from pinnace.types import Array
from pinnace.verify.comparison import compare

CORES = (1, 2, 4)
CELL_SECONDS = 2.0  # after which a cell is done, if it has had a few runs


@dataclass(frozen=True)
class Cell:
    """A row's figures for a number of cores.

    normalised_ms  the median of one run times the number of cores.
    energy         of one run; None where it was not asked for.
    """

    cores: int
    runs: Runs
    normalised_ms: float
    energy: Energy | None = None


@dataclass
class Row:
    """One target in one precision.

    device       what it runs on.
    software     whether this processor stands in for a device.
    offloaded    how many nodes run on a device other than the processor.
    nodes_there  of the nodes that compute something in a run, how many run on the target's own back end.
    nodes_all    how many there are.
    difference   the largest of its outputs from those of cpu in fp32, relative to an output's largest magnitude.
    why          why it was not timed; empty where it was.
    wrong        whether that is because its answers differ or it failed.
    cells        by number of cores.
    """

    target: str
    precision: str
    device: str
    software: bool
    offloaded: int = 0
    nodes_there: int = 0
    nodes_all: int = 0
    difference: float = 0.0
    why: str = ""
    wrong: bool = False
    cells: list[Cell] = field(default_factory=list)

    @property
    def name(self) -> str:
        """What the row is called: "vulkan fp16"."""
        return f"{self.target} {self.precision}"


@dataclass(frozen=True)
class Table:
    """What `pinnace bench --table` found.

    program      the file's name.
    about        processor, system, date and release, by name.
    unavailable  targets of this build that cannot run here, with the reason.
    """

    program: str
    about: dict[str, str]
    columns: list[Column]
    rows: list[Row]
    unavailable: dict[str, str]

    @property
    def ok(self) -> bool:
        """False if a row's answers differ or it failed."""
        return not any(row.wrong for row in self.rows)


def bench_table(program: Program, inputs: Mapping[str, Array], options: argparse.Namespace) -> Table:
    """Compares the answers of each target with those of cpu in fp32, then times the targets whose answers are right.

    Without --target each one that can run here. What Session raises, for targets that --target names; InvalidArgument:
    --threads has 0, which is no number of cores.
    """
    counts = sorted(set(options.threads or CORES))
    if counts[0] == 0:
        raise _core.InvalidArgument("--threads: a column of --table is for 1 core and more, not 0")
    known = devices()
    processor = next((d.description for d in known if d.target == "cpu"), "")
    rows = [
        _row(target, precision, known)
        for target, precision in itertools.product(options.target or _by_default(known), options.precision or ["fp32"])
    ]
    with phase("comparing answers"):
        want = Session(program, "cpu", pack_cache=not options.no_pack_cache).run(inputs)
        for row in rows:
            _check(row, program, inputs, want, known, options)
    energies = Energies() if options.energy else None
    found = columns(counts, own_processors())
    with phase("timing"):
        for column in found:
            if not column.why:
                _time(column, rows, program, inputs, options, energies)
    about = {
        "processor": processor,
        "system": f"{platform.machine()}, {platform.system()} {platform.release()}",
        "date": datetime.datetime.now(datetime.UTC).strftime("%Y-%m-%d"),
        "pinnace": f"{sys.modules['pinnace'].__version__}, built from {_core.built_from[:12]}",
    }
    left = {d.target: d.description for d in known if not d.available} if not options.target else {}
    return Table(Path(options.program).name, about, found, rows, left)


def _by_default(known: Sequence[Device]) -> list[str]:
    """The processor first, which the others are compared with."""
    there = [device.target for device in known if device.available]
    return sorted(there, key=lambda target: target != "cpu")


def _row(target: str, precision: str, known: Sequence[Device]) -> Row:
    device = device_of(target, known)
    return Row(target, precision, device.description, device.software)


def _check(
    row: Row,
    program: Program,
    inputs: Mapping[str, Array],
    want: Mapping[str, Array],
    known: Sequence[Device],
    options: argparse.Namespace,
) -> None:
    """Fills in where the row's nodes run, how far its answers are from `want`, and why it is not timed."""
    try:
        session = _session(row, program, 0, options)
        got = session.run(inputs)
    except (_core.Unsupported, _core.DeviceLost) as error:
        if options.target:
            raise
        row.why, row.wrong = str(error), isinstance(error, _core.DeviceLost)
        return
    device = device_of(row.target, known, session)
    row.device, row.software = device.description, device.software
    row.nodes_there, row.nodes_all = nodes_on(session, row.target)
    if row.nodes_all and not row.nodes_there:
        reasons = dict.fromkeys(reason for place in session.placement for reason in place.why)
        row.why = "; ".join(["no node runs there", *list(reasons)[:2]])
        return
    if not row.software:
        others = devices_of(session)
        row.offloaded = sum(place.backend in others for place in session.placement)
    bounds = bounds_of(session.precision)
    verdicts = {name: agreement(got[name], value, bounds) for name, value in want.items()}
    row.difference = max((verdict.relative for verdict in verdicts.values()), default=0.0)
    if all(verdict.ok for verdict in verdicts.values()):
        return
    # Values behind a rounding may differ by more: whether that explains it, a whole comparison says.
    compared = compare(program, program, inputs, targets=[row.target], precision=[row.precision])
    if not all(line.ok for line in compared.rows if line.output):
        name, worst = max(verdicts.items(), key=lambda item: (not item[1].ok, item[1].relative))
        row.why, row.wrong = f"output {name!r} differs from cpu's: {worst.why}", True


def _session(row: Row, program: Program, threads: int, options: argparse.Namespace) -> Session:
    return Session(program, row.target, threads, row.precision, pack_cache=not options.no_pack_cache)


def _time(
    column: Column,
    rows: Sequence[Row],
    program: Program,
    inputs: Mapping[str, Array],
    options: argparse.Namespace,
    energies: Energies | None,
) -> None:
    with kept_on(column.processors):
        for row in rows:
            if row.why:
                continue
            session = _session(row, program, column.cores, options)
            session.run(inputs)
            runs = calmest_runs(partial(time_runs, partial(session.run, inputs), options.runs, CELL_SECONDS))
            energy = energies.of(session, program, inputs, row.software) if energies is not None else None
            row.cells.append(Cell(column.cores, runs, runs.ms.median * column.cores, energy))


def table_facts(table: Table) -> dict[str, Any]:
    """The table for json_text(), with what its figures mean."""
    meant = {name: text for name, text in DEFINITIONS.items() if name != "energy" or has_energy(table)}
    return {"definitions": meant, **asdict(table), "ok": table.ok}


def has_energy(table: Table) -> bool:
    """Whether energy was asked for."""
    return any(cell.energy is not None for row in table.rows for cell in row.cells)


DEFINITIONS = {
    "latency": "milliseconds of one run from Python, arrays in and out: median (p10 to p90)",
    "normalised latency": "median latency times the number of cores that the process was kept on",
    "CPU consumption": "processor seconds of the whole process by seconds, during the runs: median (p10 to p90) of "
    "turns of 10 ms and more; 1.00 is one processor that is always busy",
    "energy": "of one run, less idle power before and after, by counters of the system: median (p10 to p90); or "
    "modelled from multiply-adds and bytes, an order of magnitude and no measurement",
}


__all__ = ["CORES", "DEFINITIONS", "Cell", "Row", "Table", "bench_table", "has_energy", "table_facts"]
