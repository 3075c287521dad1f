"""The model zoo is fit to test with: seeded, exportable inputs, and outputs that move with the input."""

from __future__ import annotations

import pytest
import torch
import zoo
from slices import rotating_slice


@pytest.mark.parametrize("name", rotating_slice(list(zoo.MODELS), 0.15, "zoo"))
def test_outputs_vary_between_inputs(name: str) -> None:
    module, inputs = zoo.build(name)
    assert not module.training
    # 100 times the tolerance that conversions are verified with, so that a constant answer cannot pass for a right one.
    assert zoo.variation(name, module, inputs) > 1e-2


@pytest.mark.rotating
def test_seed_decides_weights_and_leaves_global_state_alone() -> None:
    before = torch.random.get_rng_state()
    first, inputs = zoo.build("resnet18", seed=3, size=64)
    again, same_inputs = zoo.build("resnet18", seed=3, size=64)
    other, _ = zoo.build("resnet18", seed=4, size=64)
    assert torch.equal(torch.random.get_rng_state(), before)
    assert torch.equal(inputs["x"], same_inputs["x"])
    assert all(torch.equal(v, again.state_dict()[k]) for k, v in first.state_dict().items())
    assert not torch.equal(first.state_dict()["fc.weight"], other.state_dict()["fc.weight"])


@pytest.mark.parametrize("bidirectional", [False, True])
@pytest.mark.parametrize("batch_first", [False, True])
@pytest.mark.parametrize(("name", "outputs"), [("lstm", 3), ("gru", 2)])
def test_recurrent_options(name: str, outputs: int, batch_first: bool, bidirectional: bool) -> None:
    module, inputs = zoo.build(name, batch=2, steps=5, hidden=8, batch_first=batch_first, bidirectional=bidirectional)
    result = module(**inputs)
    assert len(result) == outputs
    assert list(result[0].shape) == ([2, 5] if batch_first else [5, 2]) + [16 if bidirectional else 8]
    assert list(result[1].shape) == [4 if bidirectional else 2, 2, 8]


def test_bert_ignores_padding() -> None:
    module, inputs = zoo.build("bert", batch=2, length=12, layers=2, hidden=32, heads=4, vocabulary=100)
    inputs["attention_mask"][1, 6:] = 0
    changed = dict(inputs, input_ids=inputs["input_ids"].clone())
    changed["input_ids"][1, 6:] = 7
    assert torch.allclose(module(**inputs)[1, :6], module(**changed)[1, :6], atol=1e-6)


def test_minilm_knows_what_is_alike() -> None:
    module, _ = zoo.build("minilm")
    vectors = module(**zoo.tokenize(zoo.SENTENCES))
    likeness = (vectors @ vectors.T).fill_diagonal_(-1)
    assert int(likeness[2].argmax()) == 4  # matrix multiplication
    assert int(likeness[0].argmax()) == 1  # boats


def test_torchvision_roi_align_and_nms() -> None:
    from torchvision.ops import nms
    from torchvision.ops import roi_align as pooled
    from torchvision.ops.roi_align import _roi_align as in_tensor_ops

    random = torch.Generator().manual_seed(0)
    features = torch.randn(2, 3, 20, 30, generator=random)
    rois = torch.rand(8, 5, generator=random) * torch.tensor([1.99, 15, 10, 1, 1])
    rois[:, 0].floor_()
    rois[:, 3:] += rois[:, 1:3] + 6
    for ratio, aligned in ((2, True), (2, False), (-1, True), (-1, False)):
        with torch.compiler.set_stance("force_eager"):  # torchvision has it compiled, which takes most of a minute
            expected = in_tensor_ops(features, rois, 1.0, 3, 4, ratio, aligned)
        assert torch.allclose(pooled(features, rois, (3, 4), 1.0, ratio, aligned), expected, atol=1e-5)
    boxes = torch.tensor([[0.0, 0, 10, 10], [1, 1, 11, 11], [20, 20, 30, 30], [0, 0, 10, 5]])
    assert nms(boxes, torch.tensor([0.8, 0.9, 0.1, 0.7]), 0.5).tolist() == [1, 3, 2]
