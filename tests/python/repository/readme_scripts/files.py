"""Models from files: .onnx, .pt2 and TorchScript of the same network give the same outputs."""

import numpy as np
import pinnace as pn
import torch
from torch import nn


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.rnn = nn.GRU(6, 10, batch_first=True)
        self.fc = nn.Linear(10, 2)

    def forward(self, frames):
        return self.fc(self.rnn(frames)[0])


torch.manual_seed(0)
net, x = Net().eval(), torch.randn(1, 12, 6)
torch.onnx.export(
    net,
    (x,),
    "net.onnx",
    input_names=["frames"],
    output_names=["y"],
    dynamo=False,
    dynamic_axes={"frames": {0: "batch"}, "y": {0: "batch"}},
)
torch.export.save(torch.export.export(net, (x,)), "net.pt2")
torch.jit.script(net).save("net.pt")
expected = net(x).detach().numpy()
for model in (pn.load("net.onnx"), pn.load("net.pt2"), pn.load("net.pt", x)):
    out = pn.Session(model.build()).run({"frames": x})
    print(list(out))
    assert np.allclose(list(out.values())[0], expected, atol=1e-4)
three = torch.randn(3, 12, 6)  # the batch of the ONNX file is dynamic
out = pn.Session(pn.load("net.onnx").build()).run({"frames": three})
assert np.allclose(out["y"], net(three).detach().numpy(), atol=1e-4)
try:
    pn.load("missing.onnx")
    raise AssertionError("loaded a file that is not there")
except pn.Error as error:
    print("missing file:", error)
print("ok")
