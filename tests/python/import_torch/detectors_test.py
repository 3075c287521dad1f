"""Detectors from live modules: torchvision's, and modules that use its functions, against eager."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pinnace as pn
import pytest
import torch
from pinnace import _core
from pinnace.torch.detection import NOTE, exportable_detectors, pasted_masks
from pinnace.verify.dataflow import Dataflow
from pinnace.verify.detections import groups_of
from slices import all_mode, rotating_slice
from target_problem import problem
from torch import Tensor, nn

detectors = pytest.importorskip("detectors")  # before torchvision
OPEN = {1: pn.Dim("height", 96, 400), 2: pn.Dim("width", 96, 400)}
# In each run; of the others one, and all with everything.
QUICK = ("ssdlite",)


def images() -> list[dict[str, np.ndarray]]:
    """Photographs of four sizes, as inputs of a program."""
    return [{"images.0": image.numpy()} for image in detectors.photographs()]


def converted(name: str) -> None:
    """One file for all sizes, held against eager on each photograph, on which at least five objects are found."""
    model = detectors.detector(name)
    if "rcnn" in name:
        model.roi_heads.box_roi_pool.scales = None  # as of a module that was never called
    loaded = pn.load(model, [detectors.photographs()[0]], dynamic_shapes=OPEN)
    assert [type(size) for size in loaded.inputs["images.0"].shape] == [int, pn.Dim, pn.Dim]
    assert (NOTE in loaded.notes) == ("rcnn" in name)
    program = loaded.build(examples=images())
    assert program.metadata["verified"].startswith("4 input(s)"), program.metadata["verified"]
    assert ("; all labels in '0.labels' were 1" in program.metadata["verified"]) == (name == "keypoint_rcnn")
    assert program.metadata["verified.cpu"].startswith("yes"), program.metadata["verified.cpu"]
    inner = [n for n in program.nodes if n.module.startswith("_empty") or "runtime_assert" in n.source]
    assert not inner, inner
    session = pn.Session(program)
    for feed in images():
        got = session.run(feed)
        assert len(got["0.scores"]) >= 5
        assert next(iter(got)) == "0.boxes"


@pytest.mark.rotating
@pytest.mark.parametrize("name", QUICK)
def test_a_detector_converts_for_all_sizes_of_images(name: str) -> None:
    converted(name)


OTHERS = sorted(set(detectors.DETECTORS) - set(QUICK))
# Masks and keypoints take over a minute each: runs of everything convert them, slices do not.
SHORT = [name for name in OTHERS if name not in ("mask_rcnn", "keypoint_rcnn")]


@pytest.mark.rotating
@pytest.mark.parametrize("name", OTHERS if all_mode() else rotating_slice(SHORT, 1 / len(SHORT)))
def test_every_detector_converts_for_all_sizes_of_images(name: str) -> None:
    converted(name)


@pytest.mark.rotating
def test_several_images_of_different_sizes() -> None:
    """In one list, as torchvision's detectors take them: detections of each under its number."""
    photographs = detectors.photographs()[:2]
    sizes = [{1: pn.Dim(f"height{i}", 96, 400), 2: pn.Dim(f"width{i}", 96, 400)} for i in range(2)]
    loaded = pn.load(detectors.detector("ssdlite"), photographs, dynamic_shapes={"images": sizes})
    assert [str(spec) for spec in loaded.inputs["images.1"].shape] == ["3", "height1", "width1"]
    examples = [{"images.0": a.numpy(), "images.1": b.numpy()} for a, b in (photographs, photographs[::-1])]
    program = loaded.build(examples=examples)
    assert program.metadata["verified.cpu"].startswith("yes"), program.metadata
    session = pn.Session(program)
    for feed in examples:
        found = session.run(feed)
        assert list(found) == [f"{i}.{part}" for i in range(2) for part in ("boxes", "scores", "labels")]
        assert min(len(found[f"{i}.scores"]) for i in range(2)) >= 5


