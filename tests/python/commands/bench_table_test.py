"""`pinnace bench --table`: answers are compared before anything is timed, columns that cannot be given say why,
software devices are labelled, and the same figures stand in Markdown and in JSON.
"""

from __future__ import annotations

import contextlib
import json
import os
from collections.abc import Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pinnace as pn
import pytest
from command_line import Command
from pinnace import _core
from pinnace.cli import bench_table
from pinnace.cli.bench_table import Cell, Row, Table
from pinnace.cli.bench_text import markdown_table, table_text
from pinnace.measure import cores
from pinnace.measure.cores import Column, Together, own_processors
from pinnace.measure.runs import Runs, Spread

NET = """graph "net" {
  input %x : f32[1,4,16,16]
  const %w : f32[4,4,1,1] = {1,2,3,4,5,6,7,8,9,10,11,12,13,14,15,16}
  %c = conv(%x, %w)
  %y = relu(%c)
  output "y" %y
}"""
DOUBLES = """graph "doubles" {
  input %x : f64[64]
  %y = add(%x, %x)
  output "y" %y
}"""
TARGETS = [device.target for device in pn.devices() if device.available]


@pytest.fixture
def pinnace(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Command:
    """The command, on a machine whose processors are cores."""
    monkeypatch.setattr(cores, "together", lambda _: Together(0.97, 0.0))

    return Command(capsys)


def saved(text: str, path: Path) -> Path:
    pn.Program(_core.Model.parse(text).build(["cpu"])).save(path)
    return path


@pytest.fixture
def net(tmp_path: Path) -> Path:
    return saved(NET, tmp_path / "net.pnc")


def tables_of(text: str) -> list[list[list[str]]]:
    """The cells of each table of a page in Markdown."""
    blocks = [block.splitlines() for block in text.split("\n\n") if block.startswith("|")]
    return [[[cell.strip() for cell in line.strip("|").split("|")] for line in block] for block in blocks]


def test_tables_of_every_target(pinnace: Command, net: Path) -> None:
    answer = pinnace("bench", net, "--table", "--runs", "5")
    assert (answer.status, answer.err) == (0, "")
    latency, normalised, consumption = tables_of(answer.out)
    assert latency[0] == ["back end", "1 core", "2 cores", "4 cores"]
    assert latency[1] == ["---", "---:", "---:", "---:"] or all(set(cell) <= {"-", ":"} for cell in latency[1])
    names = [f"{t} fp32" + (" (software)" if t != "cpu" else "") for t in ["cpu", *(t for t in TARGETS if t != "cpu")]]
    for table in (latency, normalised, consumption):
        assert [row[0] for row in table[2:]] == names
    assert consumption[0][1] == "offload"
    assert {row[1] for row in consumption[2:]} == {
        "none: the processor itself", *(["none: software on this processor"] if len(names) > 1 else []),
    }  # fmt: skip
    processors = len(own_processors() or [])
    for count, column in ((1, 1), (2, 2), (4, 3)):
        filled = [row[column] != "-" for row in latency[2:]]
        assert all(filled) if count <= processors else not any(filled)
        if count > processors:
            assert f"- {count} cores: no figures, as the process may use {processors} processor" in answer.out
    assert "the answers of each row were compared with those of cpu in fp32" in answer.out.replace("\n", " ")
    # As text: lines of a table are equally long, and those of the rest no longer than a page has room for.
    for block in answer.out.split("\n\n"):
        lines = block.splitlines()
        assert len({len(line) for line in lines}) == 1 if block.startswith("|") else max(map(len, lines)) <= 120


def test_the_table_as_json(pinnace: Command, net: Path) -> None:
    answer = pinnace("bench", net, "--table", "--json", "--target", "cpu", "--threads", "1,1000", "--runs", "5")
    assert (answer.status, answer.err) == (0, "")
    facts = json.loads(answer.out)
    assert facts["program"] == "net.pnc"
    assert {"processor", "system", "date", "pinnace"} == set(facts["about"])
    assert set(facts["definitions"]) == {"latency", "normalised latency", "CPU consumption"}
    one, many = facts["columns"]
    assert (one["cores"], one["why"]) == (1, "")
    assert many["why"].startswith("the process may use ")
    (row,) = facts["rows"]
    assert (row["target"], row["software"], row["offloaded"], row["why"]) == ("cpu", False, 0, "")
    (cell,) = row["cells"]
    assert (cell["cores"], cell["runs"]["runs"]) == (1, 5)
    assert cell["normalised_ms"] == cell["runs"]["ms"]["median"]
    assert 0 < cell["runs"]["ms"]["p10"] <= cell["runs"]["ms"]["median"] <= cell["runs"]["ms"]["p90"]
    assert cell["runs"]["cpu_per_wall"]["median"] > 0
    # Without --table the rows of old, which scripts read.
    rows = json.loads(pinnace("bench", net, "--json", "--runs", "2").out)
    assert [(row["target"], row["threads"]) for row in rows] == [("cpu", 1)]


def test_columns_that_are_no_cores(pinnace: Command, net: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bench_table, "own_processors", lambda: [0, 1])
    monkeypatch.setattr(cores, "together", lambda _: Together(0.51, 0.0))
    monkeypatch.setattr(bench_table, "kept_on", lambda _: contextlib.nullcontext())
    answer = pinnace("bench", net, "--table", "--target", "cpu", "--runs", "2")
    assert answer.status == 0
    assert "they are no 2 cores" in answer.out
    assert [cell == "-" for cell in tables_of(answer.out)[0][2][1:]] == [False, True, True]


def test_wrong_use(pinnace: Command, net: Path) -> None:
    for arguments, part in (
        (["--threads", "0,1"], "--threads: a column of --table is for 1 core and more, not 0"),
        (["--threads", "-1"], "whole number"),
        (["--target", "tpu"], "'tpu' is not known"),
        (["--precision", "fp7"], "fp7"),
    ):
        answer = pinnace("bench", net, "--table", *arguments)
        assert (answer.status, answer.out) == (2, ""), arguments
        assert part in answer.err
    answer = pinnace("bench", net, "--table", "--target", "metal")
    assert (answer.status, answer.out) == (1, "")
    assert "'metal' is not in this build" in answer.err


class Crooked:
    """A session whose answers are wrong."""

    def __init__(self, session: pn.Session) -> None:
        self.session = session
        self.placement, self.precision = session.placement, session.precision

    def run(self, inputs: Any) -> dict[str, np.ndarray]:
        return {name: value * 1.01 for name, value in self.session.run(inputs).items()}


@pytest.mark.parametrize("excused", [False, True])
def test_answers_are_compared_before_anything_is_timed(
    pinnace: Command, net: Path, monkeypatch: pytest.MonkeyPatch, excused: bool
) -> None:
    """A target with other answers is not timed, unless the whole comparison finds them explained by a rounding."""
    made, events = bench_table._session, []

    def crooked(row: Row, *arguments: Any) -> Any:
        session = made(row, *arguments)
        return Crooked(session) if row.target == "cpu:generic" else session

    def timed(run: Any, most: int, seconds: float) -> Runs:
        events.append("time")
        run()
        return Runs(1, Spread(1, 1, 1), Spread(1, 1, 1), 1, 1.0, None)

    def compared(*_: Any, targets: Sequence[str], precision: Sequence[str]) -> Any:
        assert (targets, precision) == (["cpu:generic"], ["fp32"])
        events.append("compare")
        return SimpleNamespace(rows=[SimpleNamespace(output=True, ok=excused), SimpleNamespace(output=False, ok=False)])

    monkeypatch.setattr(bench_table, "_session", crooked)
    monkeypatch.setattr(bench_table, "time_runs", timed)
    monkeypatch.setattr(bench_table, "compare", compared)
    targets = ["--target", "cpu", "--target", "cpu:generic"]
    answer = pinnace("bench", net, "--table", "--json", "--threads", "1", *targets)
    straight, crooked_row = json.loads(answer.out)["rows"]
    assert events == ["compare", "time", *(["time"] if excused else [])]
    assert len(straight["cells"]) == 1
    assert crooked_row["difference"] == pytest.approx(0.01, rel=0.01)
    if excused:
        assert (answer.status, crooked_row["why"], len(crooked_row["cells"])) == (0, "", 1)
        return
    assert (answer.status, crooked_row["wrong"], crooked_row["cells"]) == (1, True, [])
    assert crooked_row["why"].startswith("output 'y' differs from cpu's: ")
    answer = pinnace("bench", net, "--table", "--threads", "1", *targets)
    assert answer.status == 1
    assert "- cpu:generic fp32: not timed, as output 'y' differs from cpu's: " in answer.out.replace("\n  ", " ")
    assert [row[0] for row in tables_of(answer.out)[0][2:]] == ["cpu fp32"]


@pytest.mark.skipif("softmetal" not in TARGETS, reason="softmetal is not in this build")
def test_a_target_that_takes_no_node(pinnace: Command, tmp_path: Path) -> None:
    program = saved(DOUBLES, tmp_path / "doubles.pnc")
    answer = pinnace("bench", program, "--table", "--threads", "1", "--target", "softmetal", "--target", "cpu")
    assert answer.status == 0
    said = answer.out.replace("\n  ", " ")
    assert "- softmetal fp32 (software): not timed, as no node runs there; softmetal" in said
    assert [row[0] for row in tables_of(answer.out)[0][2:]] == ["cpu fp32"]


@pytest.mark.skipif(own_processors() is None, reason="the system has no sets of processors")
def test_runs_are_kept_on_the_processors_of_their_column(
    pinnace: Command, net: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    seen: list[int] = []

    def timed(run: Any, most: int, seconds: float) -> Runs:
        seen.append(len(os.sched_getaffinity(0)))
        return Runs(1, Spread(1, 1, 1), Spread(1, 1, 1), 1, 1.0, None)

    monkeypatch.setattr(bench_table, "time_runs", timed)
    pinnace("bench", net, "--table", "--target", "cpu")
    assert seen == [count for count in (1, 2, 4) if count <= len(own_processors() or [])]


def test_auto_is_called_after_what_it_chose(pinnace: Command, net: Path) -> None:
    answer = pinnace("bench", net, "--table", "--json", "--threads", "1", "--target", "auto:fixed", "--runs", "2")
    (row,) = json.loads(answer.out)["rows"]
    assert row["device"] in {device.description for device in pn.devices()}


def test_a_device_of_its_own() -> None:
    """On hardware: how many nodes are offloaded, and what disturbed a figure."""

    def runs(ms: float, others: float | None) -> Runs:
        return Runs(50, Spread(ms, ms, ms), Spread(0.08, 0.07, 0.1), 9, 0.1, others)

    row = Row("vulkan", "fp16", "Mali|G78, driver 32", software=False, offloaded=53, nodes_there=53, nodes_all=65)
    row.cells = [Cell(1, runs(12.5, 0.01), 12.5), Cell(2, runs(0.1234, 0.3), 0.2468)]
    about = {"processor": "Some processor", "system": "aarch64, Linux", "date": "2026-11-27", "pinnace": "0.1.0"}
    named = [Column(1, []), Column(2, [2, 3], "", 0.95), Column(4, [0, 1, 2, 3], "threads")]
    text = table_text(Table("net.pnc", about, named, [row], {"nnapi": "no library"}))
    latency, normalised, consumption = tables_of(text.replace("\\|", "¦"))
    assert latency[2] == ["vulkan fp16", "12.50 (12.50 to 12.50)", "~0.123 (0.123 to 0.123)", "-"]
    assert normalised[2] == ["vulkan fp16", "12.50", "~0.247", "-"]
    assert consumption[2][1:] == ["53 of 65 nodes", "0.08 (0.07 to 0.10)", "~0.08 (0.07 to 0.10)", "-"]
    assert "- vulkan fp16: Mali|G78, driver 32; 12 of 65 nodes run elsewhere; largest difference 0.0e+00." in text
    assert "- 1 core: the system keeps no threads on processors; so many threads were asked for." in text
    assert "processors 2, 3; at once they do 95% of what each does alone." in text
    assert "- 4 cores: no figures, as threads." in text
    assert "- nnapi: not available: no library." in text
    assert "- ~: other programs used more than 5% of a processor meanwhile." in text


@pytest.mark.skipif("softmetal" not in TARGETS, reason="softmetal is not in this build")
def test_nodes_on_a_device_are_counted(pinnace: Command, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Of a list of targets, and where this processor would not stand in for the device."""
    text = NET.replace("%y = relu(%c)", '%y = relu(%c)\n  %d = cast(%y) {to="f64"}\n  %e = add(%d, %d)')
    program = saved(text.replace('output "y" %y', 'output "y" %e'), tmp_path / "mixed.pnc")
    monkeypatch.setattr(pn.Device, "software", False)
    answer = pinnace("bench", program, "--table", "--threads", "1", "--target", "softmetal,cpu", "--runs", "2")
    assert answer.status == 0
    assert tables_of(answer.out)[2][2][1] == "1 of 3 nodes"


def test_columns_line_up() -> None:
    assert markdown_table(["a", "figures"], [["日本", "1"], ["b|c", "20"]]).splitlines() == [
        "| a    | figures |",
        "| ---- | ------: |",
        "| 日本 |       1 |",
        "| b\\|c |      20 |",
    ]
