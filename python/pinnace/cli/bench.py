"""`pinnace bench`: times a .pnc file."""

from __future__ import annotations

import argparse
import itertools
import time
from dataclasses import asdict
from functools import partial

from pinnace.cli.arguments import feed
from pinnace.cli.bench_energy import Energies, energy_text
from pinnace.cli.bench_table import bench_table, table_facts
from pinnace.cli.bench_text import table_text
from pinnace.cli.output import show
from pinnace.cli.timing import Timing
from pinnace.measure.place import device_of
from pinnace.measure.runs import OTHERS_LIMIT, time_runs
from pinnace.program import Program
from pinnace.session import Session
from pinnace.targets import devices
from pinnace.types import json_text


def bench_command(options: argparse.Namespace) -> int:
    """Times a .pnc file; with --table, 1 if the answers of a target differ or it fails."""
    program = Program.open(options.program)
    inputs = feed(program, options)
    if options.table:
        table = bench_table(program, inputs, options)
        show(json_text(table_facts(table), indent=1) if options.json else table_text(table))
        return 0 if table.ok else 1
    energies = Energies() if options.energy else None
    known = devices() if energies else []
    rows, joules, others = [], [], []
    for target, precision in itertools.product(options.target or ["cpu"], options.precision or ["fp32"]):
        for threads in options.threads or [1]:
            start = time.perf_counter()
            session = Session(program, target, threads, precision, pack_cache=not options.no_pack_cache)
            session.run(inputs)
            first = time.perf_counter() - start
            runs = time_runs(partial(session.run, inputs), options.runs)
            others.append(runs.others)
            rows.append(
                Timing(
                    target=target,
                    precision=precision,
                    threads=threads,
                    runs=runs.runs,
                    median_ms=runs.ms.median,
                    p10_ms=runs.ms.p10,
                    p90_ms=runs.ms.p90,
                    create_and_first_run_ms=first * 1e3,
                    peak_bytes=session.plan.peak_bytes,
                    reference_code=session.profile(inputs).reference_code,
                    cpu_per_wall=runs.cpu_per_wall.median,
                )
            )
            if energies is not None:
                software = device_of(target, known, session).software
                joules.append(energies.of(session, program, inputs, software))
    if options.json:
        more = [{"energy": asdict(energy)} for energy in joules] or [{}] * len(rows)
        facts = zip(rows, others, more, strict=True)
        show(json_text([asdict(row) | {"others": load} | energy for row, load, energy in facts]))
    else:
        for row, load, energy in itertools.zip_longest(rows, others, joules):
            disturbed = load is not None and load > OTHERS_LIMIT
            said = f"; disturbed: other programs used {load:.2f} of a processor" if disturbed else ""
            show(row, said, f"; {energy_text(energy)}" if energy is not None else "")
    return 0


__all__ = ["bench_command"]
