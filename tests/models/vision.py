"""Vision networks by name, with random weights: all of torchvision's for images, segmentation, video
and optical flow, and one of each family of timm. make("timm convit") gives (module, its inputs in order).

Images are as small as a network takes, and where a family is one block repeated, timm's network has few of them;
nothing else is other than by default. What a fresh network leaves without effect is given one: parameters that are all
one value (scales of 1e-6 among them) get some noise, and batch norms the statistics of sample images.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cache
from typing import Any

import timm
import torch
import torchvision_ops
import zoo
from torch import Tensor, nn
from torch.nn.modules.batchnorm import _BatchNorm

tv = torchvision_ops.torchvision.models

VIDEOS = {"mvit_v1_b": (16, 224), "mvit_v2_s": (16, 224), "s3d": (16, 224)}
FRAMES = 8
# As (height and width, options) where they are not (64, {}).
TORCHVISION: dict[str, tuple[int, dict[str, Any]]] = {
    "googlenet": (64, {"init_weights": False}),
    "inception_v3": (96, {"init_weights": False}),
    "maxvit_t": (224, {}),
    "vit_b_16": (64, {"image_size": 64}),
    "vit_b_32": (128, {"image_size": 128}),
    "vit_h_14": (56, {"image_size": 56}),
    "vit_l_16": (64, {"image_size": 64}),
    "vit_l_32": (128, {"image_size": 128}),
    "raft_large": (128, {}),
    "raft_small": (128, {}),
}


@dataclass(frozen=True)
class Network:
    """A family's network: its name in timm, the height and width of its images, and options."""

    name: str
    size: int = 64
    options: dict[str, Any] = field(default_factory=dict)


def fixed(name: str, size: int = 64, **options: Any) -> Network:
    """One that is made for images of one size."""
    return Network(name, size, {"img_size": size, **options})


TIMM = {
    "beit": fixed("beit_base_patch16_224", depth=2),
    "byoanet": fixed("botnet26t_256"),
    "byobnet": Network("mobileone_s1"),
    "cait": fixed("cait_xxs24_224", depth=2),
    "coat": fixed("coat_lite_mini"),
    "convit": fixed("convit_tiny"),
    "convmixer": Network("convmixer_768_32"),
    "convnext": Network("convnext_atto_rms"),
    "cpubone": Network("cpubone_nano"),
    "crossvit": Network("crossvit_9_240", 240),
    "csatv2": Network("csatv2", 512),
    "cspnet": Network("cs3darknet_focus_s"),
    "cspnext": Network("cspnext_tiny"),
    "davit": Network("davit_tiny"),
    "deit": fixed("deit3_small_patch16_224", depth=2),
    "densenet": Network("densenet121"),
    "dla": Network("dla46x_c"),
    "dpn": Network("dpn48b"),
    "edgenext": Network("edgenext_xx_small"),
    "efficientformer": Network("efficientformer_l1", 224),
    "efficientformer_v2": Network("efficientformerv2_s0", 224),
    "efficientnet": Network("efficientnet_b0"),
    "efficientvim": Network("efficientvim_m1"),
    "efficientvit_mit": Network("efficientvit_b0"),
    "efficientvit_msra": Network("efficientvit_m0", 224),
    "eva": fixed("eva02_tiny_patch14_224", 56, depth=2),
    "fasternet": Network("fasternet_t0"),
    "fastvit": Network("fastvit_t8"),
    "focalnet": Network("focalnet_tiny_srf"),
    "gcvit": Network("gcvit_xxtiny", 224),
    "gemma4_vit": Network("gemma4_vit_167m", 96, {"depth": 2}),
    "ghostnet": Network("ghostnet_050"),
    "hardcorenas": Network("hardcorenas_b"),
    "hgnet": Network("hgnetv2_b0"),
    "hiera": Network("hiera_tiny_224", 224),
    "hieradet_sam2": Network("sam2_hiera_tiny", 256),
    "hrnet": Network("hrnet_w18_small"),
    "iformer": Network("iformer_t"),
    "inception_next": Network("inception_next_atto"),
    "inception_resnet_v2": Network("inception_resnet_v2", 96),
    "inception_v3": Network("inception_v3", 96),
    "inception_v4": Network("inception_v4", 96),
    "lcnetv2": Network("lcnetv2_small"),
    "levit": Network("levit_128s", 224),
    "lowformer": Network("lowformer_b0"),
    "mambaout": Network("mambaout_femto"),
    "maxxvit": Network("maxvit_pico_rw_256", 256),
    "metaformer": Network("poolformer_s12"),
    "mlp_mixer": fixed("gmlp_ti16_224"),
    "mobilenetv3": Network("mobilenetv3_small_050"),
    "mobilenetv5": Network("mobilenetv5_base"),
    "mobilevit": Network("mobilevit_xxs"),
    "mvitv2": fixed("mvitv2_tiny"),
    "naflexvit": Network("naflexvit_base_patch16_gap", 64, {"depth": 2}),
    "nasnet": Network("nasnetalarge", 96),
    "nest": fixed("nest_tiny"),
    "nextvit": Network("nextvit_small"),
    "nfnet": Network("nf_resnet26"),
    "pit": fixed("pit_ti_224"),
    "pnasnet": Network("pnasnet5large", 96),
    "pvt_v2": Network("pvt_v2_b0"),
    "qwen3_vit": Network("qwen3_vit_88m", 96, {"depth": 2}),
    "rdnet": Network("rdnet_tiny"),
    "regnet": Network("regnetx_002"),
    "repghost": Network("repghostnet_050"),
    "repvit": Network("repvit_m0_9"),
    "res2net": Network("res2net50_26w_4s"),
    "resnest": Network("resnest14d"),
    "resnet": Network("resnet10t"),
    "resnetv2": Network("resnetv2_18"),
    "rexnet": Network("rexnet_100"),
    "selecsls": Network("selecsls42"),
    "senet": Network("legacy_seresnet18"),
    "sequencer": fixed("sequencer2d_s"),
    "shvit": Network("shvit_s1"),
    "sknet": Network("skresnet18"),
    "starnet": Network("starnet_s1"),
    "swiftformer": Network("swiftformer_xs"),
    "swin_transformer": Network("swin_tiny_patch4_window7_224", 224),
    "swin_transformer_v2": Network("swinv2_tiny_window8_256", 256),
    "swin_transformer_v2_cr": Network("swinv2_cr_tiny_ns_224", 224),
    "tiny_vit": Network("tiny_vit_5m_224", 224),
    "tnt": fixed("tnt_s_patch16_224"),
    "tresnet": Network("tresnet_m"),
    "twins": fixed("twins_svt_small"),
    "vgg": Network("vgg11_bn"),
    "visformer": fixed("visformer_tiny"),
    "vision_transformer": fixed("vit_tiny_patch16_224", depth=2),
    "vision_transformer_hybrid": fixed("vit_tiny_r_s16_p8_224", depth=2),
    "vision_transformer_relpos": fixed("vit_relpos_small_patch16_224", depth=2),
    "vision_transformer_sam": fixed("samvit_base_patch16", depth=3),
    "vitamin": fixed("vitamin_small_224"),
    "volo": fixed("volo_d1_224"),
    "vovnet": Network("ese_vovnet19b_dw"),
    "xception": Network("legacy_xception", 96),
    "xception_aligned": Network("xception41"),
    "xcit": fixed("xcit_nano_12_p16_224"),
}