@pytest.mark.rotating
def test_frozen_batch_normalisation() -> None:
    """Which torchvision's own weights of R-CNNs come with."""
    model = detectors.frozen(detectors.detector("faster_rcnn_mobilenet"))
    norms = {name for name, module in model.named_modules() if type(module).__name__ == "FrozenBatchNorm2d"}
    assert len(norms) > 20
    program = pn.load(model, [detectors.photographs()[0]], dynamic_shapes=OPEN).build(examples=images()[:2])
    assert program.metadata["verified"].startswith("2 input(s)"), program.metadata["verified"]
    assert program.metadata["verified.cpu"].startswith("yes"), program.metadata["verified.cpu"]
    left = [node for node in program.nodes if node.module in norms and node.op in ("mul", "add", "sub", "div")]
    assert not left, "a norm is folded into the convolution before it"


@pytest.mark.rotating
@pytest.mark.parametrize("kind", ["yolo", "detr"])
def test_detectors_of_other_kinds(kind: str) -> None:
    model, photographs = yolo()
    if kind == "detr":
        torch.manual_seed(1)
        model = detectors.Detr()
        model = detectors.settled(model, model.classes)
    shapes = {1: pn.Dim("height", 64, 400, multiple_of=16), 2: pn.Dim("width", 64, 400, multiple_of=16)}
    loaded = pn.load(model, photographs[0], dynamic_shapes=shapes)
    program = loaded.build(examples=[{"image": x.numpy()} for x in photographs])
    assert program.metadata["verified"].startswith("4 input(s)"), program.metadata["verified"]
    found = pn.Session(program).run({"image": photographs[0].numpy()})
    assert len(found["scores"]) >= 5
    assert len(set(found["labels"].tolist())) > 1


