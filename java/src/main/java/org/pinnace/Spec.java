package org.pinnace;

import androidx.annotation.NonNull;
import androidx.annotation.Nullable;
import java.util.List;

/** An input, output or state of a program: its name, dtype and shape. Immutable. */
public final class Spec {
  /** By which it is given to a run, or found in its results. */
  @NonNull public final String name;
  /** The elements' type. */
  @NonNull public final DType dtype;
  private final long[] shape;
  private final long[] bounds;
  private final Symbol[] symbols;
  private final float[] scales;
  private final int[] zeroPoints;
  private final int axis;
  private final long block;

  Spec(Cells cells, List<Symbol> known) {
    name = cells.text();
    dtype = DType.of(cells.integer());
    int rank = cells.integer();
    shape = new long[rank];
    bounds = new long[rank];
    symbols = new Symbol[rank];
    for (int d = 0; d < rank; ++d) {
      shape[d] = cells.number();
      bounds[d] = cells.number();
      int symbol = cells.integer();
      symbols[d] = symbol < 0 ? null : known.get(symbol);
    }
    int count = cells.integer();
    scales = new float[count];
    zeroPoints = new int[count];
    for (int i = 0; i < count; ++i) {
      scales[i] = Float.parseFloat(cells.text());
      zeroPoints[i] = cells.integer();
    }
    axis = cells.integer();
    block = cells.number();
  }

  /** Number of dimensions. */
  public int rank() {
    return shape.length;
  }

  /** A copy of the sizes; -1 where a size is fixed by each run. */
  @NonNull
  public long[] shape() {
    return shape.clone();
  }

  /** The symbol of dimension {@code d}; null where it has a size, or one that only the run knows. */
  @Nullable
  public Symbol symbol(int d) {
    return symbols[d];
  }

  /** The greatest size of dimension {@code d} where its size is unknown and it has no symbol; -1: there is no bound. */
  public long bound(int d) {
    return bounds[d];
  }

  /** Of a quantised tensor, real = (q - zeroPoint) * scale: one scale, or one for each index or block of {@link #axis}. */
  @NonNull
  public float[] scales() {
    return scales.clone();
  }

  /** As many as scales. */
  @NonNull
  public int[] zeroPoints() {
    return zeroPoints.clone();
  }

  /** The axis along which scales differ; -1: there is one for all. */
  public int axis() {
    return axis;
  }

  /** Consecutive elements along the axis that share a scale; 0: one. */
  public long block() {
    return block;
  }

  /** {@code "x: float32[batch,3,224,224]"}. */
  @NonNull
  @Override
  public String toString() {
    StringBuilder text = new StringBuilder(name).append(": ").append(dtype).append('[');
    for (int d = 0; d < shape.length; ++d) {
      if (d > 0) text.append(',');
      if (symbols[d] != null) text.append(symbols[d].name);
      else if (shape[d] < 0) text.append('?');
      else text.append(shape[d]);
    }
    return text.append(']').toString();
  }
}
