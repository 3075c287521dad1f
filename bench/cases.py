"""What is timed: models of the tests' zoo with example inputs, each written once as the files that engines read.

A case's folder has model.pt2 (exported program), model.onnx, inputs.npz (in order) and expected.npz (PyTorch's own
outputs). Weights and inputs follow from a seed, so that every machine times the same numbers. "NAME_int8" is the model
quantised to 8 bits after training by onnxruntime's tools: model.onnx then has quantize and dequantize nodes
(activations u8, weights i8 per channel), and expected.npz is what onnxruntime makes of it; model.pt2 stays float for
those who quantise by themselves.
"""

from __future__ import annotations

import json
import sys
import warnings
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
FOLDER = ROOT / "build" / "bench"

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


def quantized(case: str) -> bool:
    return case.endswith("_int8")


def quantize(name: str, model: Path, inputs: dict[str, Any]) -> list[Any]:
    """Makes a QDQ model of a float one in place, calibrated on images of its input's size; its outputs."""
    import numpy as np
    import onnxruntime as ort
    import zoo
    from onnxruntime.quantization import CalibrationDataReader, QuantFormat, QuantType, quantize_static
    from onnxruntime.quantization.shape_inference import quant_pre_process

    (key, x), *_ = inputs.items()

    class Reader(CalibrationDataReader):  # type: ignore[misc]
        def __init__(self) -> None:
            self.left = [{key: zoo.images(1, x.shape[-1], seed).numpy()} for seed in range(8)]

        def get_next(self) -> dict[str, Any] | None:
            return self.left.pop() if self.left else None

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
    session = ort.InferenceSession(model, providers=["CPUExecutionProvider"])
    return [np.asarray(y) for y in session.run(None, {key: x.numpy()})]


def write(name: str) -> Path:
    """Makes the folder of a case where it is missing; needs torch."""
    folder = FOLDER / name
    if (folder / "case.json").exists():
        return folder
    import numpy as np
    import torch

    sys.path.insert(0, str(ROOT / "tests" / "models"))
    import zoo
    from torch.utils import _pytree

    folder.mkdir(parents=True, exist_ok=True)
    module, inputs = zoo.build(name.removesuffix("_int8"))
    with torch.no_grad(), warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of what the exporters' own libraries call deprecated
        expected = [t.numpy() for t in _pytree.tree_leaves(module(**inputs))]
        torch.export.save(torch.export.export(module, (), dict(inputs), strict=False), folder / "model.pt2")
        onnx = folder / "model.onnx"
        torch.onnx.export(module, (), onnx, kwargs=dict(inputs), dynamo=True, external_data=False, verbose=False)
        # pnnx reads TorchScript most faithfully.
        torch.jit.trace(module, tuple(inputs.values()), strict=False, check_trace=False).save(folder / "model.pt")
    if quantized(name):
        expected = quantize(name, folder / "model.onnx", inputs)
    arrays: dict[str, Any] = {key: value.numpy() for key, value in inputs.items()}
    np.savez(folder / "inputs.npz", **arrays)
    np.savez(folder / "expected.npz", *expected)
    (folder / "case.json").write_text(json.dumps({"name": name, "inputs": list(inputs)}))
    return folder


if __name__ == "__main__":
    for case in sys.argv[1:] or TARGETS:
        print(case, write(case), flush=True)
