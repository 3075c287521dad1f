"""torchvision's detectors with small backbones and random weights that find objects: batch normalisation has the
statistics of photographs, and the outputs of heads are scaled, so that scores differ and boxes move."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

import numpy as np
import torch
import torchvision_ops  # noqa: F401  before torchvision: it declares what its missing C extension would
from torch import Tensor, nn
from torchvision.models import detection
from torchvision.models.detection.backbone_utils import resnet_fpn_backbone

# Rows and columns of the crops that photographs() gives.
SIZES = ((160, 200), (200, 152), (131, 177), (224, 320))
_SIDES = {"min_size": 128, "max_size": 200}


def photographs(sizes: Iterable[tuple[int, int]] = SIZES) -> list[Tensor]:
    """Crops of scikit-learn's sample images, [3, rows, columns] in [0, 1]."""
    from sklearn.datasets import load_sample_images

    images = load_sample_images().images
    crops = []
    for i, (rows, columns) in enumerate(sizes):
        image = images[i % len(images)]
        top, left = 40 + 20 * i, 100 + 30 * i
        crop = np.ascontiguousarray(image[top : top + 2 * rows : 2, left : left + columns].transpose(2, 0, 1))
        crop = crop if crop.shape[1:] == (rows, columns) else image[:rows, :columns].transpose(2, 0, 1)
        crops.append(torch.from_numpy(crop.astype(np.float32) / 255))
    return crops


def _backbone() -> Any:
    return resnet_fpn_backbone(backbone_name="resnet18", weights=None, norm_layer=nn.BatchNorm2d, trainable_layers=5)


def _faster() -> Any:
    return detection.FasterRCNN(_backbone(), num_classes=5, **_SIDES)


def _mask() -> Any:
    return detection.MaskRCNN(_backbone(), num_classes=5, **_SIDES)


def _keypoint() -> Any:
    return detection.KeypointRCNN(_backbone(), num_classes=2, num_keypoints=5, **_SIDES)


def _retina() -> Any:
    return detection.RetinaNet(_backbone(), num_classes=5, anchor_generator=_five_levels(), **_SIDES)


def _fcos() -> Any:
    return detection.FCOS(_backbone(), num_classes=5, **_SIDES)


def _five_levels() -> Any:
    from torchvision.models.detection.anchor_utils import AnchorGenerator

    sizes = tuple((x, int(x * 2 ** (1 / 3))) for x in (16, 32, 64, 128, 256))
    return AnchorGenerator(sizes, ((0.5, 1.0, 2.0),) * 5)


def _mobile() -> Any:
    return detection.fasterrcnn_mobilenet_v3_large_320_fpn(
        weights=None, weights_backbone=None, num_classes=5, trainable_backbone_layers=6, min_size=128, max_size=200
    )


def _ssd() -> Any:
    return detection.ssd300_vgg16(weights=None, weights_backbone=None, num_classes=5)


def _ssdlite() -> Any:
    return detection.ssdlite320_mobilenet_v3_large(weights=None, weights_backbone=None, num_classes=5)


DETECTORS: dict[str, Callable[[], Any]] = {
    "faster_rcnn": _faster,
    "faster_rcnn_mobilenet": _mobile,
    "mask_rcnn": _mask,
    "keypoint_rcnn": _keypoint,
    "retinanet": _retina,
    "fcos": _fcos,
    "ssd300": _ssd,
    "ssdlite": _ssdlite,
}
# Ends of the names of layers that give scores, and of those that give boxes or masks, with the deviation that their
# outputs are given.
_DEVIATIONS = {
    "rpn.head.cls_logits": 2.0,
    "rpn.head.bbox_pred": 0.3,
    "box_predictor.cls_score": 2.0,
    "box_predictor.bbox_pred": 1.0,
    "mask_predictor.mask_fcn_logits": 2.0,
    "keypoint_predictor.kps_score_lowres": 2.0,
    "classification_head.cls_logits": 2.0,
    "regression_head.bbox_reg": 0.3,
    "regression_head.bbox_ctrness": 1.0,
}


def detector(name: str, seed: int = 0) -> Any:
    """One of DETECTORS in eval mode."""
    torch.manual_seed(seed)
    model = DETECTORS[name]().eval()
    images = photographs()
    with torch.no_grad():
        _settle(model, images)
        for layer, module in model.named_modules():
            wanted = next((d for end, d in _DEVIATIONS.items() if layer.endswith(end)), None)
            if wanted is None and "classification_head.module_list" in layer and layer.count(".") == 2:
                wanted = 2.0
            if wanted is None and "regression_head.module_list" in layer and layer.count(".") == 2:
                wanted = 0.3
            if wanted is not None:
                _scale(model, module, images[:1], wanted, -2.0 if "cls_logits" in layer and "rpn" not in layer else 0.0)
    return model


def frozen(model: Any) -> Any:
    """With torchvision's FrozenBatchNorm2d, of the same statistics, in the place of batch normalisation."""
    from torchvision.ops.misc import FrozenBatchNorm2d

    for parent in list(model.modules()):
        for name, norm in list(parent.named_children()):
            if isinstance(norm, nn.BatchNorm2d):
                made = FrozenBatchNorm2d(norm.num_features, norm.eps)
                made.load_state_dict({k: v for k, v in norm.state_dict().items() if k != "num_batches_tracked"})
                setattr(parent, name, made)
    return model


def _settle(model: Any, images: list[Tensor]) -> None:
    """Batch normalisation gets the statistics of a few photographs."""
    norms = [m for m in model.modules() if isinstance(m, nn.modules.batchnorm._BatchNorm)]
    for norm in norms:
        norm.reset_running_stats()
        norm.momentum = None  # the mean of all batches
        norm.train()
    batch, _ = model.transform([image[:, :128, :128] for image in images])
    for _ in range(3):
        model.backbone(batch.tensors + 0.05 * torch.randn_like(batch.tensors))
    model.eval()


