"""The plain one-liner: convert a classifier whose forward() returns a bare tensor, save, open, run."""

import numpy as np
import pinnace as pn
import torch
from torch import nn


class Classifier(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv = nn.Conv2d(3, 8, 3, padding=1)
        self.norm = nn.BatchNorm2d(8)
        self.fc = nn.Linear(8, 5)

    def forward(self, image):
        y = torch.relu(self.norm(self.conv(image)))
        return self.fc(y.mean(dim=(2, 3)))


torch.manual_seed(0)
net = Classifier()  # a beginner forgets .eval(): the README's example has it
net.eval()
x = torch.randn(2, 3, 16, 16)
pn.load(net, x).build().save("classifier.pnc")
out = pn.Session("classifier.pnc").run({"image": x.numpy()})
print({name: value.shape for name, value in out.items()})
assert len(out) == 1
scores = list(out.values())[0]
with torch.no_grad():
    expected = net(x).numpy()
assert np.allclose(scores, expected, atol=1e-4)
again = pn.Session(pn.Program.open("classifier.pnc")).run({"image": x})  # a torch tensor as in the README
assert np.allclose(list(again.values())[0], expected, atol=1e-4)
print("ok")
