"""Validate layer by layer on two targets, write a report; then with bf16, which should differ a little."""

import os

import pinnace as pn
import torch
from torch import nn


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.body = nn.Sequential(nn.Conv1d(2, 8, 3), nn.BatchNorm1d(8), nn.GELU(), nn.Flatten())
        self.head = nn.Linear(8 * 14, 3)

    def forward(self, signal):
        return {"logits": self.head(self.body(signal))}


torch.manual_seed(0)
net, x = Net().eval(), torch.randn(4, 2, 16)
program = pn.load(net, x, {"signal": {0: pn.Dim("batch", 1, 64)}}).build(targets=["cpu", "vulkan"])
result = pn.compare(program, reference=net, inputs=[{"signal": x}, {"signal": x[:1]}], targets=["cpu", "vulkan"])
print(result)
assert result.ok
result.to_html("report.html")
text = open("report.html", encoding="utf-8").read()
assert os.path.getsize("report.html") > 1000 and "vulkan" in text and "conv" in text.lower()
session = pn.Session(program, target="cpu", threads=2, precision="bf16")
difference = abs(session.run({"signal": x})["logits"] - net(x)["logits"].detach().numpy()).max()
print("bf16 differs by", difference)
assert difference < 0.05
wrong = Net().eval()  # other weights: the comparison has to notice
assert not pn.compare(program, reference=wrong, inputs=[{"signal": x}], targets=["cpu"]).ok
print("ok")
