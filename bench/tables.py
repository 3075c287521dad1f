"""Tables of a recorded run (results.json): every target with its result, models, engines, threads, operators, sizes.

Pure functions of the recorded data, so that a recording is shown the same way at any time.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from cases import (
    ARM64_TARGETS,
    AVX2_TARGET,
    ERROR_TARGET,
    INSTALLED_TARGET,
    MEMORY_TARGET,
    START_UP_TARGET,
    TARGET_THREADS,
    TARGETS,
    quantized,
)

Row = dict[str, Any]

# Ours by the way in which a model came in; the first is what a case has, the second only where it is quantised.
OURS = ("pinnace", "pinnace-pt2e")
AUTO = "pinnace-auto"  # asked for the fastest precision
LIMITED = "-avx2"  # the end of the name of an engine that is held to AVX2
INSTALLED = "-installed"  # of one that chooses its precision by itself
OTHERS_LIMIT = 0.05
LOW_SHARE = 0.30
NOT_MEASURED = "not measured"


def ours(name: str) -> bool:
    return name.startswith("pinnace")


def table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> list[str]:
    return [f"| {' | '.join(head)} |", "|" + "---|" * len(head), *(f"| {' | '.join(row)} |" for row in rows)]


# ---- ratios ---------------------------------------------------------------------------------------------------------


def rivals(engines: Row, group: str = "") -> Row:
    """Other engines that were timed: in float32, held to AVX2 (LIMITED), or in a precision of their own (INSTALLED).

    The last is float32 for those without such a twin.
    """
    own = {name: row for name, row in engines.items() if not ours(name) and "failed" not in row}
    if group == LIMITED:
        return {name: row for name, row in own.items() if name.endswith(LIMITED)}
    free = {name: row for name, row in own.items() if not name.endswith(LIMITED)}
    if group == INSTALLED:
        return {name: row for name, row in free.items() if name + INSTALLED not in free}
    return {name: row for name, row in free.items() if not name.endswith(INSTALLED)}


def best_rival(engines: Row, key: str = "median", group: str = "") -> tuple[str, float] | None:
    """The rival with the smallest figure, and the figure. A start-up that disturbance made negative is none."""
    found = {name: row for name, row in rivals(engines, group).items() if float(row[key]) > 0}
    name = min(found, key=lambda n: float(found[n][key]), default=None)
    return None if name is None else (name, float(found[name][key]))


def disturbed(row: Row) -> bool:
    return float(row.get("others", 0.0)) > OTHERS_LIMIT


def verdict(value: float, at_most: float) -> str:
    return "met" if value <= at_most else "**missed**"


def compared(engines: Row, name: str, key: str, at_most: float, group: str = "") -> str:
    """ "0.85 ≤ 0.88 met (ncnn)", or why there is no ratio. A ~ stands before what other programs disturbed."""
    row = engines.get(name)
    if row is None:
        return NOT_MEASURED
    if "failed" in row:
        return f"{NOT_MEASURED}: {name} failed"
    rival = best_rival(engines, key, group)
    if rival is None:
        return f"{NOT_MEASURED}: no rival"
    if float(row[key]) <= 0:
        return f"{NOT_MEASURED}: disturbed"
    ratio = float(row[key]) / rival[1]
    sign = "≤" if ratio <= at_most else ">"
    tilde = "~" if disturbed(row) or disturbed(engines[rival[0]]) else ""
    return f"{tilde}{ratio:.2f} {sign} {at_most:.2f} {verdict(ratio, at_most)} ({rival[0]})"


def error_cell(row: Row | None, case: str) -> str:
    if row is None:
        return NOT_MEASURED
    if "failed" in row:
        return str(row["failed"]).splitlines()[0][:80]
    error = float(row["error"])
    if quantized(case):  # held to the bit by the tests; here only near the float network, like the rivals
        return f"{error:.2g} of float's"
    return f"{error:.1e} {'≤' if error <= ERROR_TARGET else '>'} {ERROR_TARGET:.0e} {verdict(error, ERROR_TARGET)}"


# ---- targets --------------------------------------------------------------------------------------------------------


def targets(data: Row) -> list[str]:
    """Every target of every model, met, missed or not measured, then those of ARM64."""
    recorded = {(r["case"], r["threads"]): r["engines"] for r in data.get("models", [])}
    settings: Row = data.get("settings", {})
    selected = bool(settings.get("names") or settings.get("only"))
    rows = []
    left_out = []
    for case, aims in TARGETS.items():
        if selected and all((case, threads) not in recorded for threads in TARGET_THREADS):
            left_out.append(case)
            continue
        for threads, aim in zip(TARGET_THREADS, aims, strict=True):
            engines = recorded.get((case, threads), {})
            for name in OURS if quantized(case) else OURS[:1]:
                limited = compared(engines, name + LIMITED, "median", AVX2_TARGET, LIMITED)
                rows.append(
                    (
                        case + (" (PT2E)" if name == OURS[1] else " (QDQ)" if quantized(case) else ""),
                        str(threads),
                        compared(engines, name, "median", aim),
                        "-" if quantized(case) else compared(engines, AUTO, "median", INSTALLED_TARGET, INSTALLED),
                        limited if name == OURS[0] else "-",
                        compared(engines, name, "start_up", START_UP_TARGET),
                        compared(engines, name, "peak_mb", MEMORY_TARGET),
                        error_cell(engines.get(name), case),
                    )
                )
    head = (
        "model",
        "threads",
        "time",
        f"time of {AUTO}, rivals as installed",
        "time, held to AVX2",
        "start-up",
        "peak memory",
        "error",
    )
    out = table(head, rows) if rows else []
    if left_out:
        out += ["", f"Not chosen, so {NOT_MEASURED}: {', '.join(left_out)}."]
    measured: Row = data.get("arm64", {})
    out += ["", *table(("ARM64, in emulation", "measured", "at most", "result"), _arm64_rows(measured)), ""]
    cells = [cell for row in rows for cell in row[2:]] + [row[3] for row in _arm64_rows(measured)]
    met = sum(" met" in cell or cell == "met" for cell in cells)
    missed = sum("**missed**" in cell for cell in cells)
    unmeasured = sum(cell.startswith(NOT_MEASURED) for cell in cells)
    out.append(
        f"Targets: {met} met, {missed} missed, {unmeasured} not measured here. Ratios are ours to the best rival's in "
        f"the same run; ~ marks rows that other programs disturbed (more than {OTHERS_LIMIT:.0%} of a processor) even "
        "when repeated."
    )
    return out


def _arm64_rows(measured: Row) -> list[tuple[str, str, str, str]]:
    rows = []
    for name, (at_most, unit) in ARM64_TARGETS.items():
        value = measured.get(name)
        if value is None:
            rows.append(
                (name, "-", f"{at_most:g} {unit}", f"{NOT_MEASURED} here: make test-arm64 builds what it needs")
            )
        else:
            rows.append((name, f"{value:.2f} {unit}", f"{at_most:g} {unit}", verdict(value, at_most)))
    return rows


# ---- models ---------------------------------------------------------------------------------------------------------


def models(data: Row) -> list[str]:
    """One row per engine that ran."""
    rows = []
    for result in data.get("models", []):
        for name, row in sorted(result["engines"].items(), key=lambda item: item[1].get("median", 1e30)):
            if "failed" in row:
                continue
            rows.append(
                (
                    result["case"],
                    str(result["threads"]),
                    f"**{name}**" if name in OURS else name,
                    f"{row['median']:.3f}",
                    f"{row['p10']:.3f} to {row['p90']:.3f}",
                    f"{row['cpu_s'] * 1e3:.2f}",
                    f"{row['start_up']:.1f}",
                    f"{row['peak_mb']:.0f}",
                    f"{row['error']:.1e}",
                    ("~" if disturbed(row) else "") + f"{row['others']:.2f}",
                    str(row.get("repeated", 0)),
                )
            )
    head = ("model", "threads", "engine", "median, ms", "p10 to p90", "CPU ms a run", "start-up, ms", "peak, MB")
    return table((*head, "error", "others' load", "repeated"), rows)


def medians(data: Row) -> list[str]:
    """Everybody's medians side by side."""
    results = data.get("models", [])
    names = list(dict.fromkeys(n for r in results for n, e in r["engines"].items() if "failed" not in e))
    rows = []
    for result in results:
        cells = [result["engines"].get(n, {}).get("median") for n in names]
        rows.append((result["case"], str(result["threads"]), *("-" if c is None else f"{c:.3f}" for c in cells)))
    return table(("model, ms", "threads", *names), rows)


