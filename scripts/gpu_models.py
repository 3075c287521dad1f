"""docs/gpu_models.md: where each zoo model's nodes go on the GPU targets. Needs no device.

    PYTHONPATH=python .venv/bin/python scripts/gpu_models.py [MODEL ...]

Without names all models are done anew; with names their lines alone. `--check` says instead which lines are out of
date.
"""

from __future__ import annotations

import sys
from collections import Counter
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT / "scripts"))
from nnapi_models import MODELS, QUANTIZED, keep_page, lines, load  # noqa: E402

__all__ = ["MODELS", "QUANTIZED", "line", "lines", "load"]

PAGE = ROOT / "docs" / "gpu_models.md"
HEAD = """# Zoo models on the GPU targets

For each model of `tests/models`: its nodes, how many of them `vulkan` takes (`softmetal` and `metal` take the same),
and which stay on the CPU, with the rules that refuse them ([rules](gpu_rules.md)). Rules that depend on the device
(V-20, V-21) are not evaluated. `scripts/gpu_models.py` writes this page. `tests/python/gpu/gpu_models_test.py` checks
its lines, and runs each model on `vulkan` and `softmetal` in 32 and in 16 bits, with fallback off. What 16 bits may
cost: [GPU](gpu.md#what-has-run). The last three lines are torchvision's quantised architecture, loaded from
TorchScript.

| model | nodes | on the GPU | stays on the CPU |
|---|---|---|---|
"""


def line(name: str) -> str:
    """One model's row."""
    model, _ = load(name)
    nodes = model.check(targets=["vulkan"]).nodes
    refused = [node for node in nodes if not node.supported]
    left = Counter(f"`{node.op}` ({node.rule.split(':')[0]}: {node.value})" for node in refused)
    stays = ", ".join(f"{count} {what}" for what, count in sorted(left.items()))
    return f"| {name} | {len(nodes)} | {len(nodes) - len(refused)} | {stays or 'none'} |"


if __name__ == "__main__":
    raise SystemExit(keep_page(__doc__, PAGE, HEAD, line))
