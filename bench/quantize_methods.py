"""Quantisers: what each makes of a case's model.onnx and its samples, as a program that can be run and its size.

Each function runs in the environment that METHODS names: "" is .venv, "quantize" what bench/setup.sh installs from
requirements-quantize.txt. All get the same file and the same samples, and run on one thread.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parent))
import quantize_cases as cases

TRANSFORMERS = ("minilm",)
BLOCK = 32
# How much less than the float program's the metric over the calibration samples may be.
MAX_DROP = 0.02


@dataclass
class Made:
    """A program and the bytes of its file, and of the same quantiser's file in float."""

    run: cases.Run
    size: int
    whole: int


@dataclass(frozen=True)
class Method:
    """One row of the table for each case."""

    label: str
    environment: str
    make: Callable[[str], Made]
    only: tuple[str, ...] = ()  # cases; none: all


# ---- ours -----------------------------------------------------------------------------------------------------------


def _ours(case: str, quantize: Any = None) -> Made:
    import pinnace as pn

    model = pn.load(cases.PLACE / case / "model.onnx")
    plain = model.build()
    program = plain if quantize is None else model.build(quantize=quantize)
    session = pn.Session(program, target="cpu", threads=1)
    return Made(lambda feed: list(session.run(feed).values()), len(program.to_bytes()), len(plain.to_bytes()))


def _int8(observer: str, controlled: bool = False) -> Callable[[str], Made]:
    def make(case: str) -> Made:
        import pinnace as pn

        def metric(run: Any) -> float:
            return cases.accuracy(case, lambda feed: list(run(feed).values()), "calibration")

        control: dict[str, Any] = {"metric": metric, "max_drop": MAX_DROP} if controlled else {}
        samples = cases.feeds(case, "calibration")
        return _ours(case, pn.Int8(calibration=samples, observer=observer, progress=False, **control))

    return make


def _dynamic(case: str) -> Made:
    import pinnace as pn

    return _ours(case, pn.DynamicInt8())


def _weights(bits: int, block: int | None, by_samples: bool = False) -> Callable[[str], Made]:
    def make(case: str) -> Made:
        import pinnace as pn

        samples = cases.feeds(case, "calibration") if by_samples else None
        return _ours(case, pn.WeightOnly(bits=bits, block=block, calibration=samples, progress=False))

    return make


# ---- ONNX Runtime ---------------------------------------------------------------------------------------------------


def _onnxruntime(case: str, quantize: Callable[[Path, Path], None] | None = None) -> Made:
    import onnxruntime

    source = cases.PLACE / case / "model.onnx"
    path = source
    if quantize is not None:
        path = cases.PLACE / case / "onnxruntime.onnx"
        quantize(source, path)
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = 1
    options.log_severity_level = 4
    session = onnxruntime.InferenceSession(str(path), options, providers=["CPUExecutionProvider"])
    return Made(lambda feed: session.run(None, dict(feed)), path.stat().st_size, source.stat().st_size)


def _prepared(source: Path, path: Path) -> Path:
    """What onnxruntime's tools ask to be done first."""
    from onnxruntime.quantization.shape_inference import quant_pre_process

    prepared = path.with_suffix(".prepared.onnx")
    quant_pre_process(source, prepared, skip_symbolic_shape=True)
    return prepared


def _onnxruntime_static(case: str) -> Made:
    from onnxruntime.quantization import CalibrationDataReader, QuantFormat, QuantType, quantize_static

    class Reader(CalibrationDataReader):  # type: ignore[misc]
        def __init__(self) -> None:
            self.left = iter(cases.feeds(case, "calibration"))

        def get_next(self) -> cases.Feed | None:
            return next(self.left, None)

    def quantize(source: Path, path: Path) -> None:
        prepared = _prepared(source, path)
        quantize_static(
            prepared,
            path,
            Reader(),
            quant_format=QuantFormat.QDQ,
            per_channel=True,
            activation_type=QuantType.QUInt8,
            weight_type=QuantType.QInt8,
        )
        prepared.unlink()

    return _onnxruntime(case, quantize)


def _onnxruntime_dynamic(case: str) -> Made:
    from onnxruntime.quantization import QuantType, quantize_dynamic

    # Its integer convolutions take no signed weights on the CPU.
    kind = QuantType.QInt8 if case in TRANSFORMERS else QuantType.QUInt8

    def quantize(source: Path, path: Path) -> None:
        import onnx

        prepared = _prepared(source, path)
        model = onnx.load(prepared)
        del model.graph.value_info[:]  # it transposes weights, and then refuses the shapes noted of them
        onnx.save(model, prepared)
        quantize_dynamic(prepared, path, per_channel=case in TRANSFORMERS, weight_type=kind)
        prepared.unlink()

    return _onnxruntime(case, quantize)