def missing(data: Row) -> list[str]:
    """Engines that were not timed, each with the reason; a reason that holds for many cases is said once."""
    why: dict[tuple[str, str], list[str]] = {}
    for result in data.get("models", []):
        for name, row in result["engines"].items():
            if "failed" in row:
                cases = why.setdefault((name, str(row["failed"]).splitlines()[0]), [])
                if result["case"] not in cases:
                    cases.append(result["case"])
    lines = [f"- {name} ({', '.join(cases)}): {reason}" for (name, reason), cases in sorted(why.items())]
    lines += [f"- held to AVX2, {name}: {reason}" for name, reason in data.get("not_limited", {}).items()]
    return lines


def scaling(data: Row) -> list[str]:
    """Time at n threads over time at one, for each engine: 1.000, then the smaller the better."""
    results = data.get("models", [])
    asked = sorted({*data.get("settings", {}).get("threads", []), *(r["threads"] for r in results)})
    processors = data.get("machine", {}).get("processors", 0)
    rows = []
    for case in dict.fromkeys(r["case"] for r in results):
        by_threads = {r["threads"]: r["engines"] for r in results if r["case"] == case}
        for name, row in by_threads.get(1, {}).items():
            if "failed" in row:
                continue
            cells = [by_threads.get(t, {}).get(name, {}).get("median") for t in asked]
            shown = ("-" if c is None else f"{c / row['median']:.3f}" for c in cells)
            rows.append((case, f"**{name}**" if name in OURS else name, *shown))
    out = table(("model", "engine", *(f"{t} thread{'s' * (t > 1)}" for t in asked)), rows)
    beyond = [str(t) for t in asked if t > processors]
    if beyond:
        out += ["", f"{' and '.join(beyond)} threads: not measurable here, the machine has {processors} processors."]
    return out