@cache
def names() -> tuple[str, ...]:
    """Library and network; of torchvision those that are registered today."""
    kinds = (tv, tv.segmentation, tv.video, tv.optical_flow)
    torchvision = [f"torchvision {name}" for kind in kinds for name in tv.list_models(module=kind)]
    return (*torchvision, *(f"timm {family}" for family in TIMM))


def inputs(name: str, batch: int, seed: int) -> tuple[Tensor, ...]:
    library, _, network = name.partition(" ")
    if library == "timm":
        return (zoo.images(batch, TIMM[network].size, seed),)
    if network in tv.list_models(module=tv.video):
        frames, size = VIDEOS.get(network, (FRAMES, 64))
        return (zoo.images(batch * frames, size, seed).view(batch, frames, 3, size, size).transpose(1, 2).contiguous(),)
    size, _ = TORCHVISION.get(network, (64, {}))
    if network in tv.list_models(module=tv.optical_flow):  # an image, and the same moved to the left and down
        first = zoo.images(batch, size + 4, seed).clamp(-2.5, 2.5) / 2.5
        return first[..., 4:, :-4].contiguous(), first[..., :-4, 4:].contiguous()
    return (zoo.images(batch, size, seed),)


@torch.no_grad()
def give_effect(module: nn.Module, sample: tuple[Tensor, ...]) -> None:
    for parameter in module.parameters():
        if parameter.min() == parameter.max():
            parameter.add_(0.2 * torch.randn_like(parameter))
    norms = [m for m in module.modules() if isinstance(m, _BatchNorm) and m.track_running_stats]
    for norm in norms:
        norm.reset_running_stats()
        norm.momentum = None  # a plain mean over the batches instead of a decaying one
        norm.train()
    if norms:
        module(*sample)
    for norm in norms:
        # Twice the mean of the variances: a norm that made a channel large which hardly moves on few images, or all
        # channels as large as a hundred blocks make them, would do so to their rounding as well.
        variance = norm.running_var
        assert variance is not None
        variance.clamp_(min=2 * float(variance.mean()))
        norm.momentum = 0.1
        norm.eval()


def make(name: str, seed: int = 0) -> tuple[nn.Module, tuple[Tensor, ...]]:
    """The global random state is left as it was."""
    library, _, network = name.partition(" ")
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        if library == "timm":
            found = TIMM[network]
            module = timm.create_model(found.name, **found.options)
        else:
            options = dict(TORCHVISION.get(network, (64, {}))[1])
            if network in tv.list_models(module=tv.segmentation):
                options["weights_backbone"] = None
            module = tv.get_model(network, weights=None, **options)
        give_effect(module.eval(), inputs(name, 4, seed + 1))
    return module, inputs(name, 1, seed + 2)
