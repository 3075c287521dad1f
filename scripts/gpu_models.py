"""docs/gpu_models.md: where each zoo model's nodes go on the GPU targets. Needs no device.

    PYTHONPATH=python .venv/bin/python scripts/gpu_models.py [MODEL ...]

Without names all models are done anew; with names their lines alone. `--check` says instead which lines are out of
date.
"""

from __future__ import annotations

import argparse
import sys
from collections import Counter
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT / "scripts"))
from nnapi_models import MODELS, QUANTIZED, lines, load  # noqa: E402

__all__ = ["MODELS", "QUANTIZED", "line", "lines", "load"]

PAGE = ROOT / "docs" / "gpu_models.md"
HEAD = """# Zoo models on the GPU targets

Per model of `tests/models`: nodes, how many of them become kernels of `vulkan` (`softmetal` and `metal` have the same),
and which stay on the CPU, with the rules that refuse them ([rules](gpu_rules.md)); the rules of a device (V-20, V-21)
are not asked. Made by `scripts/gpu_models.py`. `tests/python/gpu_models_test.py` makes lines anew, and runs each model
on `vulkan` and `softmetal` in 32 and in 16 bits, with fallback off. What 16 bits may cost: [GPU](gpu.md#what-has-run).
The last three lines are torchvision's quantised architecture, loaded from TorchScript.

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