def libraries(data: Row) -> list[str]:
    rows = [(name, f"{size / 1e6:.1f}") for name, size in sorted(data.get("libraries", {}).items(), key=lambda x: x[1])]
    return table(("libraries for inference on the CPU, stripped", "MB"), rows)


# ---- operators ------------------------------------------------------------------------------------------------------


def peak_operations(peak: Row, arithmetic: str, level: str) -> float | None:
    """Operations a second, in 1e9, that the level reaches: its own loop's, or a lower level's if that was faster."""
    order = ("generic", "avx2", "avx512", "avx512_vnni", "neon_dotprod", "neon_i8mm", "sve")
    limit = order.index(level) if level in order else len(order)
    found = [
        float(a["gops"])
        for a in peak.get("arithmetic", [])
        if a["type"] == arithmetic and order.index(a["level"]) <= limit
    ]
    return max(found, default=None)


def memory_level(peak: Row, touched: float) -> Row | None:
    """The nearest level of memory that holds so many bytes."""
    for level in peak.get("memory", []):
        if touched <= level["bytes"] or level["bytes"] == 0:
            return dict(level)
    return None


def share(row: Row, peak: Row, level: str) -> tuple[float, str] | None:
    """The least time that arithmetic and memory allow, by the time taken; and which of the two it is.

    Bytes are counted at the speed of the nearest memory that holds them all: reading's where little is written.
    """
    gops, memory = peak_operations(peak, row["arithmetic"], level), memory_level(peak, row["touched_bytes"])
    if gops is None or memory is None or row["median"] <= 0:
        return None
    arithmetic_ms = row["operations"] / gops / 1e6
    speed = memory["read_gbs"] if row["written_bytes"] < 0.25 * row["read_bytes"] else memory["copy_gbs"]
    memory_ms = (row["read_bytes"] + row["written_bytes"]) / speed / 1e6
    if arithmetic_ms >= memory_ms:
        return arithmetic_ms / row["median"], row["arithmetic"]
    return memory_ms / row["median"], str(memory["level"])


def by_reference(row: Row) -> bool:
    """Whether most of the time goes into reference code."""
    return float(row.get("reference_share", 0.0)) > 0.5


