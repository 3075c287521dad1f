package org.pinnace;

import androidx.annotation.NonNull;

/** Element types, in the order of the C API's numbers. Elements lie in memory as the processor has them: little-endian. */
public enum DType {
  F32("float32", 32),
  F16("float16", 16),
  BF16("bfloat16", 16),
  F64("float64", 64),
  I8("int8", 8),
  U8("uint8", 8),
  I16("int16", 16),
  U16("uint16", 16),
  I32("int32", 32),
  U32("uint32", 32),
  I64("int64", 64),
  U64("uint64", 64),
  /** One byte, 0 or 1. */
  BOOL("bool", 8),
  /** Types of fewer than 8 bits are packed without gaps, the first element in the lowest bits. */
  I4("int4", 4),
  U4("uint4", 4),
  F8E4M3FN("float8_e4m3fn", 8),
  F8E4M3FNUZ("float8_e4m3fnuz", 8),
  F8E5M2("float8_e5m2", 8),
  F8E5M2FNUZ("float8_e5m2fnuz", 8),
  F8E8M0("float8_e8m0fnu", 8),
  F6E2M3("float6_e2m3fn", 6),
  F6E3M2("float6_e3m2fn", 6),
  F4E2M1("float4_e2m1fn", 4),
  I2("int2", 2),
  U2("uint2", 2);

  private static final DType[] ALL = values();

  private final String text;
  private final int bits;

  DType(String text, int bits) {
    this.text = text;
    this.bits = bits;
  }

  static DType of(int number) {
    return ALL[number];
  }

  /** Bits of one element. */
  public int bits() {
    return bits;
  }

  /** The name that numpy or ml_dtypes has for it: {@code "float32"}. */
  @NonNull
  @Override
  public String toString() {
    return text;
  }

  /** Bytes of so many elements without gaps. @throws ArithmeticException there are more than 2^63. */
  long bytes(long elements) {
    if (bits % 8 == 0) return Math.multiplyExact(elements, (long) (bits / 8));
    return Math.addExact(Math.multiplyExact(elements, (long) bits), 7L) / 8;
  }
}
