"""The report of a quantisation as a page, and as what a notebook shows."""

from __future__ import annotations

import math
from typing import Any

from pinnace.html.document import markup, number, part, rendered, text

_ROWS_MOST, _RANGES_MOST, _POINTS_MOST = 1000, 300, 600
_LOWEST = -6.0  # the decade at which a bar of an error has no height


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
    return f'<div class="pinnace"><style>{part("style.css")}</style>{_body(report, 100, 0)}</div>'


def _title(report: Any) -> str:
    layers = [row for row in report.rows if row.bytes_before]
    quantised = sum(not row.kept_float for row in layers)
    return f"{quantised} of {len(layers)} layers in {report.method}"


def _body(report: Any, rows_most: int, ranges_most: int) -> str:
    before, after = (sum(getattr(row, name) for row in report.rows) for name in ("bytes_before", "bytes_after"))
    lines = [f"Weights: {before:,} bytes in float, {after:,} now.", f"Calibrated on {report.samples} samples."]
    if report.score:
        lines.append(f"Metric: {report.score[0]:.6g} in float, {report.score[1]:.6g} quantised.")
    return rendered(
        "quantization.html",
        r=report,
        title=_title(report),
        lines=[*lines, *report.said],
        errors=[(name, number(error)) for name, error in report.errors.items()],
        along=markup(_along(report.rows)),
        rows=[_row(row) for row in report.rows[:rows_most]],
        more=max(0, len(report.rows) - rows_most),
        ranges=[_range(row) for row in report.ranges[:ranges_most]],
        more_ranges=max(0, len(report.ranges) - ranges_most) if ranges_most else 0,
    )


def _row(row: Any) -> dict[str, Any]:
    times = "" if row.ns_before is None else f"{row.ns_before / 1000:.1f}"
    times += "" if row.ns_after is None else f" → {row.ns_after / 1000:.1f}"
    return {
        "node": row.node,
        "op": row.op,
        "module": row.module,
        "kept_float": row.kept_float,
        "reason": row.reason,
        "error": "" if row.error is None else number(row.error),
        "alone": "" if row.sensitivity is None else number(row.sensitivity),
        "bytes": f"{row.bytes_before:,} → {row.bytes_after:,}" if row.bytes_before else "",
        "times": times,
    }


def _height(error: float) -> float:
    if not math.isfinite(error):
        return 1.0
    return min(1.0, max(0.0, 1 - math.log10(error) / _LOWEST)) if error > 0 else 0.0


def _along(rows: Any) -> str:
    measured = [row for row in rows if row.error is not None][:_POINTS_MOST]
    if not measured:
        return '<p class="soft">no node is quantised</p>'
    width, height = 760 / len(measured), 90
    bars = "".join(
        f"<g><title>{text(row.node)}: {number(row.error)}</title>"
        f'<rect class="bar" x="{i * width:.2f}" y="{height * (1 - _height(row.error)):.1f}" '
        f'width="{max(0.6, 0.85 * width):.2f}" height="{height * _height(row.error):.1f}"/></g>'
        for i, row in enumerate(measured)
    )
    return f'<svg width="760" height="{height}" viewBox="0 0 760 {height}" role="img">{bars}</svg>'


def _range(row: Any) -> dict[str, Any]:
    start, step, counts = row.histogram
    said = f"scale {row.scale:.4g}, zero point {row.zero_point}: {row.low:.4g} to {row.high:.4g}"
    seen = f"seen {row.least:.4g} to {row.greatest:.4g}"
    most = math.log10(max([*counts, 1]) + 1)
    width, height = 300 / max(1, len(counts)), 60
    bars = []
    for i, count in enumerate(counts):
        low = start + i * step
        inside = low + step > row.low and low < row.high
        tall = height * math.log10(count + 1) / most
        bars.append(
            f'<rect class="{"bar" if inside else "bad"}" x="{i * width:.2f}" y="{height - tall:.1f}" '
            f'width="{max(0.5, width - 0.5):.2f}" height="{tall:.1f}"/>'
        )
    picture = f'<svg width="300" height="{height}" viewBox="0 0 300 {height}" role="img">{"".join(bars)}</svg>'
    return {"value": row.value, "text": f"{said}; {seen}", "picture": markup(picture)}


__all__ = ["quantization_html", "quantization_page"]
