"""docs/nnapi_models.md: what becomes of each zoo model's nodes at each feature level of NNAPI. Needs no device.

    PYTHONPATH=python .venv/bin/python scripts/nnapi_models.py [MODEL ...]

Without names all models are done anew; with names their lines alone. `--check` says instead which lines are out of
date.
"""

from __future__ import annotations

import argparse
import sys
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT / "tests" / "models"))
import int8_mobilenet  # noqa: E402
import pinnace as pn  # noqa: E402
import zoo  # noqa: E402

PAGE = ROOT / "docs" / "nnapi_models.md"
LEVELS = range(1, 9)
# The forms of the quantised architecture, loaded from TorchScript.
QUANTIZED = {
    "mobilenet_v2 float": "float",
    "mobilenet_v2 int8 inside": "float edges",
    "mobilenet_v2 int8": "throughout",
}
MODELS = (*zoo.MODELS, *QUANTIZED)
HEAD = """# Zoo models on NNAPI

For each model of `tests/models` and feature level: nodes that become NNAPI operations directly / that are rewritten /
that stay on the CPU; then which operators stay at the highest level, with the rules that refuse them
([rules](nnapi_rules.md)). `scripts/nnapi_models.py` writes this page. `tests/python/nnapi/nnapi_models_test.py` checks
its lines, and runs each model at each level through the host library, which then pretends to have that level and no
newer operation or type: floats are within 1e-4 of the largest output of the CPU's, 8-bit results equal the CPU's. The
last three lines are torchvision's quantised architecture, loaded from TorchScript; at feature level 3 they are also
compared with PyTorch.

| model | 1 | 2 | 3 | 4 | 5 | 6 | 7 | 8 | stays at feature level 8 |
|---|---|---|---|---|---|---|---|---|---|
"""


def load(name: str, **options: int) -> tuple[pn.Model, dict[str, Any]]:
    """The model and example inputs by the program's names. Without options of its builder it has the size that users
    have it in, but for the quantised ones, which are smaller and have as many nodes."""
    if name in QUANTIZED:
        script, x = int8_mobilenet.build(QUANTIZED[name])
        model = pn.load(script, (x,))
        return model, dict.fromkeys(model.inputs, x.int_repr() if x.is_quantized else x)
    module, inputs = zoo.build(name, **options)
    return pn.load(module, inputs), inputs


def line(name: str) -> str:
    """One model's row."""
    model, _ = load(name)
    cells = []
    left: Counter[str] = Counter()
    for level in LEVELS:
        nodes = model.check(targets=[f"nnapi:fl{level}"]).nodes
        rewritten = sum(node.supported and bool(node.rewrite) for node in nodes)
        refused = [node for node in nodes if not node.supported]
        cells.append(f"{len(nodes) - rewritten - len(refused)} / {rewritten} / {len(refused)}")
        left = Counter(f"`{node.op}` ({node.rule.split(':')[0]})" for node in refused)
    stays = ", ".join(f"{count} {what}" for what, count in sorted(left.items()))
    return f"| {name} | {' | '.join(cells)} | {stays or 'none'} |"


def lines(text: str) -> dict[str, str]:
    """The rows of the page by model."""
    rows = [row for row in text.splitlines() if row.startswith("| ") and not row.startswith("| model")]
    return {row.split("|")[1].strip(): row for row in rows}


def keep_page(description: str, page: Path, head: str, line: Callable[[str], str]) -> int:
    """The command of a page with one line per model: makes those named, or all, or says which are stale (1)."""
    parser = argparse.ArgumentParser(description=description.splitlines()[0])
    parser.add_argument("models", nargs="*", default=list(MODELS))
    parser.add_argument("--check", action="store_true")
    options = parser.parse_args()
    rows = lines(page.read_text()) if page.exists() else {}
    stale = 0
    for name in options.models:
        row = line(name)
        if options.check and rows.get(name) != row:
            print(row)
            stale = 1
        rows[name] = row
        if not options.check:
            page.write_text(head + "\n".join(rows[n] for n in MODELS if n in rows) + "\n")
    return stale


if __name__ == "__main__":
    raise SystemExit(keep_page(__doc__, PAGE, HEAD, line))
