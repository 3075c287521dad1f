"""The command line: convert, inspect, check, run (with an image), compare and bench an ONNX file."""

import subprocess
import sys

import torch
from PIL import Image
from torch import nn


def pinnace(*arguments):
    done = subprocess.run([sys.executable, "-m", "pinnace", *arguments], capture_output=True, text=True)
    print("$ pinnace", *arguments, "->", done.returncode)
    print(done.stdout, done.stderr, sep="")
    return done


net = nn.Sequential(nn.Conv2d(3, 4, 3, stride=2), nn.ReLU(), nn.Flatten(), nn.Linear(4 * 15 * 15, 10)).eval()
torch.onnx.export(
    net, (torch.randn(1, 3, 32, 32),), "net.onnx", input_names=["image"], output_names=["scores"], dynamo=False
)
Image.effect_noise((32, 32), 80).convert("RGB").save("cat.png")
parameters = sum(p.numel() for p in net.parameters())
results = {
    words[0]: pinnace(*words)
    for words in (
        ("convert", "net.onnx", "-o", "net.pnc"),
        ("inspect", "net.pnc"),
        ("check", "net.onnx", "--target", "cpu", "--target", "vulkan"),
        ("run", "net.pnc", "--input", "image=cat.png"),
        ("compare", "net.pnc", "--reference", "net.onnx"),
        ("bench", "net.pnc"),
    )
}
assert all(done.returncode == 0 for done in results.values()), {name: done.returncode for name, done in results.items()}
digits = results["inspect"].stdout.replace(",", "").replace(" ", "")
assert str(parameters) in digits, parameters
assert "scores" in results["run"].stdout
assert "vulkan" in results["check"].stdout
assert "ms" in results["bench"].stdout
bad = pinnace("convert", "missing.onnx", "-o", "x.pnc")
assert bad.returncode != 0 and "missing.onnx" in bad.stderr and "Traceback" not in bad.stderr
print("ok")
