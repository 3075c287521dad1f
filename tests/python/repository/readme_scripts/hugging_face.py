"""A small Hugging Face model with random weights, dynamic batch and length; outputs named by the returned fields."""

import numpy as np
import pinnace as pn
import torch
from transformers import BertConfig, BertModel

torch.manual_seed(0)
config = BertConfig(
    vocab_size=200,
    hidden_size=32,
    num_hidden_layers=2,
    num_attention_heads=2,
    intermediate_size=64,
    max_position_embeddings=64,
)
net = BertModel(config).eval()
ids = torch.randint(0, 200, (2, 9))
mask = torch.ones_like(ids)
mask[1, 6:] = 0
dynamic_dims = {0: pn.Dim("batch", 1, 8), 1: pn.Dim("length", 2, 64)}
model = pn.load(
    net, {"input_ids": ids, "attention_mask": mask}, {"input_ids": dynamic_dims, "attention_mask": dynamic_dims}
)
program = model.build()
program.save("bert.pnc")
session = pn.Session("bert.pnc", threads=1)
for n, length in [(2, 9), (1, 30)]:
    ids = torch.randint(0, 200, (n, length))
    mask = torch.ones_like(ids)
    mask[0, length - 2 :] = 0
    out = session.run({"input_ids": ids, "attention_mask": mask})
    print(n, length, sorted(out))
    with torch.no_grad():
        expected = net(input_ids=ids, attention_mask=mask)
    assert np.allclose(out["last_hidden_state"], expected.last_hidden_state.numpy(), atol=1e-3)
    assert np.allclose(out["pooler_output"], expected.pooler_output.numpy(), atol=1e-3)
print("ok")
