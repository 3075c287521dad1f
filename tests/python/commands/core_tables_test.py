"""The command that writes the page of cores and offload: sections by processor, and no disturbed figures."""

from __future__ import annotations

from pathlib import Path

import core_tables
import machine
import pytest
from core_tables import NONE_YET, PAGE, disturbed, main, with_section

TABLES = """**Latency, ms**: of one run.

| back end | 1 core |
| -------- | -----: |
| cpu fp32 |   1.00 |

- 1 core: kept."""


def test_a_processor_of_amd_is_named_with_its_generation() -> None:
    epyc = "vendor_id\t: AuthenticAMD\ncpu family\t: 25\nmodel\t\t: {}\nmodel name\t: AMD EPYC\n\nmodel name\t: other\n"
    assert machine.processor_name(epyc.format(1)) == "AMD EPYC (Zen 3)"
    assert machine.processor_name(epyc.format(17)) == "AMD EPYC (Zen 4)"
    assert machine.processor_name(epyc.format(255)) == "AMD EPYC"
    assert machine.processor_name("model name\t: Cortex-A76\n") == "Cortex-A76"
    assert machine.processor_name("") == "unknown"


def test_sections_are_added_and_replaced() -> None:
    page = f"# Title\n\nText.\n\n{NONE_YET}\n"
    one = with_section(page, "One (R)", core_tables.section("One (R)", {"Net": "first"}, "command"))
    assert one == "# Title\n\nText.\n\n## One (R)\n\n`command`\n\n### Net\n\nfirst\n"
    two = with_section(one, "Two", core_tables.section("Two", {"Net": "second"}, "command"))
    assert two.startswith(one.rstrip())
    assert two.endswith("## Two\n\n`command`\n\n### Net\n\nsecond\n")
    again = with_section(two, "One (R)", core_tables.section("One (R)", {"Net": "third"}, "command"))
    assert again.count("## One (R)") == 1
    assert "first" not in again
    assert "second" in again
    assert "third" in again


def test_disturbed_figures_are_known() -> None:
    assert not disturbed(TABLES)
    assert disturbed(TABLES.replace("  1.00", "~ 1.00"))
    assert disturbed(
        TABLES + "\n- 2 cores: no figures, as processors 0, 1 do 50%, while\n  other programs used 0.70 of it."
    )


def test_the_command_writes_its_page(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    page = tmp_path / "page.md"
    page.write_text(f"# Title\n\n{NONE_YET}\n")
    calls: list[tuple[str, ...]] = []
    said = TABLES

    def run(*arguments: str) -> str:
        calls.append(arguments)
        return said if arguments[0] == "bench" else ""

    monkeypatch.setattr(core_tables, "run", run)
    monkeypatch.setattr(core_tables, "write_case", lambda _: "")
    monkeypatch.setattr(core_tables, "FOLDER", tmp_path)
    monkeypatch.setattr(core_tables, "PAGE", page)
    monkeypatch.setattr(core_tables, "ROOT", tmp_path)
    monkeypatch.setattr(machine, "describe", lambda: {"processor": "Example 9000"})
    assert main(["--write", "--energy", "--runs", "5"]) == 0
    assert [call[0] for call in calls] == ["convert", "bench"] * 2
    given = str(tmp_path / "mobilenet_v2" / "inputs.npz")
    options = ("--threads", "1,2,4", "--runs", "5", "--energy")
    assert calls[1][2:] == ("--table", "--input", given, *options)
    text = page.read_text()
    assert (
        "## Example 9000\n\n`.venv/bin/python bench/core_tables.py --threads 1,2,4 --runs 5 --energy --write`\n" in text
    )
    assert "### MobileNetV2\n\n" + TABLES in text
    assert "### Background: LR-ASPP with MobileNetV3\n\n" in text
    assert NONE_YET not in text
    said = TABLES.replace("  1.00", "~ 9.00")
    assert main(["--write"]) == 1
    assert "other programs ran meanwhile" in capsys.readouterr().err
    assert page.read_text() == text
    assert main([]) == 0  # it is shown all the same
    monkeypatch.setattr(core_tables, "write_case", lambda _: "no torch")
    assert main(["--write"]) == 1
    assert capsys.readouterr().err == "no torch\n"


def test_the_page_names_the_command_and_its_place() -> None:
    text = PAGE.read_text()
    assert "    .venv/bin/python bench/core_tables.py --write\n" in text
    assert NONE_YET in text or "\n## " in text
    assert "(performance/cores_and_offload.md)" in (PAGE.parent.parent / "performance.md").read_text()
