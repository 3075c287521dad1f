"""A module that keeps a state between calls: read, set, reset, save, restore and fork it through the session."""

import numpy as np
import pinnace as pn
import torch
from torch import nn


class Average(nn.Module):
    def __init__(self):
        super().__init__()
        self.register_buffer("h", torch.zeros(1, 4))

    def forward(self, x):
        self.h = 0.9 * self.h + 0.1 * x
        return {"average": self.h}


x = torch.arange(4.0).reshape(1, 4)
session = pn.Session(pn.load(Average().eval(), x).build())
h = np.zeros((1, 4), np.float32)
assert np.allclose(session.state["h"], h)
for _ in range(3):
    h = 0.9 * h + 0.1 * x.numpy()
    assert np.allclose(session.run({"x": x})["average"], h, atol=1e-6)
assert np.allclose(session.state["h"], h, atol=1e-6)
saved = session.save_state()
other = session.fork()
session.state["h"] = np.ones((1, 4), np.float32)
assert np.allclose(session.run({"x": x})["average"], 0.9 + 0.1 * x.numpy(), atol=1e-6)
assert np.allclose(other.state["h"], h, atol=1e-6)  # the fork has its own
session.restore_state(saved)
assert np.allclose(session.state["h"], h, atol=1e-6)
session.reset_state()
assert np.allclose(session.state["h"], 0)
print("ok")