def _scale(model: Any, module: nn.Module, images: list[Tensor], deviation: float, bias: float) -> None:
    """The weights of a head's last layer, or of all convolutions in it, such that its outputs have that deviation."""
    seen: list[Tensor] = []
    handle = module.register_forward_hook(lambda _, __, y: seen.append(y.flatten()))
    model(images[0] if isinstance(model, Yolo | Detr) else images)
    handle.remove()
    last = [m for m in module.modules() if isinstance(m, nn.Conv2d | nn.ConvTranspose2d | nn.Linear)][-1]
    values = torch.cat(seen) if seen else torch.zeros(0)
    if values.numel() > 1 and float(values.std()) > 0:
        last.weight.mul_(deviation / float(values.std()))
    if last.bias is not None:
        last.bias.fill_(bias)


class Yolo(nn.Module):
    """One stage: per cell and anchor a box, how likely an object is, and of which class; then batched suppression.

    image [3, H, W], sizes multiples of 16 -> boxes [n, 4], scores [n], labels [n].
    """

    anchors: Tensor

    def __init__(self, classes: int = 4, most: int = 50) -> None:
        super().__init__()
        self.most, self.overlap = most, 0.45
        steps = [(3, 16), (16, 32), (32, 32), (32, 32)]
        self.body = nn.Sequential(
            *(
                nn.Sequential(nn.Conv2d(a, b, 3, 2, 1, bias=False), nn.BatchNorm2d(b), nn.SiLU(inplace=True))
                for a, b in steps
            )
        )
        self.register_buffer("anchors", torch.tensor([[24.0, 24.0], [48.0, 32.0], [40.0, 80.0]]))
        self.head = nn.Conv2d(32, 3 * (5 + classes), 1)

    def forward(self, image: Tensor) -> dict[str, Tensor]:
        from torchvision.ops import batched_nms

        x = self.head(self.body(image[None]))[0]
        rows, columns = x.shape[-2:]
        x = x.view(3, -1, rows, columns).permute(0, 2, 3, 1)
        y, z = torch.meshgrid(torch.arange(rows), torch.arange(columns), indexing="ij")
        middle = (x[..., :2].sigmoid() * 2 - 0.5 + torch.stack([z, y], -1)) * 16
        sizes = (x[..., 2:4].sigmoid() * 2) ** 2 * self.anchors[:, None, None]
        boxes = torch.cat([middle - sizes / 2, middle + sizes / 2], -1).reshape(-1, 4)
        scores, labels = (x[..., 4:5].sigmoid() * x[..., 5:].sigmoid()).reshape(boxes.shape[0], -1).max(1)
        likely = scores > 0.3
        boxes, scores, labels = boxes[likely], scores[likely], labels[likely]
        kept = batched_nms(boxes, scores, labels, self.overlap)[: self.most]
        return {"boxes": boxes[kept], "scores": scores[kept], "labels": labels[kept]}


class Detr(nn.Module):
    """A transformer whose queries are the objects: no suppression, as many rows as there are queries.

    image [3, H, W] -> boxes [10, 4], scores [10], labels [10].
    """

    def __init__(self, classes: int = 4, width: int = 32, queries: int = 10) -> None:
        super().__init__()
        self.body = nn.Sequential(
            nn.Conv2d(3, 16, 7, 4, 3, bias=False),
            nn.BatchNorm2d(16),
            nn.ReLU(inplace=True),
            nn.Conv2d(16, width, 3, 4, 1),
        )
        self.rows, self.columns = nn.Embedding(32, width // 2), nn.Embedding(32, width // 2)
        self.queries = nn.Parameter(torch.randn(queries, 1, width))
        self.transformer = nn.Transformer(width, 4, 2, 2, 64, dropout=0.0)
        self.classes, self.boxes = nn.Linear(width, classes + 1), nn.Linear(width, 4)

    def forward(self, image: Tensor) -> dict[str, Tensor]:
        x = self.body(image[None])
        rows, columns = x.shape[-2:]
        y = self.rows(torch.arange(rows))[:, None].expand(-1, columns, -1)
        z = self.columns(torch.arange(columns))[None].expand(rows, -1, -1)
        places = torch.cat([y, z], -1).flatten(0, 1)[:, None]
        seen = self.transformer(places + x.flatten(2).permute(2, 0, 1), self.queries)[:, 0]
        scores, labels = self.classes(seen).softmax(-1)[:, :-1].max(-1)
        middle, sizes = self.boxes(seen).sigmoid().chunk(2, -1)
        whole = torch.tensor([image.shape[2], image.shape[1]]).repeat(2)
        return {
            "boxes": torch.cat([middle - sizes / 2, middle + sizes / 2], -1) * whole,
            "scores": scores,
            "labels": labels,
        }


def settled(model: nn.Module, head: nn.Module | None = None, deviation: float = 2.0) -> nn.Module:
    """A module of one image in eval mode, with the statistics of photographs in batch normalisation and outputs of its
    head that differ."""
    images = [image[:, :128, :144] for image in photographs()]
    norms = [m for m in model.modules() if isinstance(m, nn.BatchNorm2d)]
    with torch.no_grad():
        for norm in norms:
            norm.momentum = None
        for image in images:
            model.train()
            model(image)
        model.eval()
        if head is not None:
            _scale(model, head, images[:1], deviation, 0.0)
    return model


__all__ = ["DETECTORS", "SIZES", "Detr", "Yolo", "detector", "photographs", "settled"]
