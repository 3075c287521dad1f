"""The main job on real input: train, convert, save, reload, run everywhere, compare. Run by `make demo`.

First a small CNN on scikit-learn's handwritten digits: trained here, converted, and the whole test split run from
Python, from a C++ and a C program built against the installed library, and by pinnace-run. Then MobileNetV2 on two
photographs.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np
import pinnace as pn
import torch
from rich.console import Console
from rich.progress import Progress
from rich.table import Table
from torch import nn

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT / "tests" / "models"))
import torchvision_ops  # noqa: E402, F401  torchvision's wheel needs its operators declared first

console = Console(width=120)
# The project's promise for float32: within 1e-4 of the largest magnitude.
BOUND = 1e-4


class DigitsNet(nn.Module):
    """8x8 grey images to 10 classes: two convolutions with batch norm, one pooling, one linear layer."""

    def __init__(self) -> None:
        """Random weights."""
        super().__init__()
        self.features = nn.Sequential(
            nn.Conv2d(1, 24, 3, padding=1), nn.BatchNorm2d(24), nn.ReLU(),
            nn.Conv2d(24, 48, 3, padding=1), nn.BatchNorm2d(48), nn.ReLU(), nn.MaxPool2d(2),
        )  # fmt: skip
        self.head = nn.Linear(48 * 16, 10)

    def forward(self, image: torch.Tensor) -> torch.Tensor:
        """[N, 1, 8, 8] -> [N, 10]."""
        return self.head(self.features(image).flatten(1))


def digits() -> tuple[torch.Tensor, torch.Tensor, torch.Tensor, torch.Tensor]:
    """Train and test split: images scaled to [0, 1], labels."""
    from sklearn.datasets import load_digits
    from sklearn.model_selection import train_test_split

    data = load_digits()
    images = (data.images / 16).astype(np.float32)[:, None]
    split = train_test_split(images, data.target, test_size=0.25, random_state=0, stratify=data.target)
    x_train, x_test, y_train, y_test = (torch.from_numpy(np.ascontiguousarray(part)) for part in split)
    return x_train, x_test, y_train.long(), y_test.long()


def train(x: torch.Tensor, y: torch.Tensor) -> DigitsNet:
    """A few seconds of Adam."""
    torch.manual_seed(0)
    torch.set_num_threads(1)  # for layers this small, more threads wait for each other
    net = DigitsNet()
    optimizer = torch.optim.Adam(net.parameters(), lr=3e-3)
    with Progress(console=console, transient=True) as progress:
        for _ in progress.track(range(12), description="training"):
            for batch in torch.randperm(len(x)).split(64):
                optimizer.zero_grad()
                nn.functional.cross_entropy(net(x[batch]), y[batch]).backward()
                optimizer.step()
    return net.eval()


def native_programs(folder: Path) -> dict[str, list[str]]:
    """Builds the C and C++ examples against the installed library; name -> command."""
    prefix, build = ROOT / "build" / "install", folder / "native"
    subprocess.run(
        [
            "cmake",
            "-S",
            str(ROOT / "examples" / "native"),
            "-B",
            str(build),
            f"-DCMAKE_PREFIX_PATH={prefix}",
            "-DCMAKE_BUILD_TYPE=Release",
        ],
        check=True,
        stdout=subprocess.DEVNULL,
    )
    subprocess.run(["cmake", "--build", str(build)], check=True, stdout=subprocess.DEVNULL)
    return {
        "C++ program": [str(build / "digits_cpp")],
        "C program": [str(build / "digits_c")],
        "pinnace-run": [str(prefix / "bin" / "pinnace-run")],
    }


def run_native(name: str, command: list[str], program: Path, images: np.ndarray, folder: Path) -> np.ndarray:
    """Logits of all images by a program outside Python."""
    source, result = folder / "images.bin", folder / "logits.bin"
    images.tofile(source)
    result.unlink(missing_ok=True)
    if name == "pinnace-run":
        spec = pn.Program.open(program)
        (x,), (y,) = spec.inputs, spec.outputs
        arguments = [str(program), "--input", f"{x}={source}", "--output", f"{y}={result}", "--size", "batch=1"]
    else:
        arguments = [str(program), str(source), str(result)]
    subprocess.run([*command, *arguments], check=True, stdout=subprocess.DEVNULL)
    return np.fromfile(result, np.float32).reshape(len(images), 10)


def digits_demo(folder: Path) -> bool:
    """Everything about the digits; True if all ways agree with PyTorch."""
    console.rule("handwritten digits: train, convert, run five ways")
    x_train, x_test, y_train, y_test = digits()
    net = train(x_train, y_train)
    batch = pn.Dim("batch", 1, 1024)
    model = pn.load(net, example_inputs=(x_test[:8],), dynamic_shapes={"image": {0: batch}})
    program = model.build(targets=["cpu"])
    path = folder / "digits.pnc"
    program.save(path)
    console.print(f"saved {path.relative_to(ROOT)}: {path.stat().st_size:,} bytes, {len(program.nodes)} nodes; "
                  f"verified on cpu: {program.metadata['verified.cpu']}")  # fmt: skip
    with torch.no_grad():
        expected = net(x_test).numpy()
    images, labels = x_test.numpy(), y_test.numpy()
    session = pn.Session(path)
    results = {"PyTorch": expected, "pinnace, Python": next(iter(session.run({"image": images}).values()))}
    for name, command in native_programs(folder).items():
        results[f"pinnace, {name}"] = run_native(name, command, path, images, folder)
    table = Table("run by", "accuracy", "largest difference", title=f"{len(labels)} test images")
    agree = True
    for name, logits in results.items():
        accuracy = float((logits.argmax(1) == labels).mean())
        distance = float(np.abs(logits - expected).max() / np.abs(expected).max())
        agree &= distance < BOUND and accuracy == float((expected.argmax(1) == labels).mean())
        table.add_row(name, f"{accuracy:.4f}", f"{distance:.1e}")
    console.print(table)
    return agree


def photographs() -> np.ndarray:
    """scikit-learn's two sample photographs as [2, 3, 224, 224], normalised as torchvision's models expect."""
    from PIL import Image
    from sklearn.datasets import load_sample_images

    mean, deviation = np.array([0.485, 0.456, 0.406]), np.array([0.229, 0.224, 0.225])
    images = [np.asarray(Image.fromarray(i).resize((224, 224))) for i in load_sample_images().images]
    return ((np.stack(images) / 255 - mean) / deviation).transpose(0, 3, 1, 2).astype(np.float32)


def mobilenet_demo(folder: Path) -> bool:
    """MobileNetV2 with seeded weights on the photographs; True if every layer is within bounds."""
    console.rule("MobileNetV2: convert, compare layer by layer, time")
    import zoo

    module, _ = zoo.build("mobilenet_v2")
    photos = photographs()
    with Progress(console=console, transient=True) as progress:
        task = progress.add_task("loading", total=4)
        model = pn.load(module, example_inputs=(torch.from_numpy(photos[:1]),))
        progress.update(task, advance=1, description="building and verifying")
        program = model.build(targets=["cpu"])
        path = folder / "mobilenet_v2.pnc"
        program.save(path)
        feeds = [dict.fromkeys(program.inputs, photo[None]) for photo in photos]
        progress.update(task, advance=1, description="comparing")
        result = pn.compare(path, module, feeds)
        progress.update(task, advance=1, description="timing")
        times = timings(path, feeds[0])
        progress.update(task, advance=1)
    console.print(
        f"{len(module.state_dict())} tensors of PyTorch: now {len(program.nodes)} nodes, {path.stat().st_size:,} bytes"
    )
    table = Table("value", "operator", "source", "difference", title="the ten layers that differ most, and the output")
    worst = sorted((r for r in result.rows if not r.output), key=lambda r: -r.targets["cpu"].relative)[:10]
    for row in [r for r in result.rows if r.output or any(r is w for w in worst)]:
        place = "/".join(row.source.split("/")[-2:])
        table.add_row(row.value, row.op, place, f"{row.targets['cpu'].relative:.1e}")
    console.print(table)
    result.to_html(folder / "mobilenet_v2.html")
    console.print(f"all {len(result.rows)} layers: {(folder / 'mobilenet_v2.html').relative_to(ROOT)}")
    for threads, milliseconds in times.items():
        console.print(f"{milliseconds:.1f} ms per inference, {threads} thread{'s' * (threads > 1)}")
    return result.ok and result.worst("cpu") < BOUND


def timings(path: Path, feed: dict[str, Any]) -> dict[int, float]:
    """Median milliseconds of 20 runs by number of threads."""
    found = {}
    for threads in sorted({1, min(2, os.cpu_count() or 1)}):
        session = pn.Session(path, threads=threads)
        session.run(feed)
        times = []
        for _ in range(20):
            start = time.perf_counter()
            session.run(feed)
            times.append(time.perf_counter() - start)
        found[threads] = float(np.median(times)) * 1e3
    return found


def main() -> int:
    """0 if everything agrees."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--folder", type=Path, default=ROOT / "build" / "demo", help="where files are left")
    folder = parser.parse_args().folder.resolve()
    folder.mkdir(parents=True, exist_ok=True)
    ok = digits_demo(folder)
    ok &= mobilenet_demo(folder)
    console.rule("equal within bounds" if ok else "[red]NOT equal[/red]")
    console.print("Next: your own model. In Python:")
    console.print('  .venv/bin/python -c "import pinnace as pn; help(pn.load)"', highlight=False)
    console.print("or from the command line:")
    console.print(f"  .venv/bin/python -m pinnace inspect {(folder / 'digits.pnc').relative_to(ROOT)}", highlight=False)
    console.print("  .venv/bin/python -m pinnace convert your_model.pt2 -o your_model.pnc", highlight=False)
    return 0 if ok else 1


if __name__ == "__main__":
    sys.exit(main())