def operators(data: Row) -> list[str]:
    """One row per operator and number of threads; then those that are slow for what they do."""
    level = data.get("level", "")
    rows: list[tuple[str, ...]] = []
    best: dict[str, float] = {}
    reference: list[str] = []
    for row in data.get("operators", []):
        if "failed" in row:
            rows.append((row["operator"], str(row["threads"]), "-", "-", "-", "-", f"failed: {row['failed'][:100]}"))
            continue
        found = share(row, data.get("peaks", {}).get(str(row["threads"]), {}), level)
        if row["operations"]:
            speed = f"{row['operations'] / row['median'] / 1e6:.1f} G{'FLOP' if row['arithmetic'] == 'f32' else 'OP'}/s"
        else:
            speed = f"{(row['read_bytes'] + row['written_bytes']) / row['median'] / 1e6:.1f} GB/s"
        kernels = ", ".join(f"**{k}**" if k == "reference" and by_reference(row) else k for k in row["kernels"])
        rows.append(
            (
                row["operator"],
                str(row["threads"]),
                ("~" if disturbed(row) else "") + f"{row['median']:.4f}",
                f"{row['p10']:.4f} to {row['p90']:.4f}",
                speed,
                "-" if found is None else f"{found[0]:.0%} of {found[1]}",
                kernels,
            )
        )
        if by_reference(row) and row["operator"] not in reference:
            reference.append(row["operator"])
        elif found is not None and not by_reference(row):
            best[row["operator"]] = max(found[0], best.get(row["operator"], 0.0))
    out = table(("operator", "threads", "median, ms", "p10 to p90", "speed", "share of measured peak", "kernels"), rows)
    if reference:
        out += ["", f"By reference code ({len(reference)}): {', '.join(reference)}."]
    low = {name: part for name, part in best.items() if part < LOW_SHARE}
    if low:
        names = ", ".join(f"{name} ({part:.0%})" for name, part in sorted(low.items(), key=lambda item: item[1]))
        out += ["", f"By kernels that stay below {LOW_SHARE:.0%} of the measured peak ({len(low)}): {names}."]
    return out


def peaks(data: Row) -> list[str]:
    rows = []
    for threads, peak in data.get("peaks", {}).items():
        if "failed" in peak:
            rows.append((threads, f"not measured: {peak['failed']}", "", ""))
            continue
        for a in peak["arithmetic"]:
            rows.append((threads, f"{a['level']} {a['type']}", f"{a['gops']:.0f} G operations/s", ""))
        for m in peak["memory"]:
            rows.append((threads, m["level"], f"read {m['read_gbs']:.0f} GB/s", f"copy {m['copy_gbs']:.0f} GB/s"))
    return table(("threads", "measured peak", "", ""), rows)


# ---- all of it ------------------------------------------------------------------------------------------------------


def report(data: Row) -> str:
    """The whole report in Markdown; parts that were not run are left out, except for the targets."""
    machine: Row = data.get("machine", {})
    versions = {n: e["version"] for r in data.get("models", []) for n, e in r["engines"].items() if "version" in e}
    out = [
        f"{machine.get('processor', 'unknown processor')}, {machine.get('processors', '?')} processors, "
        f"{machine.get('memory_mb', 0) / 1024:.0f} GB, {machine.get('system', '')}; {machine.get('date', '')}; "
        f"pinnace runs {data.get('level', 'unknown')}.",
        "",
    ]
    if versions:
        out += ["Versions: " + ", ".join(f"{n} {v}" for n, v in versions.items() if not n.endswith(LIMITED)) + ".", ""]
    if not data.get("finished", False):
        out += ["**This run was broken off; the same command goes on with it.**", ""]
    parts: list[tuple[str, list[str]]] = []
    if data.get("operators"):
        parts += [("Operators", operators(data))]
    if data.get("models"):
        parts += [("Models", models(data)), ("Medians", medians(data)), ("Threads, 1 thread = 1.000", scaling(data))]
        parts += [("Not compared", missing(data))]
    if data.get("peaks"):
        parts += [("Measured peaks", peaks(data))]
    if data.get("libraries"):
        parts += [("Library size", libraries(data))]
    parts += [("Targets", targets(data))]
    for title, lines in parts:
        if lines:
            out += [f"## {title}", "", *lines, ""]
    return "\n".join(out)
