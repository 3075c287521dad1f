"""Which targets can run the model, which nodes are refused and why; then run on Vulkan and look at placement."""

import numpy as np
import pinnace as pn
import torch
from torch import nn


class Peaks(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv = nn.Conv2d(1, 4, 3, padding=1)
        self.fc = nn.Linear(4 * 64, 12)

    def forward(self, image):
        y = self.fc(torch.relu(self.conv(image)).flatten(1))
        return {
            "scores": torch.softmax(y, -1),
            "order": torch.argsort(y, dim=-1, stable=True),
            "where": torch.nonzero(y > 0),
        }


torch.manual_seed(0)
net, x = Peaks().eval(), torch.randn(1, 1, 8, 8)
model = pn.load(net, x)
report = model.check(targets=["cpu", "vulkan", "nnapi"])
print(report)
for word in ("cpu", "vulkan", "nnapi", "nonzero"):
    assert word in str(report).lower(), word
program = model.build(targets=["cpu", "vulkan"])
session = pn.Session(program, target="vulkan")
out = session.run({"image": x})
want = net(x)
assert np.allclose(out["scores"], want["scores"].detach().numpy(), atol=1e-4)
assert np.array_equal(out["where"], want["where"].numpy())
print(session.placement)
assert "vulkan" in str(session.placement).lower()
print("ok")
