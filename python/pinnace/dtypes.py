"""Names of element types: the text form of graphs has short ones (f32), numpy and what users see have long ones."""

from __future__ import annotations

# By the text form's name the one of numpy, or of ml_dtypes.
DTYPES = {
    "f32": "float32",
    "f16": "float16",
    "bf16": "bfloat16",
    "f64": "float64",
    "i8": "int8",
    "u8": "uint8",
    "i16": "int16",
    "u16": "uint16",
    "i32": "int32",
    "u32": "uint32",
    "i64": "int64",
    "u64": "uint64",
    "bool": "bool",
    "i4": "int4",
    "u4": "uint4",
    "f8e4m3fn": "float8_e4m3fn",
    "f8e4m3fnuz": "float8_e4m3fnuz",
    "f8e5m2": "float8_e5m2",
    "f8e5m2fnuz": "float8_e5m2fnuz",
    "f8e8m0": "float8_e8m0fnu",
    "f6e2m3": "float6_e2m3fn",
    "f6e3m2": "float6_e3m2fn",
    "f4e2m1": "float4_e2m1fn",
    "i2": "int2",
    "u2": "uint2",
}


def long_name(dtype: str) -> str:
    """float32 for f32."""
    return DTYPES.get(dtype, dtype)


def long_type(text: str) -> str:
    """A type of the text form with the long name: `float32[batch,8]` for `f32[batch,8]`."""
    dtype, bracket, rest = text.partition("[")
    return f"{long_name(dtype)}{bracket}{rest}"


__all__ = ["DTYPES", "long_name", "long_type"]
