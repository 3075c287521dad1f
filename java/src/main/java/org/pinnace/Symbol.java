package org.pinnace;

import androidx.annotation.NonNull;

/** A named dimension that each run's inputs fix: {@code min <= size <= max} and {@code size % multipleOf == 0}. */
public final class Symbol {
  /** The name that stands in shapes and messages. */
  @NonNull public final String name;
  /** The least size. */
  public final long min;
  /** The greatest size; {@link Long#MAX_VALUE}: there is none. */
  public final long max;
  /** What divides every size. */
  public final long multipleOf;

  Symbol(Cells cells) {
    name = cells.text();
    min = cells.number();
    max = cells.number();
    multipleOf = cells.number();
  }

  @NonNull
  @Override
  public String toString() {
    return name + " " + min + ".." + (max == Long.MAX_VALUE ? "inf" : max) + (multipleOf == 1 ? "" : " multiple of " + multipleOf);
  }
}
