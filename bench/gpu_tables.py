"""Tables of a recorded run of `report.py --gpu`: our times beside ncnn's on the same device, start-ups, all engines.

Pure functions of the recorded data, but for devices(), which asks for what the run was made on.
"""

from __future__ import annotations

import json
import subprocess
from pathlib import Path
from typing import Any

from cases import GPU_START_UP_TARGET, GPU_TARGETS
from tables import NOT_MEASURED, disturbed, missing, ours, table, verdict

Row = dict[str, Any]
RIVAL = "ncnn-vulkan"
OURS = "pinnace-vulkan"
HALF = "-fp16"
# Drivers on which a CPU stands in for a GPU, by parts of the names of their devices.
SOFTWARE = ("llvmpipe", "swiftshader")


def devices(python: Path, environment: dict[str, str]) -> Row:
    """{"device": what the first Vulkan device calls itself, or why there is none, "software": whether it is a CPU}."""
    found = "[d.description for d in pinnace.devices() if d.target == 'vulkan']"
    code = f"import json, pinnace; print(json.dumps({found}))"
    done = subprocess.run([str(python), "-c", code], capture_output=True, text=True, timeout=120, env=environment)
    said = json.loads(done.stdout)[0] if done.returncode == 0 else "unknown"
    return {"device": said, "software": any(name in said.lower() for name in SOFTWARE)}


def ratio(mine: Row | None, rival: Row | None, key: str, at_most: float) -> str:
    """ "0.85 ≤ 1.00 met", or why there is no ratio. A ~ stands before what other programs disturbed."""
    for name, row in ((OURS, mine), (RIVAL, rival)):
        if row is None or "failed" in row:
            return f"{NOT_MEASURED}: {name}" + ("" if row is None else " failed")
    assert mine
    assert rival
    if min(mine[key], rival[key]) <= 0:
        return f"{NOT_MEASURED}: disturbed"
    value = float(mine[key]) / float(rival[key])
    tilde = "~" if disturbed(mine) or disturbed(rival) else ""
    return f"{tilde}{value:.2f} {'≤' if value <= at_most else '>'} {at_most:.2f} {verdict(value, at_most)}"


def faster(engines: Row, name: str) -> Row | None:
    """An engine's row in 32 or in 16 bits, whichever took less."""
    found = [row for n in (name, name + HALF) if (row := engines.get(n)) and "failed" not in row]
    return min(found, key=lambda row: float(row["median"]), default=engines.get(name))


def targets(data: Row) -> list[str]:
    at_most = GPU_TARGETS[bool(data["settings"]["gpu"]["software"])]
    recorded = {r["case"]: r["engines"] for r in data.get("models", [])}
    rows = []
    for case in data["settings"]["cases"]:
        engines = recorded.get(case, {})
        pairs = [(engines.get(OURS + end), engines.get(RIVAL + end)) for end in ("", HALF)]
        rows.append(
            (
                case,
                ratio(*pairs[0], "median", at_most),
                ratio(*pairs[1], "median", at_most),
                ratio(faster(engines, OURS), faster(engines, RIVAL), "median", at_most),
                ratio(*pairs[0], "cold_first_ms", GPU_START_UP_TARGET),
                ratio(*pairs[0], "first_ms", GPU_START_UP_TARGET),
            )
        )
    head = ("ours to ncnn's", "time, fp32", "time, fp16", "time, the faster of each", "start, cold", "start, warm")
    cells = [cell for row in rows for cell in row[1:]]
    counts = (
        f"Targets: {sum(c.endswith(' met') for c in cells)} met, {sum('**missed**' in c for c in cells)} missed, "
        f"{sum(c.startswith(NOT_MEASURED) for c in cells)} not measured here. A start is loading and the first run, in "
        "fp32; cold: with no compiled code from earlier ones, neither the driver's nor ours. ~ marks rows that other "
        "programs disturbed even when repeated."
    )
    return [*table(head, rows), "", counts]


def models(data: Row) -> list[str]:
    """One row per engine that ran. Loading makes pipelines and uploads weights; what is left of the start is the first
    run, in which some drivers compile."""
    rows = []
    for result in data.get("models", []):
        for name, row in sorted(result["engines"].items(), key=lambda item: item[1].get("median", 1e30)):
            if "failed" in row:
                continue
            rows.append(
                (
                    result["case"],
                    f"**{name}**" if ours(name) else name,
                    f"{row['median']:.3f}",
                    f"{row['p10']:.3f} to {row['p90']:.3f}",
                    f"{row['cpu_s'] * 1e3:.2f}",
                    *(
                        f"{row[cold + 'load_ms']:.0f} + {row[cold + 'first_ms'] - row[cold + 'load_ms']:.0f}"
                        for cold in ("cold_", "")
                    ),
                    f"{row['peak_mb']:.0f}",
                    f"{row['error']:.1e}",
                    ("~" if disturbed(row) else "") + f"{row['others']:.2f}",
                )
            )
    head = ("model", "engine", "median, ms", "p10 to p90", "CPU ms a run", "cold: load + first run, ms")
    return table((*head, "warm: load + first run, ms", "peak, MB", "error", "others' load"), rows)


def report(data: Row) -> str:
    """The whole report in Markdown."""
    machine: Row = data.get("machine", {})
    versions = {n: e["version"] for r in data.get("models", []) for n, e in r["engines"].items() if "version" in e}
    gpu: Row = data["settings"]["gpu"]
    out = [
        f"{gpu['device']}{' (a CPU stands in for a GPU)' if gpu['software'] else ''}; "
        f"{machine.get('processor', 'unknown processor')}, {machine.get('processors', '?')} processors; "
        f"{machine.get('date', '')}.",
        "",
        "Versions: " + ", ".join(f"{n} {v}" for n, v in versions.items()) + ".",
        "",
    ]
    if not data.get("finished", False):
        out += ["**This run was broken off; the same command goes on with it.**", ""]
    for title, lines in (("Models", models(data)), ("Not compared", missing(data)), ("Targets", targets(data))):
        if lines:
            out += [f"## {title}", "", *lines, ""]
    return "\n".join(out)
