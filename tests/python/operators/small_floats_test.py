"""Floats of 8, 6 and 4 bits against ml_dtypes: every code, and rounding at and around every boundary between codes."""

from __future__ import annotations

import pathlib

import numpy as np
import onnx
import pinnace as pn
import pytest
from onnx import helper, numpy_helper
from single_op import DTYPES, ONNX_TYPES, ours

BITS = {
    "f8e4m3fn": 8,
    "f8e4m3fnuz": 8,
    "f8e5m2": 8,
    "f8e5m2fnuz": 8,
    "f8e8m0": 8,
    "f6e2m3": 6,
    "f6e3m2": 6,
    "f4e2m1": 4,
}
ROUNDED = [name for name in BITS if name != "f8e8m0"]  # the one that is not rounded half to even


def all_codes(name: str) -> np.ndarray:
    return np.arange(2 ** BITS[name], dtype=np.uint8).view(DTYPES[name])


@pytest.mark.parametrize("name", BITS)
def test_every_code_means_what_it_means_to_ml_dtypes(name: str) -> None:
    codes = all_codes(name)
    (wide,) = ours("cast", [codes], {"to": "f32"})
    np.testing.assert_array_equal(wide, codes.astype(np.float32))
    (back,) = ours("cast", [wide], {"to": name})
    np.testing.assert_array_equal(
        back.astype(np.float32),
        codes.astype(np.float32).clip(-np.abs(wide[np.isfinite(wide)]).max(), wide[np.isfinite(wide)].max()),
    )


@pytest.mark.parametrize("name", ROUNDED)
@pytest.mark.parametrize("saturate", [0, 1])
def test_rounds_as_ml_dtypes(name: str, saturate: int) -> None:
    finite = np.unique(all_codes(name).astype(np.float64))
    finite = finite[np.isfinite(finite)]
    middle = (finite[1:] + finite[:-1]) / 2
    largest = finite[-1]
    beyond = largest * np.array([1.01, 1.0624, 1.0626, 1.124, 1.126, 1.25, 1.5, 2, 100])
    x = np.concatenate([finite, middle, beyond, -beyond, [np.inf, -np.inf, np.nan, 1e-30, -1e-30]]).astype(np.float32)
    x = np.concatenate([x, np.nextafter(x, np.float32(np.inf)), np.nextafter(x, np.float32(-np.inf))])
    with np.errstate(all="ignore"):
        limited = x.clip(-largest, largest) if saturate else x
        want = limited.astype(DTYPES[name]).astype(np.float32)
    (got,) = ours("cast", [x], {"to": name, "saturate": saturate})
    wide = got.astype(np.float32)
    if name in ("f6e2m3", "f6e3m2", "f4e2m1"):  # NaN has no place: both make it a zero
        assert (wide[np.isnan(x)] == 0).all()
    np.testing.assert_array_equal(wide, want)
    numbers = ~np.isnan(want) & (want != 0)
    np.testing.assert_array_equal(np.signbit(wide[numbers]), np.signbit(want[numbers]))


@pytest.mark.parametrize("mode", ["up", "down", "nearest"])
def test_powers_of_two(mode: str) -> None:
    exponents = np.arange(-126, 127, dtype=np.float64)
    x = np.concatenate([2.0**exponents * m for m in (1, 1.1, 1.49, 1.5, 1.9)]).astype(np.float32)
    want = numpy_helper.to_float8e8m0(x, True, mode).astype(np.float32)
    (got,) = ours("cast", [x], {"to": "f8e8m0", "round_mode": mode})
    np.testing.assert_array_equal(got.astype(np.float32), want)


@pytest.mark.parametrize("name", [*BITS, "i2", "u2", "i4", "u4"])
@pytest.mark.parametrize("raw", [True, False])
@pytest.mark.parametrize("count", [1, 2, 3, 5, 8])
def test_constants_of_a_model(name: str, raw: bool, count: int, tmp_path: pathlib.Path) -> None:
    """Raw and typed data, odd counts, through the importer, the file and a session."""
    random = np.random.default_rng(count)
    codes = random.integers(0, 2 ** BITS.get(name, 1), count).astype(np.uint8)
    values = codes.view(DTYPES[name]) if name in BITS else codes.astype(np.int8).astype(DTYPES[name])
    tensor = numpy_helper.from_array(values, "c")
    if not raw:  # a number for each element, or for each byte of packed ones; six bits are an element
        numbers = list(codes) if BITS.get(name) == 6 else list(tensor.raw_data)
        tensor.ClearField("raw_data")
        tensor.int32_data.extend(int(n) for n in numbers)
    cast = helper.make_node("Cast", ["c"], ["y"], to=onnx.TensorProto.FLOAT)
    same = helper.make_node("Identity", ["x"], ["z"])
    graph = helper.make_graph(
        [cast, same],
        "constants",
        [helper.make_tensor_value_info("x", ONNX_TYPES[name], [count])],
        [
            helper.make_tensor_value_info("y", onnx.TensorProto.FLOAT, [count]),
            helper.make_tensor_value_info("z", ONNX_TYPES[name], [count]),
        ],
        [tensor],
    )
    path = tmp_path / "model.onnx"
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 28)], ir_version=14), path)
    program = pn.load(path, disabled_passes=["all"]).build(verify=False)
    program.save(tmp_path / "model.pnc")
    out = pn.Session(tmp_path / "model.pnc").run({"x": values})
    np.testing.assert_array_equal(out["y"], values.astype(np.float32))
    assert out["z"].dtype == values.dtype
    np.testing.assert_array_equal(out["z"].astype(np.float32), values.astype(np.float32))
