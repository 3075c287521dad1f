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
    model(images)
    handle.remove()
    last = [m for m in module.modules() if isinstance(m, nn.Conv2d | nn.ConvTranspose2d | nn.Linear)][-1]
    values = torch.cat(seen) if seen else torch.zeros(0)
    if values.numel() > 1 and float(values.std()) > 0:
        last.weight.mul_(deviation / float(values.std()))
    if last.bias is not None:
        last.bias.fill_(bias)


__all__ = ["DETECTORS", "SIZES", "detector", "photographs"]
