"""int8 with calibration, dynamic int8 and 4-bit weights: smaller files, outputs close to the float model."""

import os

import numpy as np
import pinnace as pn
import torch
from torch import nn


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.layers = nn.Sequential(nn.Linear(64, 256), nn.ReLU(), nn.Linear(256, 256), nn.ReLU(), nn.Linear(256, 10))

    def forward(self, features):
        return {"scores": self.layers(features)}


torch.manual_seed(0)
net, x = Net().eval(), torch.randn(8, 64)
samples = [{"features": torch.randn(8, 64)} for _ in range(16)]
with torch.no_grad():
    expected = net(x)["scores"].numpy()
pn.load(net, x).build().save("float.pnc")
ways = {"int8": pn.Int8(calibration=samples), "dynamic": pn.DynamicInt8(), "weights4": pn.WeightOnly(bits=4)}
for name, way in ways.items():
    program = pn.load(net, x).build(quantize=way)
    program.save(f"{name}.pnc")
    got = pn.Session(f"{name}.pnc").run({"features": x})["scores"]
    error = np.abs(got - expected).max() / np.abs(expected).max()
    size = os.path.getsize(f"{name}.pnc") / os.path.getsize("float.pnc")
    print(f"{name}: relative error {error:.4f}, size {size:.2f} of float")
    assert 0 < error < 0.25, name
    assert size < 0.5, name
print("ok")
