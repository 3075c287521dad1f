"""What onnxruntime's quantisers write, with its own operators (domain com.microsoft): each form converts, is verified
against onnxruntime, keeps its integers in the file and computes with them.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import onnx
import onnxruntime
import pinnace as pn
import pytest
import torch
from agreeing import assert_agree
from onnx import TensorProto, helper, numpy_helper
from onnxruntime.quantization import (
    CalibrationDataReader,
    QuantFormat,
    QuantType,
    quant_pre_process,
    quantize_dynamic,
    quantize_static,
)
from onnxruntime.quantization.matmul_nbits_quantizer import DefaultWeightOnlyQuantConfig, MatMulNBitsQuantizer
from pinnace.program import core_of
from quantized_forms import STORED, became, convolutions, elements, two
from torch import nn

Array = np.ndarray[Any, Any]


class One(CalibrationDataReader):  # type: ignore[misc]
    def __init__(self, x: torch.Tensor) -> None:
        self.left = [{"x": x.numpy()}]

    def get_next(self) -> dict[str, Array] | None:
        return self.left.pop() if self.left else None


def exported(module: nn.Module, x: torch.Tensor, folder: Path, opset: int = 17) -> Path:
    path = folder / "float.onnx"
    torch.onnx.export(module, (x,), path, dynamo=False, opset_version=17, input_names=["x"])
    if opset > 17:
        onnx.save(onnx.version_converter.convert_version(onnx.load(path), opset), path)
    return path


def static(module: nn.Module, x: torch.Tensor, folder: Path, opset: int = 17, **options: Any) -> Path:
    path = exported(module, x, folder, opset)
    quant_pre_process(path, folder / "shapes.onnx")
    quantize_static(folder / "shapes.onnx", folder / "quantised.onnx", One(x), **options)
    return folder / "quantised.onnx"


BYTES = {"u8u8": ("QUInt8", "QUInt8"), "u8s8": ("QUInt8", "QInt8"), "s8s8": ("QInt8", "QInt8")}


@pytest.mark.parametrize("channels", [False, True], ids=["tensor", "channel"])
@pytest.mark.parametrize("form", ["QDQ", "QOperator"])
@pytest.mark.parametrize("types", BYTES)
def test_static(types: str, form: str, channels: bool, tmp_path: Path) -> None:
    activations, weights = (getattr(QuantType, name) for name in BYTES[types])
    for make in (two, convolutions):
        module, x = make()
        path = static(
            module,
            x,
            tmp_path,
            quant_format=getattr(QuantFormat, form),
            activation_type=activations,
            weight_type=weights,
            per_channel=channels,
        )
        became(path, (x,), tmp_path).assert_integers(elements(module))


@pytest.mark.parametrize("weights", ["QInt8", "QInt16"])
@pytest.mark.parametrize("own", [False, True], ids=["opset 21", "com.microsoft"])
def test_16_bit_activations(own: bool, weights: str, tmp_path: Path) -> None:
    """Products in float, whose weights are stored as integers."""
    module, x = two()
    path = static(
        module,
        x,
        tmp_path,
        opset=17 if own else 21,
        quant_format=QuantFormat.QDQ,
        activation_type=QuantType.QUInt16,
        weight_type=getattr(QuantType, weights),
        extra_options={"UseQDQContribOps": own},
    )
    made = became(path, (x,), tmp_path)
    if weights == "QInt8":
        made.assert_stored(elements(module))
    assert made.constant_bytes < 1.1 * elements(module) * (1 if weights == "QInt8" else 2)
    assert any(k.startswith("quantize_i16") for k in made.kernels)


@pytest.mark.parametrize("weights", ["QInt4", "QUInt4"])
def test_static_with_weights_of_4_bits(weights: str, tmp_path: Path) -> None:
    module, x = two()
    options = {"activation_type": QuantType.QUInt8, "weight_type": getattr(QuantType, weights)}
    path = static(module, x, tmp_path, opset=21, quant_format=QuantFormat.QDQ, **options)
    became(path, (x,), tmp_path).assert_stored(elements(module), bits=4)


@pytest.mark.parametrize("channels", [False, True], ids=["tensor", "channel"])
@pytest.mark.parametrize("weights", ["QInt8", "QUInt8"])
def test_dynamic(weights: str, channels: bool, tmp_path: Path) -> None:
    module, x = two()
    path = exported(module, x, tmp_path)
    quantize_dynamic(path, tmp_path / "q.onnx", weight_type=getattr(QuantType, weights), per_channel=channels)
    became(tmp_path / "q.onnx", (x,), tmp_path).assert_integers(elements(module))


def blocked(module: nn.Module, x: torch.Tensor, folder: Path, **options: Any) -> Path:
    form = QuantFormat.QDQ if options.pop("qdq", False) else QuantFormat.QOperator
    model = onnx.load(exported(module, x, folder, 21))
    quantizer = MatMulNBitsQuantizer(model, algo_config=DefaultWeightOnlyQuantConfig(quant_format=form, **options))
    quantizer.process()
    quantizer.model.save_model_to_file(str(folder / "blocked.onnx"), False)
    return folder / "blocked.onnx"


@pytest.mark.parametrize("qdq", [False, True], ids=["MatMulNBits", "QDQ"])
@pytest.mark.parametrize("symmetric", [True, False], ids=["symmetric", "zero points"])
@pytest.mark.parametrize("block", [32, 128])
def test_weights_of_4_bits_in_blocks(block: int, symmetric: bool, qdq: bool, tmp_path: Path) -> None:
    """Blocks of 128 of 96 and 192 rows: the last is cut."""
    module, x = two()
    path = blocked(module, x[None], tmp_path, block_size=block, is_symmetric=symmetric, qdq=qdq)
    made = became(path, (x[None],), tmp_path)
    made.assert_stored(elements(module), bits=4)


def test_blocks_of_8_bits(tmp_path: Path) -> None:
    module, x = two()
    made = became(blocked(module, x[None], tmp_path, block_size=32, is_symmetric=True, bits=8), (x[None],), tmp_path)
    made.assert_stored(elements(module))


def test_activations_that_may_be_rounded_are_not(tmp_path: Path) -> None:
    """accuracy_level 4: onnxruntime rounds activations to int8; here they stay, and the note says so."""
    module, x = two()
    path = blocked(module, x[None], tmp_path, block_size=32, is_symmetric=True, accuracy_level=4)
    made = became(path, (x[None],), tmp_path)
    made.assert_stored(elements(module), bits=4)
    assert any("accuracy_level" in note for note in made.notes)


@pytest.mark.parametrize("symmetric", [True, False], ids=["symmetric", "zero points"])
def test_rows_of_4_bits(symmetric: bool, tmp_path: Path) -> None:
    """GatherBlockQuantized: rows are unpacked and dequantised as they are read."""
    torch.manual_seed(3)
    module = nn.Sequential(nn.Embedding(500, 96), nn.Linear(96, 64)).eval()
    places = torch.randint(0, 500, (2, 7))
    path = blocked(
        module, places, tmp_path, block_size=32, is_symmetric=symmetric, op_types_to_quantize=("MatMul", "Gather")
    )
    made = became(path, (places,), tmp_path)
    assert made.constant_bytes < 0.8 * elements(module)
    assert made.products() == set(STORED)


# ------------------------------------------------------------------------------------------------ by ONNX's functions


def model(nodes: list[Any], inputs: dict[str, Array], constants: dict[str, Any], kind: int, folder: Path) -> Path:
    declared = [
        helper.make_tensor_value_info(n, helper.np_dtype_to_tensor_dtype(a.dtype), a.shape) for n, a in inputs.items()
    ]
    graph = helper.make_graph(
        nodes,
        "g",
        declared,
        [helper.make_tensor_value_info("y", kind, None)],
        [numpy_helper.from_array(np.asarray(a), n) for n, a in constants.items()],
    )
    sets = [helper.make_opsetid("", 21), helper.make_opsetid("com.microsoft", 1)]
    onnx.save(helper.make_model(graph, opset_imports=sets, ir_version=10), folder / "m.onnx")
    return folder / "m.onnx"


def ours(path: Path, inputs: dict[str, Array]) -> Array:
    (y,) = pn.Session(pn.load(path).build(verify=False)).run(inputs).values()
    return np.array(y)


RANDOM = np.random.default_rng(5)
XS, YS = np.float32(0.0517), np.float32(0.0431)
SCALES = {"xs": XS, "xz": np.uint8(120), "ys": YS, "yz": np.uint8(7)}


def real(q: Array, scale: Any, zero: Any) -> Array:
    return (q.astype(np.float64) - np.float64(zero)) * np.float64(scale)


def stored(r: Array, scale: Any, zero: Any) -> Array:
    return np.clip(np.rint(r / np.float64(scale)) + np.float64(zero), 0, 255).astype(np.uint8)


UNARY: dict[str, tuple[Any, dict[str, Any]]] = {
    "QLinearSigmoid": (lambda r: 1 / (1 + np.exp(-r)), {}),
    "QLinearLeakyRelu": (lambda r: np.where(r < 0, 0.01 * r, r), {}),
    "QLinearSoftmax": (
        lambda r: np.exp(r - r.max(-1, keepdims=True)) / np.exp(r - r.max(-1, keepdims=True)).sum(-1, keepdims=True),
        {"opset": 13, "axis": -1},
    ),
    "QLinearGlobalAveragePool": (lambda r: r.mean((2, 3), keepdims=True), {}),
    "QLinearReduceMean": (lambda r: r.mean(1), {"axes": [1], "keepdims": 0}),
    "QLinearAveragePool": (
        lambda r: r.reshape(2, 3, 2, 2, 2, 2).mean((3, 5)),
        {"kernel_shape": [2, 2], "strides": [2, 2]},
    ),
}


@pytest.mark.parametrize("op", UNARY)
def test_operators_of_one_operand(op: str, tmp_path: Path) -> None:
    f, attributes = UNARY[op]
    x = RANDOM.integers(0, 256, (2, 3, 4, 4)).astype(np.uint8)
    node = helper.make_node(op, ["x", "xs", "xz", "ys", "yz"], ["y"], domain="com.microsoft", **attributes)
    got = ours(model([node], {"x": x}, SCALES, TensorProto.UINT8, tmp_path), {"x": x})
    want = stored(f(real(x, XS, 120)), YS, 7)
    assert got.shape == want.shape
    assert np.abs(got.astype(int) - want.astype(int)).max() <= 1
    assert (got != want).mean() < 0.05


def test_weights_of_recurrent_cells_stay_integers(tmp_path: Path) -> None:
    """They are floats for the back ends, which pack those, and integers in the file."""
    units, length = 64, 72  # more elements than types are inferred with
    constants: dict[str, Any] = {}
    nodes = []
    for name, size, blocks in (("w", length, 1), ("r", units, units // 16)):
        constants[f"{name}_q"] = RANDOM.integers(-127, 128, (1, 4 * units, size)).astype(np.int8)
        constants[f"{name}_s"] = RANDOM.uniform(0.002, 0.004, (1, 4 * units, blocks)).astype(np.float32)
        operands, block = [f"{name}_q", f"{name}_s"], size // blocks
        nodes.append(helper.make_node("DequantizeLinear", operands, [name], axis=2, block_size=block))
    nodes.append(helper.make_node("LSTM", ["x", "w", "r"], ["y", "", ""], hidden_size=units))
    x = {"x": RANDOM.standard_normal((7, 2, length)).astype(np.float32)}
    path = model(nodes, x, constants, TensorProto.FLOAT, tmp_path)
    loaded = pn.load(path)
    targets = ["cpu", "vulkan", "softmetal", "nnapi:30"]
    assert all(row.supported for row in loaded.check(targets[:3]).nodes)
    program = loaded.build(targets)
    assert all(said.startswith("yes") for said in program.metadata.verified_on.values())
    assert sum(c["bytes"] for c in core_of(program).constants) < 0.4 * 4 * 4 * units * (units + length)
    for target in targets[:3]:
        session = pn.Session(program, target, fallback=False)
        session.run(x)
        kernels = {row.op: row.kernel for row in session.placement}
        assert kernels["dequantize_linear"] == "computed ahead"
        assert "recurrent" in kernels["lstm"]


def test_a_scale_that_follows_from_sizes_is_no_constant(tmp_path: Path) -> None:
    """It is known in each run, and another one at another size."""
    units, length = 64, 72
    constants: dict[str, Any] = {
        "w": RANDOM.standard_normal((1, 4 * units, length)).astype(np.float32) * 0.1,
        "r_q": RANDOM.integers(-127, 128, (1, 4 * units, units)).astype(np.int8),
        "least": np.float32(0.0005),
        "first": np.int64(0),
    }
    nodes = [
        helper.make_node("Shape", ["x"], ["shape"]),
        helper.make_node("Gather", ["shape", "first"], ["steps"]),
        helper.make_node("Cast", ["steps"], ["count"], to=TensorProto.FLOAT),
        helper.make_node("Mul", ["count", "least"], ["scale"]),
        helper.make_node("DequantizeLinear", ["r_q", "scale"], ["r"]),
        helper.make_node("LSTM", ["x", "w", "r"], ["y", "", ""], hidden_size=units),
    ]
    path = model(nodes, {"x": np.zeros((7, 2, length), np.float32)}, constants, TensorProto.FLOAT, tmp_path)
    file = onnx.load(path)
    file.graph.input[0].type.tensor_type.shape.dim[0].dim_param = "t"
    onnx.save(file, path)
    session = pn.Session(pn.load(path).build(), "cpu")
    theirs = onnxruntime.InferenceSession(str(path), providers=["CPUExecutionProvider"])
    for steps in (1, 4, 2):
        x = RANDOM.standard_normal((steps, 2, length)).astype(np.float32)
        (want,) = theirs.run(None, {"x": x})
        assert_agree(session.run({"x": x})["y"], want)


def test_stored_weights_of_convolutions_are_packed_for_other_processors(tmp_path: Path) -> None:
    """What packs them there is no code of this processor."""
    constants: dict[str, Any] = {
        "w_q": RANDOM.integers(-127, 128, (64, 64, 3, 3)).astype(np.int8),
        "w_s": RANDOM.uniform(0.002, 0.004, 64).astype(np.float32),
    }
    nodes = [
        helper.make_node("DequantizeLinear", ["w_q", "w_s"], ["w"], axis=0),
        helper.make_node("Conv", ["x", "w"], ["y"], kernel_shape=[3, 3]),
    ]
    x = {"x": RANDOM.standard_normal((1, 64, 8, 8)).astype(np.float32)}
    loaded = pn.load(model(nodes, x, constants, TensorProto.FLOAT, tmp_path))
    program = loaded.build(["cpu", "cpu:neon", "cpu:neon_dotprod", "cpu:sve"])
    assert "dequantize_linear" in {node.op for node in program.nodes}
    assert len(program.to_bytes()) > len(loaded.build().to_bytes()) + 64 * 64 * 9 * 4  # packed floats


def test_where_concat_and_gemm(tmp_path: Path) -> None:
    x = RANDOM.integers(0, 256, (4, 6)).astype(np.uint8)
    w = RANDOM.integers(-128, 128, (5, 6)).astype(np.int8)
    where = helper.make_node(
        "QLinearWhere", ["c", "x", "xs", "xz", "x", "ys", "yz", "ys", "yz"], ["y"], domain="com.microsoft"
    )
    chosen = RANDOM.integers(0, 2, (4, 6)).astype(bool)
    got = ours(model([where], {"c": chosen, "x": x}, SCALES, TensorProto.UINT8, tmp_path), {"c": chosen, "x": x})
    want = stored(np.where(chosen, real(x, XS, 120), real(x, YS, 7)), YS, 7)
    assert np.abs(got.astype(int) - want.astype(int)).max() <= 1
    concat = helper.make_node(
        "QLinearConcat", ["ys", "yz", "x", "xs", "xz", "x", "ys", "yz"], ["y"], domain="com.microsoft", axis=1
    )
    got = ours(model([concat], {"x": x}, SCALES, TensorProto.UINT8, tmp_path), {"x": x})
    want = np.concatenate([stored(real(x, XS, 120), YS, 7), x], 1)
    assert np.abs(got.astype(int) - want.astype(int)).max() <= 1
    bias = RANDOM.integers(-999, 999, 5).astype(np.int32)
    constants: dict[str, Any] = {
        **SCALES,
        "w": w,
        "ws": (RANDOM.random(5) * 0.02).astype(np.float32),
        "wz": np.zeros(5, np.int8),
    }
    gemm = helper.make_node(
        "QGemm", ["x", "xs", "xz", "w", "ws", "wz", "b"], ["y"], domain="com.microsoft", transB=1, alpha=0.5
    )
    got = ours(model([gemm], {"x": x}, {**constants, "b": bias}, TensorProto.FLOAT, tmp_path), {"x": x})
    ws = constants["ws"].astype(np.float64)
    want = 0.5 * (real(x, XS, 120) @ (w * ws[:, None]).T + bias * np.float64(XS) * ws)
    assert_agree(got, want.astype(np.float32))


@pytest.mark.parametrize("bias", [False, True])
def test_dynamic_products(bias: bool, tmp_path: Path) -> None:
    x = RANDOM.standard_normal((4, 6)).astype(np.float32)
    w = RANDOM.integers(-128, 128, (6, 5)).astype(np.int8)
    b = RANDOM.standard_normal(5).astype(np.float32)
    constants: dict[str, Any] = {"w": w, "ws": np.float32(0.01), "wz": np.int8(0), "b": b}
    names = ["x", "w", "ws", "wz"] + ["b"] * bias
    node = helper.make_node("DynamicQuantizeMatMul", names, ["y"], domain="com.microsoft")
    got = ours(model([node], {"x": x}, constants, TensorProto.FLOAT, tmp_path), {"x": x})
    np.testing.assert_allclose(got, x @ (w * np.float32(0.01)) + (b if bias else 0), atol=0.1)
    q = RANDOM.integers(0, 256, (4, 6)).astype(np.uint8)
    names = ["q", "w", "xs", "ws", "xz", "wz"] + ["b"] * bias
    node = helper.make_node("MatMulIntegerToFloat", names, ["y"], domain="com.microsoft")
    path = model(
        [node], {"q": q}, {**constants, "xs": np.float32(0.05), "xz": np.uint8(9)}, TensorProto.FLOAT, tmp_path
    )
    want = real(q, 0.05, 9) @ real(w, 0.01, 0) + (b if bias else 0)
    assert_agree(ours(path, {"q": q}), want.astype(np.float32))


BLOCKED = {"K": 40, "N": 3, "bits": 4, "block_size": 32}


def blocks(folder: Path, zeros: Array | None = None, extra: dict[str, Array] | None = None, **changes: Any) -> Path:
    """MatMulNBits of 40 rows in blocks of 32; `zeros` are its zero points."""
    attributes = {**BLOCKED, **changes}
    constants: dict[str, Any] = {
        "b": np.arange(3 * 2 * 16).astype(np.uint8).reshape(3, 2, 16),
        "s": np.full(6, 0.5, np.float32),
    }
    names = ["x", "b", "s"]
    if zeros is not None:
        constants["z"] = zeros
        names.append("z")
    if extra:
        constants.update(extra)
        names += [""] * (4 - len(names)) + list(extra)
    node = helper.make_node("MatMulNBits", names, ["y"], domain="com.microsoft", **attributes)
    return model([node], {"x": np.eye(40, dtype=np.float32)}, constants, TensorProto.FLOAT, folder)


def weights_of_blocks(zeros: Array) -> Array:
    """The same by the definition: [N, K], zeros [N, 2]."""
    data = np.arange(3 * 2 * 16).astype(np.uint8).reshape(3, 32)
    q = np.stack([data & 15, data >> 4], -1).reshape(3, 64)[:, :40].astype(np.float32)
    real_weights: Array = (q - np.repeat(zeros, 32, 1)[:, :40]) * np.float32(0.5)
    return real_weights


def test_matmul_of_blocks_by_its_definition(tmp_path: Path) -> None:
    """Zero points that are left out, packed, and floats."""
    x = {"x": np.eye(40, dtype=np.float32)}
    zeros = np.array([[1, 2], [3, 4], [15, 0]], np.float32)
    packed = np.array([0x21, 0x43, 0x0F], np.uint8)
    np.testing.assert_array_equal(ours(blocks(tmp_path), x), weights_of_blocks(np.full((3, 2), 8, np.float32)).T)
    np.testing.assert_array_equal(ours(blocks(tmp_path, packed), x), weights_of_blocks(zeros).T)
    np.testing.assert_array_equal(ours(blocks(tmp_path, zeros), x), weights_of_blocks(zeros).T)
    order = {"g": (np.arange(40) // 32).astype(np.int32)}
    np.testing.assert_array_equal(ours(blocks(tmp_path, zeros, order), x), weights_of_blocks(zeros).T)


def test_two_bits_are_read_as_four(tmp_path: Path) -> None:
    """Products have no kernel on fewer than four bits."""
    x = {"x": np.eye(40, dtype=np.float32)}
    data = np.arange(48).astype(np.uint8)
    node = helper.make_node(
        "MatMulNBits", ["x", "b", "s"], ["y"], domain="com.microsoft", K=40, N=3, bits=2, block_size=32
    )
    constants = {"b": data.reshape(3, 2, 8), "s": np.full(6, 0.5, np.float32)}
    path = model([node], x, constants, TensorProto.FLOAT, tmp_path)
    assert " : i4[3,40] " in pn.load(path, disabled_passes=["all"]).text()
    q = np.stack([data >> shift & 3 for shift in (0, 2, 4, 6)], -1).reshape(3, 64)[:, :40]
    np.testing.assert_array_equal(ours(path, x), (q.astype(np.float32) - 2).T * np.float32(0.5))


@pytest.mark.parametrize(
    ("changes", "rule"),
    [
        ({"bits": 3}, "bits must be 2, 4 or 8: 3"),
        ({"block_size": 2**62}, "block_size must be a power of 2 from 16 to 2147483648: 4611686018427387904"),
        ({"block_size": 24}, "block_size must be a power of 2 from 16 to 2147483648: 24"),
        ({"K": 0}, "K and N must be 1 to 2147483648: 0 and 3"),
        ({"N": 4}, "B must be 128 elements of type uint8"),
        ({"weight_prepacked": 1}, "weights are in the order of one device's kernels: 1"),
        ({"zeros": np.full((3, 2), 2.5, np.float32)}, "zero points must be whole numbers of 4 bits: 2.5"),
        ({"zeros": np.zeros(2, np.uint8)}, "zero points must be 3 elements of type uint8"),
        ({"extra": {"g": np.zeros(40, np.int32)}}, "in another order than their blocks"),
    ],
)
def test_refused_blocks(changes: dict[str, Any], rule: str, tmp_path: Path) -> None:
    with pytest.raises(pn.ConversionError, match=rule):
        pn.load(blocks(tmp_path, **changes))


@pytest.mark.parametrize("block", [8, 2**31 + 1, 2**63 - 1, -(2**63)])
def test_refused_blocks_of_rows(block: int, tmp_path: Path) -> None:
    constants = {"t": np.zeros((3, 16), np.uint8), "s": np.ones((3, 1), np.float32)}
    node = helper.make_node("GatherBlockQuantized", ["t", "x", "s"], ["y"], domain="com.microsoft", block_size=block)
    path = model([node], {"x": np.zeros(2, np.int64)}, constants, onnx.TensorProto.FLOAT, tmp_path)
    with pytest.raises(pn.ConversionError, match="block_size must be 16 to 2147483648"):
        pn.load(path)


def test_other_operators_of_that_domain_are_refused_by_name(tmp_path: Path) -> None:
    node = helper.make_node("FusedMatMul", ["x", "x"], ["y"], domain="com.microsoft")
    x = np.eye(4, dtype=np.float32)
    with pytest.raises(pn.ConversionError, match="FusedMatMul"):
        pn.load(model([node], {"x": x}, {}, TensorProto.FLOAT, tmp_path))
