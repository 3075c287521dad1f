"""The report of a quantisation as a page, and as what a notebook shows."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from typing import Any

from pinnace.html.document import markup, number, part, rendered, text

_ROWS_MOST, _RANGES_MOST, _BARS_MOST = 1000, 300, 400
_NOTEBOOK_ROWS, _NOTEBOOK_RANGES = 100, 12
_DECADES = 6  # below 1 that the bars of errors show
_WORST = 5


def quantization_page(report: Any) -> str:
    """Of a QuantizationReport: one file for a browser that loads nothing and runs nothing."""
    title = _title(report)
    style = part("style.css") + part("page.css")
    policy = "default-src 'none'; style-src 'unsafe-inline'; base-uri 'none'; form-action 'none'"
    return (
        f'<!doctype html>\n<html lang="en"><head><meta charset="utf-8">\n'
        f'<meta http-equiv="Content-Security-Policy" content="{policy}">\n'
        f'<meta name="viewport" content="width=device-width, initial-scale=1"><meta name="color-scheme" '
        f'content="light dark">\n<title>pinnace: {text(title)}</title>\n<style>{style}</style></head>\n'
        f'<body class="pinnace"><main>\n{_body(report, _ROWS_MOST, _RANGES_MOST)}\n</main></body></html>\n'
    )


def quantization_html(report: Any) -> str:
    """For notebooks: one <div> with its style inside."""
    body = _body(report, _NOTEBOOK_ROWS, _NOTEBOOK_RANGES)
    return f'<div class="pinnace"><style>{part("style.css")}</style>{body}</div>'


def _title(report: Any) -> str:
    layers = [row for row in report.rows if row.bytes_before]
    quantised = sum(not row.kept_float for row in layers)
    return f"{quantised} of {len(layers)} layers in {report.method}"


def _body(report: Any, rows_most: int, ranges_most: int) -> str:
    kept = [row for row in report.rows if row.kept_float and row.bytes_before]
    lines = [f"Calibrated on {report.samples} samples."] if report.samples else []
    if report.score:
        lines.append(f"Metric: {report.score[0]:.6g} in float, {report.score[1]:.6g} quantised.")
    return rendered(
        "quantization.html",
        r=report,
        page=rows_most == _ROWS_MOST,
        title=_title(report),
        lines=[*lines, *report.said],
        totals=_totals(report),
        errors=[(name, number(error)) for name, error in report.errors.items()],
        along=markup(_along(report.rows)),
        kept=kept[:rows_most],
        more_kept=max(0, len(kept) - rows_most),
        others=_others(report.rows)[:rows_most],
        rows=[_row(row) for row in report.rows[:rows_most]],
        more=max(0, len(report.rows) - rows_most),
        ranges=[_range(row) for row in report.ranges[:ranges_most]],
        more_ranges=max(0, len(report.ranges) - ranges_most),
    )


def _totals(report: Any) -> list[tuple[str, str, str, str]]:
    """(what, before, after, quotient): the sums that a reader asks for first."""
    before, after = (sum(getattr(row, name) for row in report.rows) for name in ("bytes_before", "bytes_after"))
    rows = [("bytes of weights", f"{before:,}", f"{after:,}", f"{after / before:.2f}" if before else "")]
    if report.ns:
        exact, now = report.ns
        times = (f"{exact / 1000:,.1f}", f"{now / 1000:,.1f}", f"{now / exact:.2f}" if exact else "")
        rows.append(("µs of one run, one thread", *times))
    else:
        rows.append(("µs of one run, one thread", "not measured", "not measured", ""))
    return rows


def _others(rows: Any) -> list[tuple[str, int, str]]:
    """(operator, number of nodes, reason) of what has no weights and computes in float, the most frequent first."""
    counts = Counter((row.op, row.reason) for row in rows if row.kept_float and not row.bytes_before)
    return [(op, count, reason) for (op, reason), count in counts.most_common()]


def _row(row: Any) -> dict[str, Any]:
    times = "" if row.ns_before is None else f"{row.ns_before / 1000:.1f}"
    times += "" if row.ns_after is None else f" → {row.ns_after / 1000:.1f}"
    return {
        "node": row.node,
        "op": row.op,
        "module": row.module,
        "computes": f"float: {row.reason}" if row.kept_float else "integers",
        "error": "" if row.error is None else number(row.error),
        "alone": "" if row.sensitivity is None else number(row.sensitivity),
        "bytes": f"{row.bytes_before:,} → {row.bytes_after:,}" if row.bytes_before else "",
        "times": times,
    }


# ---- errors along the graph -----------------------------------------------------------------------------------------


def _height(error: float) -> float:
    if not math.isfinite(error):
        return 1.0
    return min(1.0, max(0.0, 1 + math.log10(error) / _DECADES)) if error > 0 else 0.0


def _along(rows: Any) -> str:
    """A bar for each layer and each other node whose error was measured; of very many, for the worst of neighbours."""
    shown = [row for row in rows if row.error is not None or row.sensitivity is not None or row.bytes_before]
    if all(row.error is None and row.sensitivity is None for row in shown):
        return '<p class="soft">The errors of single layers were not measured.</p>'
    size = -(-len(shown) // _BARS_MOST)
    groups = [shown[i : i + size] for i in range(0, len(shown), size)]
    left, wide, tall = 44, 1000, 150
    step = wide / len(groups)
    parts = []
    for decade in range(_DECADES + 1):
        y = 8 + tall * decade / _DECADES
        label = "1" if decade == 0 else f"1e-{decade}"
        parts.append(
            f'<path class="axis" d="M{left} {y:.1f}H{left + wide}"/>'
            f'<text x="{left - 5}" y="{y + 3:.1f}" text-anchor="end">{label}</text>'
        )
    for i, group in enumerate(groups):
        row = max(group, key=_charted)
        level = max(_height(_charted(row)), 0.01)
        parts.append(
            f'<rect class="{"bar" if not row.kept_float else "b3" if row.sensitivity is not None else "none"}" '
            f'x="{left + i * step + 0.075 * step:.2f}" y="{8 + tall * (1 - level):.1f}" '
            f'width="{max(0.6, 0.85 * step):.2f}" height="{tall * level:.1f}"><title>{_said(row)}</title></rect>'
        )
    picture = (
        f'<svg class="chart along" viewBox="0 0 {left + wide} {tall + 16}" role="img" '
        f'aria-label="error of each layer, in the order of the graph">{"".join(parts)}</svg>'
    )
    worst = sorted((row for row in shown if row.error), key=lambda row: -row.error)[:_WORST]
    names = "".join(f"<li>{_said(row)}</li>" for row in worst)
    return (
        '<p class="soft">Root mean square of the difference from the float program, relative to the result, on a '
        "logarithmic scale; from left to right in the order of the graph.</p>"
        f"{_key(shown)}{picture}" + (f'<p class="soft">The largest:</p><ol>{names}</ol>' if names else "")
    )


def _charted(row: Any) -> float:
    return float(row.error if row.error is not None else row.sensitivity or 0.0)


def _said(row: Any) -> str:
    if row.error is not None:
        return f"{text(row.node)} ({text(row.op)}): {number(row.error)}"
    if row.sensitivity is not None:
        return f"{text(row.node)} ({text(row.op)}): in float; quantised alone {number(row.sensitivity)}"
    return f"{text(row.node)} ({text(row.op)}): in float"


def _key(rows: Sequence[Any]) -> str:
    kept = [row for row in rows if row.kept_float]
    entries = [("bar", "in integers: error of its result")]
    if any(row.sensitivity is not None for row in kept):
        entries.append(("b3", "left in float: error of the worst output, had it alone been quantised"))
    if any(row.sensitivity is None for row in kept):
        entries.append(("none", "in float, not measured"))
    return f'<p class="key">{"".join(f"<span><i class={kind}></i>{said}</span>" for kind, said in entries)}</p>'


# ---- histograms -----------------------------------------------------------------------------------------------------


def _range(row: Any) -> dict[str, Any]:
    start, step, counts = row.histogram
    end = start + step * len(counts)
    left, right = min(start, row.low), max(end, row.high)
    most = math.log10(max([*counts, 1]) + 1)
    wide, tall = 360, 70
    scale = wide / (right - left) if right > left and math.isfinite(right - left) else 0.0

    def across(value: float) -> float:
        return 4 + (value - left) * scale

    low, high = across(row.low), across(row.high)
    bars = [f'<rect class="chosen" x="{low:.1f}" y="0" width="{max(0.0, high - low):.1f}" height="{tall}"/>']
    for i, count in enumerate(counts):
        if not count:
            continue
        first, last = start + i * step, start + (i + 1) * step
        inside = last > row.low and first < row.high
        high_bar = tall * math.log10(count + 1) / most
        bars.append(
            f'<rect class="{"bar" if inside else "bad"}" x="{across(first):.1f}" y="{tall - high_bar:.1f}" '
            f'width="{max(0.6, step * scale * 0.9):.1f}" height="{high_bar:.1f}"><title>{first:.4g} to {last:.4g}: '
            f"{count:,}</title></rect>"
        )
    bars.append(f'<path class="edge" d="M{low:.1f} 0V{tall + 4}M{high:.1f} 0V{tall + 4}"/>')
    bars.append(f'<path class="axis" d="M0 {tall}H{wide + 8}"/>')
    # The label of the lower end begins at it where it would not fit before it; the upper's ends there.
    bars.append(f'<text x="{max(0.0, low - 2):.1f}" y="{tall + 15}">{row.low:.3g}</text>')
    bars.append(f'<text x="{min(wide + 8.0, high + 2):.1f}" y="{tall + 15}" text-anchor="end">{row.high:.3g}</text>')
    picture = (
        f'<svg class="chart histogram" viewBox="0 0 {wide + 8} {tall + 18}" role="img" '
        f'aria-label="histogram with the chosen range">{"".join(bars)}</svg>'
    )
    said = f"chosen {row.low:.4g} to {row.high:.4g}, seen {row.least:.4g} to {row.greatest:.4g}"
    return {
        "value": row.value,
        "text": f"{said}; scale {row.scale:.4g}, zero point {row.zero_point}",
        "picture": markup(picture),
    }


__all__ = ["quantization_html", "quantization_page"]
