"""Two named inputs of dynamic length (a masked mean of embeddings), run at several sizes, wrong sizes refused."""

import numpy as np
import pinnace as pn
import torch
from torch import nn


class Encoder(nn.Module):
    def __init__(self):
        super().__init__()
        self.table = nn.Embedding(100, 16)
        self.out = nn.Linear(16, 4)

    def forward(self, ids, mask):
        m = mask.unsqueeze(-1)
        mean = (self.table(ids) * m).sum(1) / m.sum(1)
        return {"vector": self.out(mean)}


torch.manual_seed(0)
net = Encoder().eval()
ids, mask = torch.randint(0, 100, (2, 7)), torch.ones(2, 7)
model = pn.load(net, {"ids": ids, "mask": mask}, {"ids": {0: "n", 1: "length"}, "mask": {0: "n", 1: "length"}})
session = pn.Session(model.build())
for n, length in [(2, 7), (1, 3), (5, 40)]:
    ids, mask = torch.randint(0, 100, (n, length)), torch.ones(n, length)
    out = session.run({"ids": ids, "mask": mask})
    assert np.allclose(out["vector"], net(ids, mask)["vector"].detach().numpy(), atol=1e-4), (n, length)
try:
    session.run({"ids": ids, "mask": mask[:, :5]})  # lengths differ
    raise AssertionError("accepted inputs whose lengths differ")
except pn.Error as error:
    print("refused:", error)
    assert "length" in str(error)
print("ok")
