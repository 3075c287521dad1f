#!/usr/bin/env python3
"""Time and memory of conversions, beside those of torch.export alone, as a Markdown table.

    conversion.py                    all models
    conversion.py gpt2 bert          some

Each model is made, exported and converted in processes of its own, pinned to one processor, with one thread. Seconds
are processor time, megabytes the most that a step takes beyond the process with the model in it. Weights are random.

    export   torch.export.export (of the traced network: torch.jit.load)
    load     pinnace.load, which exports as well
    build    build(verify=False): compile, write, read back
    verify   what build() takes longer than that: runs of the source and of the program
"""

from __future__ import annotations

import json
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from machine import describe, peak_mb

ROOT = Path(__file__).resolve().parent.parent
ROUNDS = 3


def _gpt2() -> Any:
    import torch
    import torchvision_ops  # noqa: F401  (before transformers: it declares what torchvision's C extension would)
    from transformers import GPT2Config, GPT2LMHeadModel

    return GPT2LMHeadModel(GPT2Config(use_cache=False)), (torch.arange(32)[None],)


def _bert() -> Any:
    import torch
    import torchvision_ops  # noqa: F401
    from transformers import BertConfig, BertModel

    return BertModel(BertConfig()), (torch.arange(128)[None],)


def _mobilenet() -> Any:
    import zoo

    return zoo.build("mobilenet_v2")


def _autocast() -> Any:
    """Twelve blocks of attention without softmax, whose sums are in a region of another precision, as EfficientViT has
    them."""
    import torch
    from torch import Tensor, nn

    class Block(nn.Module):
        def __init__(self, width: int) -> None:
            super().__init__()
            self.qkv, self.out = nn.Conv2d(width, 3 * width, 1), nn.Conv2d(width, width, 1)
            self.norm = nn.BatchNorm2d(width)

        def forward(self, x: Tensor) -> Tensor:
            q, k, v = self.qkv(x).flatten(2).chunk(3, 1)
            with torch.autocast("cpu", enabled=False):
                q, k, v = q.float().relu(), k.float().relu(), v.float()
                y = (v @ k.transpose(1, 2)) @ q / (k.sum(2, keepdim=True).transpose(1, 2) @ q + 1e-6)
            made: Tensor = x + self.norm(self.out(y.reshape(x.shape)))
            return made

    return nn.Sequential(nn.Conv2d(3, 128, 8, 8), *(Block(128) for _ in range(12))), (torch.randn(1, 3, 224, 224),)


def _traced() -> Any:
    import torch
    import zoo

    module, inputs = zoo.build("resnet18")
    return torch.jit.trace(module.eval(), tuple(inputs.values())), inputs  # type: ignore[no-untyped-call]


MODELS: dict[str, tuple[str, Callable[[], Any]]] = {
    "gpt2": ("GPT-2, 124 M, 32 tokens", _gpt2),
    "bert": ("BERT-base, 128 tokens", _bert),
    "mobilenet_v2": ("MobileNetV2", _mobilenet),
    "autocast": ("linear attention with autocast regions", _autocast),
    "traced": ("ResNet-18, traced TorchScript", _traced),
}


def _seconds(call: Callable[[], Any]) -> tuple[float, Any]:
    start = time.process_time()
    made = call()
    return time.process_time() - start, made


def _resident_mb() -> float:
    return int(Path("/proc/self/statm").read_text().split()[1]) * resource.getpagesize() / 2**20


def measured(name: str, step: str) -> dict[str, float]:
    """In this process: one export, or one conversion."""
    import torch

    torch.set_num_threads(1)
    torch.manual_seed(0)
    source, given = MODELS[name][1]()
    inputs = tuple(given.values()) if isinstance(given, dict) else tuple(given)
    traced = isinstance(source, torch.jit.ScriptModule)
    source.eval()
    with tempfile.TemporaryDirectory() as folder:
        if traced:
            torch.jit.save(source, f"{folder}/m.pt")
        weights = sum(p.untyped_storage().nbytes() for p in {p.data_ptr(): p for p in source.parameters()}.values())
        what = f"{folder}/m.pt" if traced else source
        Path("/proc/self/clear_refs").write_text("5")  # the peak begins anew
        before = _resident_mb()
        if step == "export":
            with torch.no_grad():
                seconds = _seconds(
                    lambda: torch.jit.load(what) if traced else torch.export.export(source, inputs, strict=False)  # type: ignore[no-untyped-call]
                )[0]
            return {"export": seconds, "export MB": peak_mb() - before}
        import pinnace as pn

        load, model = _seconds(lambda: pn.load(what, inputs))
        verified = step == "verified"
        build, program = _seconds(lambda: model.build(verify=verified))
        end = peak_mb() - before
        return {
            "load": load,
            "verified" if verified else "build": build,
            "verified MB" if verified else "build MB": end,
            "weights MB": weights / 2**20,
            "file MB": len(program.to_bytes()) / 2**20,
        }


def main() -> int:
    if sys.argv[1:2] == ["--one"]:
        sys.path[:0] = [str(ROOT / "python"), str(ROOT / "tests" / "models")]
        print(json.dumps(measured(*sys.argv[2:])))
        return 0
    wanted = sys.argv[1:] or list(MODELS)
    if unknown := [name for name in wanted if name not in MODELS]:
        print(f"no such models: {', '.join(unknown)}; there are {', '.join(MODELS)}", file=sys.stderr)
        return 2
    print(f"{describe()['processor']}, medians of {ROUNDS} runs, seconds of processor time\n")
    columns = ["model", "export", "load", "build", "(load + build) / export", "verify"]
    columns += [f"MB of {of}" for of in ("weights", "export", "load + build", "all with verification", "the file")]
    print(f"| {' | '.join(columns)} |\n|---|{'--:|' * (len(columns) - 1)}")
    for name in wanted:
        found: dict[str, list[float]] = {}
        for _ in range(ROUNDS):
            for step in ("export", "convert", "verified"):
                command = ["taskset", "-c", "0", sys.executable, __file__, "--one", name, step]
                done = subprocess.run(command, capture_output=True, text=True, check=False)
                if done.returncode:
                    print(f"{name}: {step}: {done.stderr[-2000:]}", file=sys.stderr)
                    return 1
                for key, value in json.loads(done.stdout.splitlines()[-1]).items():
                    found.setdefault(key, []).append(value)
        at = {key: sorted(values)[len(values) // 2] for key, values in found.items()}
        seconds = [at["export"], at["load"], at["build"], (at["load"] + at["build"]) / at["export"]]
        seconds.append(at["verified"] - at["build"])
        memory = [at[f"{of} MB"] for of in ("weights", "export", "build", "verified", "file")]
        cells = [MODELS[name][0], *(f"{x:.2f}" for x in seconds), *(f"{x:.0f}" for x in memory)]
        print(f"| {' | '.join(cells)} |", flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
