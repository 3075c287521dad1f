"""`pinnace bench --energy`: measured where something counts, else modelled, and never one called the other."""

from __future__ import annotations

import json
import re
from pathlib import Path

import numpy as np
import pinnace as pn
import pytest
from energy_test import NET, PACKAGES, TARGETS, Machine, zones
from pinnace import _core, cli
from pinnace.cli import bench_energy
from pinnace.cli.bench_energy import energy_cell, energy_text, joules_text
from pinnace.measure.counters import Rapl, find_meter
from pinnace.measure.energy import Energy

X = {"x": np.ones((1, 64, 8, 8), np.float32)}


def net() -> pn.Program:
    return pn.Program(_core.Model.parse(NET).build(["cpu"]))


@pytest.fixture
def program(tmp_path: Path) -> Path:
    path = tmp_path / "net.pnc"
    net().save(path)
    return path


def test_the_command_models_where_nothing_counts(
    program: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(bench_energy, "find_meter", lambda: find_meter(tmp_path / "a", tmp_path / "b"))
    bench = ["bench", str(program), "--runs", "2", "--energy"]
    assert cli.main(bench) == 0
    line = capsys.readouterr().out
    assert "energy modelled, not measured: about " in line
    assert "within a factor of 10 either way" in line
    assert "has no RAPL counter of a package" in line
    assert "energy measured" not in line
    assert cli.main([*bench, "--json"]) == 0
    (row,) = json.loads(capsys.readouterr().out)
    assert row["energy"]["kind"] == "modelled"
    assert row["energy"]["high"] == pytest.approx(100 * row["energy"]["low"])
    assert cli.main([*bench, "--table", "--target", "cpu", "--threads", "1"]) == 0
    page = capsys.readouterr().out
    assert re.search(r"\| cpu fp32 +\| +modelled: about \d", page)
    assert cli.main(["bench", str(program), "--runs", "2", "--json"]) == 0
    assert "energy" not in json.loads(capsys.readouterr().out)[0]


def test_the_command_measures_where_something_counts(
    program: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    machine = Machine(lambda _: 10.0, lambda _: 0.04)
    monkeypatch.setattr(bench_energy, "find_meter", lambda: machine)
    monkeypatch.setattr(bench_energy, "measured_energy", lambda _, meter: meter.measured())
    assert cli.main(["bench", str(program), "--runs", "2", "--energy", "--json"]) == 0
    (row,) = json.loads(capsys.readouterr().out)
    assert (row["energy"]["kind"], row["energy"]["repetitions"]) == ("measured", 5)
    machine.busy = lambda _: -0.01
    assert cli.main(["bench", str(program), "--runs", "2", "--energy", "--json"]) == 0
    (row,) = json.loads(capsys.readouterr().out)
    assert row["energy"]["kind"] == "modelled"
    assert "cannot be told from 10 W of idle power" in row["energy"]["why"]


@pytest.mark.skipif("softmetal" not in TARGETS, reason="softmetal is not in this build")
def test_a_device_of_its_own_is_not_in_a_package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    meter = Rapl(zones(tmp_path, PACKAGES))
    monkeypatch.setattr(bench_energy, "find_meter", lambda: meter)
    monkeypatch.setattr(bench_energy, "measured_energy", lambda _, m: Energy("measured", 1, 1, 1, 5, source=m.source))
    for target, software, missing in (("softmetal", False, True), ("softmetal", True, False), ("cpu", False, False)):
        session = pn.Session(net(), target, 1)
        session.run(X)
        found = bench_energy.Energies().of(session, session.program, X, software)
        assert ("is missing" in found.source) == missing


def test_what_is_said_of_energy() -> None:
    measured = Energy("measured", 0.0412, 0.0401, 0.0430, 7, (12.31, 12.52), "RAPL package-0, dram", others=0.01)
    assert energy_text(measured) == (
        "energy measured: median 41.2 mJ a run (p10 40.1 mJ, p90 43 mJ, 7 repetitions) by RAPL package-0, dram, less "
        "idle power of 12.3 W before and 12.5 W after"
    )
    assert energy_cell(measured) == "41.2 mJ (40.1 mJ to 43 mJ)"
    assert energy_cell(Energy("measured", 2.0, 1.0, 3.0, 7, (1, 1), "", others=0.5)) == "~2 J (1 J to 3 J)"
    guess = Energy("modelled", 0.00695, 0.000695, 0.0695, source="coefficients", why="no counters")
    assert energy_cell(guess) == "modelled: about 7 mJ (700 µJ to 70 mJ)"
    assert energy_text(Energy("none", why="no counters")) == "no energy: no counters"
    assert energy_cell(Energy("none", why="no counters")) == "none"
    assert [joules_text(x) for x in (1234.5, 1.0, 0.00052, 3.2e-8, 0.0)] == ["1230 J", "1 J", "520 µJ", "32 nJ", "0 nJ"]
