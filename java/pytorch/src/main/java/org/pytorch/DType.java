package org.pytorch;

/** Element types of a {@link Tensor}. */
public enum DType {
  /** {@code torch.uint8}. */
  UINT8("uint8", org.pinnace.DType.U8),
  /** {@code torch.int8}. */
  INT8("int8", org.pinnace.DType.I8),
  /** {@code torch.int32}. */
  INT32("int32", org.pinnace.DType.I32),
  /** {@code torch.float32}. */
  FLOAT32("float32", org.pinnace.DType.F32),
  /** {@code torch.int64}. */
  INT64("int64", org.pinnace.DType.I64),
  /** {@code torch.float64}. */
  FLOAT64("float64", org.pinnace.DType.F64),
  /** {@code torch.float16}, as bits in a {@code short}. PyTorch Mobile has no such tensors; the name is ExecuTorch's. */
  HALF("float16", org.pinnace.DType.F16);

  final String text;
  final org.pinnace.DType pinnace;

  DType(String text, org.pinnace.DType pinnace) {
    this.text = text;
    this.pinnace = pinnace;
  }

  int bytes() {
    return pinnace.bits() / 8;
  }

  /** The one for pinnace's; null: there is none. */
  static DType of(org.pinnace.DType pinnace) {
    for (DType dtype : values()) {
      if (dtype.pinnace == pinnace) return dtype;
    }
    return null;
  }
}