def yolo(most: int = 50) -> tuple[nn.Module, list[Tensor]]:
    torch.manual_seed(1)
    model = detectors.Yolo(most=most)
    images = [x[:, : x.shape[1] // 16 * 16, : x.shape[2] // 16 * 16] for x in detectors.photographs()]
    return detectors.settled(model, model.head), images


class OfTwo(nn.Module):
    """Detections of two images, image by image or kind by kind."""

    def __init__(self, model: nn.Module, by_kind: bool) -> None:
        super().__init__()
        self.model, self.by_kind = model, by_kind

    def forward(self, a: Tensor, b: Tensor) -> list[list[Tensor]]:
        found = [list(self.model(image).values()) for image in (a, b)]
        return [list(kind) for kind in zip(*found, strict=True)] if self.by_kind else found


@pytest.mark.parametrize("by_kind", [False, True])
def test_detections_belong_together_under_any_names(by_kind: bool) -> None:
    model, images = yolo()
    names = [f"{kind}_{image}" for image in "ab" for kind in ("boxes", "scores", "labels")]
    names = [f"{kind}_{image}" for kind in ("boxes", "scores", "labels") for image in "ab"] if by_kind else names
    program = pn.load(OfTwo(model, by_kind).eval(), tuple(images[:2])).build(output_names=names, verify=False)
    groups = groups_of(program, Dataflow(program))
    outputs = list(program.outputs)
    assert [[outputs[place] for place in (g.boxes, g.scores, g.labels or 0)] for g in groups] == [
        [f"{kind}_{image}" for kind in ("boxes", "scores", "labels")] for image in "ab"
    ]


@pytest.mark.rotating
@pytest.mark.parametrize("method", ["int8", "float16"])
def test_errors_of_quantised_detectors_are_of_sets(method: str) -> None:
    """Another number of objects is no error of the call, another order none of the program."""
    model, images = yolo(most=1000)
    shapes = {1: pn.Dim("height", 64, 400, multiple_of=16), 2: pn.Dim("width", 64, 400, multiple_of=16)}
    loaded = pn.load(model, images[0], dynamic_shapes=shapes)
    samples = [{"image": np.roll(x.numpy(), 16 * i, 2)} for x in images[:2] for i in range(4)]
    options = pn.Int8(calibration=samples, progress=False) if method == "int8" else pn.Float16()
    program = loaded.build(quantize=options, examples=samples)
    report = program.quantization
    assert report is not None
    exact, quantised = pn.Session(loaded.build(verify=False)), pn.Session(program)
    found = [[len(session.run(sample)["scores"]) for sample in samples] for session in (exact, quantised)]
    assert found[0] != found[1], found
    errors = report.errors
    assert set(errors) == {"boxes", "scores", "labels"}
    assert 0 < errors["scores"] < (0.7 if method == "int8" else 0.1), errors
    assert "inf" not in program.metadata["verified.cpu"], program.metadata
    if method == "float16":
        assert "and detections with them" in program.metadata["verified.cpu"]


def test_detections_too_many_are_none_of_roundings(monkeypatch: pytest.MonkeyPatch) -> None:
    """Another number of objects is the roundings' only where the source has it on the program's own values."""
    model, images = yolo(most=1000)
    loaded = pn.load(model, images[0])
    model.overlap = 0.6  # type: ignore[assignment]
    looser = pn.load(model, images[0])
    model.overlap = 0.45  # type: ignore[assignment]
    whole = _core.Model.in_float16

    def faulty(core: Any, nodes: list[str], values: bool = True) -> Any:
        """The program, not what it is held against, keeps boxes that overlap more."""
        return whole(looser._core if values else core, nodes, values)

    monkeypatch.setattr(_core.Model, "in_float16", faulty)
    with pytest.raises(pn.VerificationError, match=r"\d+ detections for \d+$"):
        loaded.build(quantize=pn.Float16())


OLDER = ("ssdlite", "retinanet", "fcos", "ssd300", "faster_rcnn_mobilenet", "faster_rcnn", "mask_rcnn", "keypoint_rcnn")


@pytest.mark.rotating
@pytest.mark.filterwarnings("ignore")  # of the exporter
@pytest.mark.parametrize("name", rotating_slice(OLDER, 1 / len(OLDER), "older"))
def test_files_of_the_older_onnx_exporter_are_verified(name: str, tmp_path: Path) -> None:
    model = detectors.detector(name)
    path = tmp_path / "m.onnx"
    image = detectors.photographs()[0]
    with torch.no_grad():
        names = list(model([image])[0])
    torch.onnx.export(
        model,
        ([image],),
        path,
        dynamo=False,
        opset_version=17,
        input_names=["image"],
        output_names=names,
        dynamic_axes={"image": {1: "h", 2: "w"}},
    )
    feeds = [{"image": x.numpy()} for x in detectors.photographs()]
    loaded = pn.load(path, symbols=(pn.Dim("h", 96, 400), pn.Dim("w", 96, 400)))
    for reference in (None, model):
        program = loaded.build(examples=feeds, reference=reference)
        assert program.metadata["verified"].startswith("4 input(s)"), program.metadata["verified"]
        assert program.metadata["verified.cpu"].startswith("yes"), program.metadata["verified.cpu"]


@pytest.mark.parametrize("target", ["vulkan", pytest.param("softmetal", marks=pytest.mark.rotating)])
def test_what_is_dense_stays_on_the_device(target: str) -> None:
    if why := problem(target):
        pytest.skip(why)
    model = detectors.detector("ssdlite")
    loaded = pn.load(model, [detectors.photographs()[0]], dynamic_shapes=OPEN)
    assert not [row for row in loaded.check([target]).nodes if "-1" in row.value]
    program = loaded.build(targets=[target], examples=images()[:2])
    assert program.metadata[f"verified.{target}"].startswith("yes"), program.metadata
    session = pn.Session(program, target=[target, "cpu"])
    session.run(images()[0])
    ops = {node.name: node.op for node in program.nodes}
    left = {ops[row.node] for row in session.placement if row.backend == "cpu"}
    assert not left & {"conv", "global_average_pool", "softmax", "resize", "exp", "clip"}, left
    assert sum(row.backend == target for row in session.placement) > len(session.placement) / 2


# With feature pyramids and over a thousand boxes: as many nodes again work on what is found.
LARGER = ("faster_rcnn_mobilenet", "fcos", "retinanet")


@pytest.mark.rotating
@pytest.mark.parametrize("name", rotating_slice(LARGER, 1 / len(LARGER), "dense"))
def test_what_is_dense_in_larger_detectors_stays_on_the_device(name: str) -> None:
    if why := problem("vulkan"):
        pytest.skip(why)
    loaded = pn.load(detectors.detector(name), [detectors.photographs()[0]], dynamic_shapes=OPEN)
    program = loaded.build(targets=["vulkan"], examples=images()[:1])
    assert program.metadata["verified.vulkan"].startswith("yes"), program.metadata
    session = pn.Session(program, target=["vulkan", "cpu"])
    session.run(images()[0])
    ops = {node.name: node.op for node in program.nodes}
    on = {kind: {ops[r.node] for r in session.placement if r.backend == kind} for kind in ("cpu", "vulkan")}
    assert not on["cpu"] & {"conv", "conv_transpose", "resize", "max_pool"}, on["cpu"]
    assert {"conv", "resize"} <= on["vulkan"]


class Mutated(nn.Module):
    """A detector whose detections are changed."""

    def __init__(self, model: nn.Module, change: Callable[[dict[str, Tensor]], dict[str, Tensor]]) -> None:
        super().__init__()
        self.model, self.change = model, change

    def forward(self, images: list[Tensor]) -> list[dict[str, Tensor]]:
        return [self.change(found) for found in self.model(images)]


def shifted(found: dict[str, Tensor]) -> dict[str, Tensor]:
    boxes = found["boxes"].clone()
    boxes[2, 0::2] += 0.02 * (boxes[2, 2] - boxes[2, 0])
    return {**found, "boxes": boxes}


def relabelled(found: dict[str, Tensor]) -> dict[str, Tensor]:
    labels = found["labels"].clone()
    labels[2] = labels[2] % 4 + 1
    return {**found, "labels": labels}


def rescored(found: dict[str, Tensor]) -> dict[str, Tensor]:
    scores = found["scores"].clone()
    scores[2] *= 1.01
    return {**found, "scores": scores}


def shortened(found: dict[str, Tensor]) -> dict[str, Tensor]:
    return {key: torch.cat([value[:2], value[3:]]) for key, value in found.items()}


def reordered(found: dict[str, Tensor]) -> dict[str, Tensor]:
    return {key: value.flip(0) for key, value in found.items()}


@pytest.mark.rotating
def test_changed_detections_are_found() -> None:
    model = detectors.detector("ssdlite")
    program = pn.load(model, [detectors.photographs()[0]], dynamic_shapes=OPEN).build(verify=False)
    changes = (
        (shifted, "of its longer side"),
        (relabelled, "none of the other's"),
        (rescored, "of its largest value"),
        (shortened, "300 detections for 299"),
        (reordered, ""),  # no fault
    )
    for change, said in rotating_slice(changes, 0.2, "changes"):
        result = pn.compare(program, Mutated(model, change), images()[:1])
        whys = [row.targets["cpu"].why for row in result.rows if row.output and not row.targets["cpu"].ok]
        assert any(said in why for why in whys) if said else not whys, (change, whys)
    if all_mode():
        result = pn.compare(program, model, images()[1:2])  # exported anew at its size
        assert result.ok, str(result)


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


@pytest.mark.parametrize("name", [pytest.param("mask_rcnn", marks=pytest.mark.rotating), "ssdlite"])
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
    # A place in a mask of 30 is known to 2e-6, the step of float32 there: two on each axis, times values of up to 1.
    torch.testing.assert_close(got, wanted, rtol=0, atol=8e-6)


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
