"""Detectors from live modules: torchvision's, and modules that use its functions, against eager."""

from __future__ import annotations

import sys

import numpy as np
import pinnace as pn
import pytest
import torch
from pinnace.torch.detection import exportable_detectors, pasted_masks
from torch import Tensor, nn

detectors = pytest.importorskip("detectors")  # before torchvision


def boxes_of(count: int, rng: np.random.Generator) -> Tensor:
    """[count, 4] as corners, many of which overlap."""
    corners = rng.uniform(-20, 100, (count, 2))
    sizes = rng.uniform(10, 60, (count, 2))
    return torch.from_numpy(np.concatenate([corners, corners + sizes], 1).astype(np.float32))


class Suppressing(nn.Module):
    def forward(self, boxes: Tensor, scores: Tensor, idxs: Tensor) -> Tensor:
        from torchvision.ops import batched_nms

        here = torch.where(scores >= 0)[0]
        kept: Tensor = batched_nms(boxes[here], scores[here], idxs[here], 0.4)
        return kept[:700]


@pytest.mark.parametrize("kind", [torch.int64, torch.float32])
def test_batched_nms_of_any_number_of_boxes(kind: torch.dtype, rng: np.random.Generator) -> None:
    def inputs(count: int, categories: int) -> list[Tensor]:
        idxs = torch.from_numpy(rng.integers(0, categories, count)) * 3 - 1  # neither from 0 on nor without gaps
        # Each twice, but where torchvision sorts in an order of equal ones that torch does not state.
        scores = torch.from_numpy(rng.permutation(count).astype(np.float32) // (2 if count <= 1000 else 1))
        return [boxes_of(count, rng), scores, idxs.to(kind)]

    n = pn.Dim("n", 1, 5000)
    module = Suppressing()
    program = pn.load(module, tuple(inputs(300, 5)), dynamic_shapes=({0: n}, {0: n}, {0: n})).build(verify=False)
    session = pn.Session(program)
    # Up to 1000 boxes torchvision moves categories apart; above it suppresses each by itself.
    for count, categories in ((300, 5), (1000, 3), (1001, 3), (2500, 7), (1, 1), (9, 0)):
        given = inputs(count, max(categories, 1))
        given[1] -= 0 if categories else 100  # then there are none
        got = session.run({name: x.numpy() for name, x in zip(session.inputs, given, strict=True)})
        assert np.array_equal(next(iter(got.values())), module(*given).numpy()), count


@pytest.mark.parametrize("name", ["mask_rcnn", "ssdlite"])
def test_what_stands_in_for_torchvision_keeps_its_bits_and_leaves_no_trace(name: str) -> None:
    model = detectors.detector(name)
    before = {m: dict(vars(m)) for m in list(sys.modules.values()) if m.__name__.startswith("torchvision")}
    image = detectors.photographs()[0]
    with torch.no_grad():
        wanted = model([image])[0]
        with exportable_detectors():
            got = model([image])[0]
    assert wanted.keys() == got.keys()
    assert len(wanted["scores"]) >= 5
    assert all(torch.equal(wanted[key], got[key]) for key in wanted)
    assert all(vars(m)[key] is value for m, values in before.items() for key, value in values.items())


def test_masks_are_pasted_as_torchvision_pastes_them(rng: np.random.Generator) -> None:
    from torchvision.models.detection.roi_heads import paste_masks_in_image

    masks = torch.from_numpy(rng.random((40, 1, 28, 28), np.float32))
    corners = torch.from_numpy(rng.uniform(-30, 150, (40, 2)).astype(np.float32))
    sizes = torch.from_numpy(rng.uniform(0, 90, (40, 2)).astype(np.float32))
    boxes = torch.cat([corners, corners + sizes], 1)
    boxes[:, 0::2], boxes[:, 1::2] = boxes[:, 0::2].clamp(0, 170), boxes[:, 1::2].clamp(0, 120)  # within the image
    wanted = paste_masks_in_image(masks, boxes, (120, 170))
    got = pasted_masks(masks, boxes, (120, 170))
    assert got.shape == wanted.shape
    assert bool((wanted > 0).any())
    torch.testing.assert_close(got, wanted, rtol=0, atol=5e-6)


def test_lists_of_dicts_keep_their_names() -> None:
    class Listed(nn.Module):
        def forward(self, images: list[Tensor]) -> list[dict[str, Tensor]]:
            return [{"boxes": image.mean(0), "scores": image.amax((1, 2))} for image in images]

    model = pn.load(Listed(), ([torch.rand(3, 4, 5), torch.rand(3, 6, 7)],))
    assert list(model.outputs) == ["0.boxes", "0.scores", "1.boxes", "1.scores"]
    assert list(model.inputs) == ["images.0", "images.1"]
    # A list for an argument that is a list of tensors is that argument.
    model = pn.load(Listed(), [torch.rand(3, 4, 5)], dynamic_shapes={1: "height", 2: "width"})
    assert [getattr(d, "name", d) for d in model.inputs["images.0"].shape] == [3, "height", "width"]
    with pytest.raises(pn.InvalidArgument, match=r"does not fit Listed\.forward"):
        pn.load(Listed(), (torch.rand(3, 4, 5), torch.rand(3, 6, 7)))