def _onnxruntime_4_bits(case: str) -> Made:
    def quantize(source: Path, path: Path) -> None:
        import onnx
        from onnxruntime.quantization.matmul_nbits_quantizer import MatMulNBitsQuantizer

        quantizer = MatMulNBitsQuantizer(onnx.load(source), bits=4, block_size=BLOCK, is_symmetric=True)
        quantizer.process()
        quantizer.model.save_model_to_file(str(path), False)

    return _onnxruntime(case, quantize)


# ---- NNCF -----------------------------------------------------------------------------------------------------------


def _openvino(case: str, quantize: Callable[[Any], Any]) -> Made:
    import openvino

    source = cases.PLACE / case / "model.onnx"
    core = openvino.Core()

    def stored(model: Any, name: str) -> int:
        path = cases.PLACE / case / f"{name}.xml"
        openvino.save_model(model, path, compress_to_fp16=False)
        return sum(p.stat().st_size for p in (path, path.with_suffix(".bin")))

    whole = stored(core.read_model(source), "openvino")
    model = quantize(core.read_model(source))
    size = stored(model, "nncf")
    compiled = core.compile_model(
        model, "CPU", {"INFERENCE_NUM_THREADS": 1, "INFERENCE_PRECISION_HINT": "f32", "NUM_STREAMS": 1}
    )
    request = compiled.create_infer_request()

    def run(feed: Mapping[str, cases.Array]) -> list[cases.Array]:
        found = request.infer(dict(feed))
        return [np.array(found[output]) for output in compiled.outputs]

    return Made(run, size, whole)


def _nncf(case: str) -> Made:
    import nncf

    def quantize(model: Any) -> Any:
        samples = cases.feeds(case, "calibration")
        kind = nncf.ModelType.TRANSFORMER if case in TRANSFORMERS else None
        return nncf.quantize(model, nncf.Dataset(samples), subset_size=len(samples), model_type=kind)

    return _openvino(case, quantize)


def _nncf_weights(bits: int) -> Callable[[str], Made]:
    def make(case: str) -> Made:
        import nncf

        def quantize(model: Any) -> Any:
            if bits == 8:
                return nncf.compress_weights(model, mode=nncf.CompressWeightsMode.INT8_SYM)
            return nncf.compress_weights(model, mode=nncf.CompressWeightsMode.INT4_SYM, ratio=1.0, group_size=BLOCK)

        return _openvino(case, quantize)

    return make


_PRODUCTS = ("minilm",)  # whose weights are mostly those of products
METHODS: dict[str, Method] = {
    "float": Method("pinnace, float", "", _ours),
    "int8": Method('pinnace, `Int8(observer="minmax")`', "", _int8("minmax")),
    "int8-mse": Method('pinnace, `Int8(observer="mse")`', "", _int8("mse")),
    "int8-controlled": Method(
        f'pinnace, `Int8(observer="mse", max_drop={MAX_DROP})`', "", _int8("mse", controlled=True)
    ),
    "dynamic8": Method("pinnace, `DynamicInt8()`", "", _dynamic, ("digits_cnn", "mobilenet_v2", "minilm")),
    "weights8": Method("pinnace, `WeightOnly(bits=8)`", "", _weights(8, None), _PRODUCTS),
    "weights4": Method(f"pinnace, `WeightOnly(bits=4, block={BLOCK})`", "", _weights(4, BLOCK), _PRODUCTS),
    "weights4-samples": Method(
        f"pinnace, `WeightOnly(bits=4, block={BLOCK}, calibration=samples)`", "", _weights(4, BLOCK, True), _PRODUCTS
    ),
    "onnxruntime": Method("ONNX Runtime, float", "quantize", _onnxruntime),
    "onnxruntime-static": Method("ONNX Runtime, `quantize_static`, QDQ", "quantize", _onnxruntime_static),
    "onnxruntime-dynamic": Method("ONNX Runtime, `quantize_dynamic`", "quantize", _onnxruntime_dynamic),
    "onnxruntime-4": Method(
        f"ONNX Runtime, `MatMulNBits`, 4 bits, block {BLOCK}", "quantize", _onnxruntime_4_bits, _PRODUCTS
    ),
    "nncf": Method("NNCF, `quantize`, on OpenVINO", "quantize", _nncf),
    "nncf-weights8": Method("NNCF, `compress_weights`, 8 bits", "quantize", _nncf_weights(8), _PRODUCTS),
    "nncf-weights4": Method(
        f"NNCF, `compress_weights`, 4 bits, group {BLOCK}", "quantize", _nncf_weights(4), _PRODUCTS
    ),
}
