"""Node data of a comparison in the JSON form that Google's Model Explorer reads.

The form: { graph id: {"results": {node key: {"value": number, "bgColor": color}}, "thresholds": [{"value": upper bound,
"bgColor": color}]} }, where a node key is a node's id or the name of one of its output tensors. Source:
src/server/package/src/model_explorer/node_data_builder.py in github.com/google-ai-edge/model-explorer.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from pinnace.types import json_text

# Its numbers are finite.
_INFINITE = 1e30
_BAD = "#d9412f"
_THRESHOLDS = [(0.0, "#d5ead9"), (1e-7, "#b9dfc0"), (1e-5, "#e3e6a1"), (1e-3, "#f6cf7d"), (_INFINITE, "#f0a460")]


def model_explorer_json(comparison: Any, targets: Sequence[str], graph: str) -> str:
    """The largest relative difference per inner value on the given targets of a pinnace.Comparison."""
    results = {}
    for row in comparison.rows:
        verdicts = [row.targets[target] for target in targets if target in row.targets]
        if row.output or not verdicts:
            continue
        largest = max(verdict.relative for verdict in verdicts)
        result: dict[str, Any] = {"value": largest if math.isfinite(largest) else _INFINITE}
        if not all(verdict.ok for verdict in verdicts):
            result |= {"bgColor": _BAD, "textColor": "white"}
        results[row.value] = result
    thresholds = [{"value": value, "bgColor": color} for value, color in _THRESHOLDS]
    return json_text({graph: {"results": results, "thresholds": thresholds}}, indent=1)


__all__ = ["model_explorer_json"]
