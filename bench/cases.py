"""What is timed: models of the tests' zoo with example inputs, each written once as the files that engines read.

A case's folder has model.pt2 (exported program), model.onnx, model.pt (TorchScript), inputs.npz (in order) and
expected.npz (PyTorch's own outputs). Weights and inputs follow from a seed, so that every machine times the same
numbers. "NAME_int8" is the same network in 8 bits, with weights that keep rounding from growing (zoo.py, `calm`):
model.onnx then has quantize and dequantize nodes, made by onnxruntime's tools (activations u8, weights i8 per channel),
int8.pt2 is quantised by PT2E (both i8), and model.pt2 stays float for engines whose tools quantise by themselves, from
the same images in calibration.npz. expected.npz is the float network's.

"NAME_batch16" is the same network with 16 images; its model.pt takes one, for engines that know no batches.

`cases.py NAME...` writes them; the report does so in a process of its own, as torch would stay in memory.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import sys
import warnings
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
FOLDER = Path(os.environ.get("PINNACE_BENCH_FOLDER", ROOT / "build" / "bench"))

# Case -> the largest ratio of our median to the best rival's that is asked for, at 1 and at 2 threads.
TARGETS: dict[str, tuple[float, float]] = {
    "mobilenet_v2": (0.88, 0.88),
    "mobilenet_v3_large": (0.85, 0.85),
    "efficientnet_b0": (0.82, 0.82),
    "resnet50": (0.93, 0.93),
    "squeezenet1_1": (0.92, 0.92),
    "lraspp_mobilenet_v3_large": (0.82, 0.82),
    "vit_b_16": (0.97, 0.97),
    "bert": (0.97, 0.97),
    "noise_suppressor": (0.88, 0.75),
    "noise_suppressor_frame": (0.90, 0.90),
    "mobilenet_v2_int8": (0.58, 0.58),
    "resnet50_int8": (0.92, 0.92),
}
TARGET_THREADS = (1, 2)
# Networks that are timed on GPUs, and the largest ratio of our median to ncnn's on the same device, by whether a CPU
# stands in for it.
GPU_CASES = ("mobilenet_v2", "squeezenet1_1", "efficientnet_b0", "resnet50", "lraspp_mobilenet_v3_large", "vit_b_16")
GPU_TARGETS = {True: 1.0, False: 0.8}
GPU_START_UP_TARGET = 0.5
# Ours, at most, in parts of the best rival's: time where both are held to AVX2, start-up, peak memory.
AVX2_TARGET = 1.0
START_UP_TARGET = 0.25
# In the fastest precision that each has where nobody names one: ours when asked for "auto", theirs as installed.
INSTALLED_TARGET = 1.0
MEMORY_TARGET = 1.0
# Largest difference from PyTorch's outputs in float32, in parts of the largest magnitude.
ERROR_TARGET = 1e-4
# What is measured in emulation or by other builds: at most, and the unit.
ARM64_TARGETS: dict[str, tuple[float, str]] = {
    "MobileNetV2 in float32, instructions": (95, "M"),
    "MobileNetV2 in float16, instructions": (50, "M"),
    "runtime library, stripped": (3.0, "MB"),
    "runtime library built for MobileNetV2 alone, stripped": (0.5, "MB"),
}
# Raised when a folder's contents change, so that it is written anew.
RECIPES = {False: 1, True: 2}  # by whether the case is quantised
CALIBRATION_IMAGES = 8


def quantized(case: str) -> bool:
    return case.endswith("_int8")


def of_batch(case: str, batch: int) -> str:
    return case if batch == 1 else f"{case}_batch{batch}"


def batch_of(case: str) -> int:
    found = re.search(r"_batch(\d+)$", case)
    return int(found[1]) if found else 1


def calibration(size: int) -> list[Any]:
    import zoo

    return [zoo.images(1, size, 50 + seed) for seed in range(CALIBRATION_IMAGES)]


def quantize_onnx(model: Path, key: str, images: list[Any]) -> None:
    """Makes a QDQ model of a float one in place."""
    from onnxruntime.quantization import CalibrationDataReader, QuantFormat, QuantType, quantize_static
    from onnxruntime.quantization.shape_inference import quant_pre_process

    class Reader(CalibrationDataReader):  # type: ignore[misc]
        def __init__(self) -> None:
            self.left = list(images)

        def get_next(self) -> dict[str, Any] | None:
            return {key: self.left.pop().numpy()} if self.left else None

    prepared = model.with_suffix(".prepared.onnx")
    quant_pre_process(model, prepared, skip_symbolic_shape=True)
    quantize_static(
        prepared,
        model,
        Reader(),
        quant_format=QuantFormat.QDQ,
        per_channel=True,
        activation_type=QuantType.QUInt8,
        weight_type=QuantType.QInt8,
    )
    prepared.unlink()


def quantize_pt2e(program: Any, images: list[Any], path: Path) -> None:
    """Quantises an exported program the way that PyTorch has, for XNNPACK: i8 throughout, weights per channel."""
    import torch
    from torchao.quantization.pt2e.quantize_pt2e import convert_pt2e, prepare_pt2e
    from torchao.testing.pt2e._xnnpack_quantizer import XNNPACKQuantizer, get_symmetric_quantization_config

    quantizer = XNNPACKQuantizer().set_global(get_symmetric_quantization_config(is_per_channel=True))
    prepared = prepare_pt2e(program.module(), quantizer)
    for image in images:
        prepared(image)
    torch.export.save(torch.export.export(convert_pt2e(prepared), (images[0],)), path)


def write(name: str) -> Path:
    """Makes the folder of a case where it is missing or of another recipe; needs torch."""
    folder = FOLDER / name
    if written(name):
        return folder
    import numpy as np
    import torch

    sys.path.insert(0, str(ROOT / "tests" / "models"))
    import zoo
    from torch.utils import _pytree

    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    batch = batch_of(name)
    options: dict[str, Any] = {"calm": True} if quantized(name) else {"batch": batch} if batch > 1 else {}
    module, inputs = zoo.build(name.removesuffix("_int8").removesuffix(f"_batch{batch}"), **options)
    with torch.no_grad(), warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of what the exporters' own libraries call deprecated
        expected = [t.numpy() for t in _pytree.tree_leaves(module(**inputs))]
        program = torch.export.export(module, (), dict(inputs), strict=False)
        torch.export.save(program, folder / "model.pt2")
        onnx = folder / "model.onnx"
        torch.onnx.export(module, (), onnx, kwargs=dict(inputs), dynamo=True, external_data=False, verbose=False)
        # pnnx reads TorchScript most faithfully.
        one = tuple(x[:1] for x in inputs.values()) if batch > 1 else tuple(inputs.values())
        torch.jit.trace(module, one, strict=False, check_trace=False).save(folder / "model.pt")
        if quantized(name):
            [(key, x)] = inputs.items()
            images = calibration(x.shape[-1])
            np.savez(folder / "calibration.npz", *[image.numpy() for image in images])
            quantize_onnx(onnx, key, images)
            quantize_pt2e(torch.export.export(module, (x,)), images, folder / "int8.pt2")
    arrays: dict[str, Any] = {key: value.numpy() for key, value in inputs.items()}
    np.savez(folder / "inputs.npz", **arrays)
    np.savez(folder / "expected.npz", *expected)
    recipe = {"name": name, "inputs": list(inputs), "recipe": RECIPES[quantized(name)]}
    (folder / "case.json").write_text(json.dumps(recipe))
    return folder


def written(name: str) -> bool:
    path = FOLDER / name / "case.json"
    return path.exists() and json.loads(path.read_text()).get("recipe", 1) == RECIPES[quantized(name)]


if __name__ == "__main__":
    for case in sys.argv[1:] or TARGETS:
        print(case, write(case), flush=True)
