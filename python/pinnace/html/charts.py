"""Small pictures: bars of a histogram, the line of errors along a graph, heat maps as PNG."""

from __future__ import annotations

import base64
import math
import struct
import zlib
from collections.abc import Sequence

from pinnace.html.document import BAD, number, text

# Colors of a heat map, from small to large errors: dark blue, teal, yellow, as viridis has them.
_STOPS = ((68, 1, 84), (59, 82, 139), (33, 145, 140), (94, 201, 98), (253, 231, 37))
_INFINITE = (214, 40, 40)
_LOWEST = -9.0  # the decade below which a heat map is darkest
_LINE_POINTS = 240


def heat_map(rows: Sequence[Sequence[float]]) -> str:
    """An image of one pixel per element: transparent for 0, by decades from 1e-9 to 1, red for infinite ones."""
    palette = [(0, 0, 0), *(_blend(i / 63) for i in range(64)), _INFINITE]

    def index(value: float) -> int:
        if value <= 0:
            return 0
        if not math.isfinite(value):
            return 65
        return 1 + round(63 * min(1.0, max(0.0, (math.log10(value) - _LOWEST) / -_LOWEST)))

    height, width = len(rows), len(rows[0])
    pixels = b"".join(b"\0" + bytes(map(index, row)) for row in rows)
    png = (
        b"\x89PNG\r\n\x1a\n"
        + _chunk(b"IHDR", struct.pack(">IIBBBBB", width, height, 8, 3, 0, 0, 0))
        + _chunk(b"PLTE", b"".join(map(bytes, palette)))
        + _chunk(b"tRNS", b"\0")
        + _chunk(b"IDAT", zlib.compress(pixels, 9))
        + _chunk(b"IEND", b"")
    )
    return "data:image/png;base64," + base64.b64encode(png).decode()


def _chunk(name: bytes, data: bytes) -> bytes:
    return struct.pack(">I", len(data)) + name + data + struct.pack(">I", zlib.crc32(name + data))


def _blend(part: float) -> tuple[int, int, int]:
    place = part * (len(_STOPS) - 1)
    low = min(int(place), len(_STOPS) - 2)
    red, green, blue = (round(a + (b - a) * (place - low)) for a, b in zip(_STOPS[low], _STOPS[low + 1], strict=True))
    return red, green, blue


def histogram(equal: int, counts: Sequence[int], labels: Sequence[str]) -> str:
    """Bars on a logarithmic scale: elements without any error, then by the size of the error."""
    bars = [("no error", equal, "e0")]
    bars += [(label, count, "bar") for label, count in zip(labels, counts, strict=True)]
    most = math.log10(max(max(count for _, count, _ in bars), 1) + 1)
    width, height = 14, 70
    parts = []
    for i, (label, count, kind) in enumerate(bars):
        i += i > 0  # a gap behind what has no error
        tall = height * math.log10(count + 1) / most if count else 0
        parts.append(
            f'<g><title>{text(label)}: {count:,} elements</title><rect class="hit" x="{i * width}" y="0" '
            f'width="{width}" height="{height}"/><rect class="{kind}" x="{i * width + 1}" y="{height - tall:.1f}" '
            f'width="{width - 2}" height="{tall:.1f}"/></g>'
        )
    # The bars after the gap begin with what is below 1e-10, then there are two for each decade.
    ticks = [(0.5, "0"), (3, "1e-10"), (13, "1e-5"), (23, "1")]
    for place, label in ticks:
        parts.append(f'<text x="{place * width:.0f}" y="{height + 14}" text-anchor="middle">{label}</text>')
    across = (len(bars) + 1) * width
    return (
        f'<svg class="chart" viewBox="-8 0 {across + 16} {height + 20}" width="{across + 16}" role="img" '
        f'aria-label="histogram of errors">{"".join(parts)}<path class="axis" d="M0 {height}H{across}"/></svg>'
    )


def error_line(errors: Sequence[tuple[float, bool]], label: str) -> str:
    """The largest error in each stretch of the layers, in the order in which they run, on a logarithmic scale."""
    if not errors:
        return ""
    size = -(-len(errors) // _LINE_POINTS)
    stretches = [errors[i : i + size] for i in range(0, len(errors), size)]
    width, height = 240, 44
    step = width / len(stretches)
    parts = []
    for i, stretch in enumerate(stretches):
        largest, ok = max(e for e, _ in stretch), all(good for _, good in stretch)
        if largest == 0:
            continue
        level = min(1.0, max(0.02, (math.log10(largest) - _LOWEST) / -_LOWEST)) if math.isfinite(largest) else 1.0
        first = i * size + 1
        place = f"layer {first}" if size == 1 else f"layers {first} to {first + len(stretch) - 1}"
        parts.append(
            f'<rect class="{"bar" if ok else BAD}" x="{i * step:.1f}" y="{height * (1 - level):.1f}" '
            f'width="{max(step * 0.85, 0.8):.1f}" height="{height * level:.1f}"><title>{place}: '
            f"{number(largest)}</title></rect>"
        )
    return (
        f'<svg class="chart line" viewBox="0 0 {width} {height}" preserveAspectRatio="none" role="img" '
        f'aria-label="{text(label)}">{"".join(parts)}<path class="axis" d="M0 {height}H{width}"/></svg>'
    )


def share_bar(parts: Sequence[tuple[str, str, float]]) -> str:
    """One bar cut into (title, class, share of 1)."""
    cut = "".join(
        f'<i class="{kind}" style="width:{100 * share:.2f}%" title="{text(title)}"></i>' for title, kind, share in parts
    )
    return f'<span class="share">{cut}</span>'


__all__ = ["error_line", "heat_map", "histogram", "share_bar"]
