package org.pinnace;

import androidx.annotation.NonNull;
import java.util.Arrays;

/** An element type and sizes, of which some may not be known yet. Immutable. */
public final class TensorType {
  /** The elements' type. */
  @NonNull public final DType dtype;
  private final long[] shape;

  /**
   * Of these sizes; -1: one that is not known.
   *
   * @throws PinnaceException.InvalidArgument an argument is null, a size is below -1, or there are more than 32.
   */
  public TensorType(@NonNull DType dtype, @NonNull long... shape) {
    if (dtype == null) throw new PinnaceException.InvalidArgument("the dtype is null");
    if (shape == null) throw new PinnaceException.InvalidArgument("the shape is null");
    if (shape.length > Tensor.MAX_RANK) {
      throw new PinnaceException.InvalidArgument("rank " + shape.length + " is above " + Tensor.MAX_RANK);
    }
    for (long size : shape) {
      if (size < -1) throw new PinnaceException.InvalidArgument("the shape " + Arrays.toString(shape) + " has a size below -1");
    }
    this.dtype = dtype;
    this.shape = shape.clone();
  }

  /** A copy of the sizes; -1: one that is not known. */
  @NonNull
  public long[] shape() {
    return shape.clone();
  }

  /** Number of dimensions. */
  public int rank() {
    return shape.length;
  }

  /** {@code "float32[1, -1]"}. */
  @NonNull
  @Override
  public String toString() {
    return dtype + Arrays.toString(shape);
  }
}
