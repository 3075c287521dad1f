"""HTML pages of comparisons, rendered with jinja2."""

from __future__ import annotations

import math
from typing import Any

from pinnace.files import printable

_PAGE = """<!doctype html>
<html lang="en"><head><meta charset="utf-8"><title>pinnace: comparison</title>
<style>
body { font: 14px/1.4 system-ui, sans-serif; margin: 2em; color: #222; }
table { border-collapse: collapse; }
th, td { text-align: left; padding: 2px 10px; border-bottom: 1px solid #ddd; white-space: nowrap; }
.bar { display: inline-block; height: 10px; background: #4a90d9; vertical-align: middle; }
.bad .bar { background: #d0432f; } .bad { color: #a3240f; }
tr.output { font-weight: 600; }
</style></head><body>
<h1>{{ "Equal within bounds" if c.ok else "Values differ" }}</h1>
<p>Reference: {{ c.reference }}. A bar's length is the logarithm of the difference relative to the value's largest
magnitude: nothing at 1e-9, full at 1.</p>
{% for target, n in c.nodes.items() if n.ran_there < n.all %}
<p>{{ target }}: {{ n.ran_there }} of {{ n.all }} nodes ran there</p>{% endfor %}
{% for doubt in c.inconclusive %}<p class="bad">inconclusive: {{ doubt }}</p>{% endfor %}
{% for target, why in c.unavailable.items() %}<p class="bad">{{ target }} was not run: {{ why }}</p>{% endfor %}
<table><thead><tr><th>value</th><th>op</th><th>source</th>
{% for t in c.targets %}<th>{{ t }}</th>{% endfor %}</tr></thead><tbody>
{% for row in c.rows %}<tr{% if row.output %} class="output"{% endif %}><td>{{ row.value }}</td><td>{{ row.op }}</td>
<td>{{ row.source }}</td>{% for t in c.targets %}{% set d = row.targets.get(t) %}
<td{% if d and not d.ok %} class="bad" title="{{ d.why }}"{% endif %}>{% if d %}
<span class="bar" style="width: {{ width(d) }}px"></span>
{{ "%.2e"|format(d.relative) }}{% if d.exact %} (from float64: ours {{ "%.1e"|format(d.exact.ours) }}, the source
{{ "%.1e"|format(d.exact.source) }}){% endif %}{% endif %}</td>{% endfor %}</tr>
{% endfor %}</tbody></table></body></html>
"""


def comparison_page(comparison: Any) -> str:
    """One self-contained page of a pinnace.Comparison."""
    import jinja2

    def width(d: object) -> int:
        relative = getattr(d, "relative", 0.0)
        if relative <= 1e-9:
            return 0
        return round(120 * min(1.0, (math.log10(min(relative, 1.0)) + 9) / 9))

    def shown(value: object) -> object:
        return printable(value) if isinstance(value, str) else value

    # Names come from models: marks of direction and control characters are shown, and all else is escaped for HTML.
    return jinja2.Environment(autoescape=True, finalize=shown).from_string(_PAGE).render(c=comparison, width=width)


__all__ = ["comparison_page"]
