"""docs/nnapi_models.md: what becomes of each zoo model's nodes at each feature level of NNAPI. Needs no device.

    PYTHONPATH=python .venv/bin/python scripts/nnapi_models.py [MODEL ...]

Without names all models are done anew; with names their lines alone. `--check` says instead which lines are out of
date.
"""

from __future__ import annotations

import argparse
import sys
from collections import Counter
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT / "tests" / "models"))
import pinnace as pn  # noqa: E402
import zoo  # noqa: E402

PAGE = ROOT / "docs" / "nnapi_models.md"
LEVELS = range(1, 9)
MODELS = (
    *("mobilenet_v2", "mobilenet_v3_large", "resnet18", "resnet50", "efficientnet_b0", "squeezenet1_1", "vit_b_16"),
    *("deeplabv3_mobilenet_v3_large", "lraspp_mobilenet_v3_large", "bert", "minilm", "lstm", "gru"),
)
HEAD = """# Zoo models on NNAPI

Per model of `tests/models/zoo.py` and feature level: nodes that become NNAPI's operations as they are / that are
rewritten / that stay on the CPU; then which operators stay at the highest level, with the rules that refuse them
([rules](nnapi_rules.md)). Made by `scripts/nnapi_models.py`; `tests/python/nnapi_models_test.py` checks a line a run.

| model | 1 | 2 | 3 | 4 | 5 | 6 | 7 | 8 | stays at level 8 |
|---|---|---|---|---|---|---|---|---|---|
"""


def line(name: str) -> str:
    """One model's row."""
    module, inputs = zoo.build(name)
    model = pn.load(module, inputs)
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


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("models", nargs="*", default=list(MODELS))
    parser.add_argument("--check", action="store_true")
    options = parser.parse_args()
    rows = lines(PAGE.read_text()) if PAGE.exists() else {}
    stale = 0
    for name in options.models:
        row = line(name)
        if options.check and rows.get(name) != row:
            print(row)
            stale = 1
        rows[name] = row
        if not options.check:
            PAGE.write_text(HEAD + "\n".join(rows[n] for n in MODELS if n in rows) + "\n")
    return stale


if __name__ == "__main__":
    raise SystemExit(main())
