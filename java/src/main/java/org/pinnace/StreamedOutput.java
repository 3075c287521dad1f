package org.pinnace;

import androidx.annotation.NonNull;

/**
 * An output of a program whose inputs come in chunks. For T elements of the input the network's output has {@code T * up /
 * down + more} elements along {@link #axis}. Chunk by chunk it is delayed by {@code latency * up / down} elements, which are
 * zeros at the front.
 */
public final class StreamedOutput {
  /** The output. */
  @NonNull public final String name;
  /** Along which it grows. */
  public final int axis;
  /** Elements for each {@link #down} elements of input. */
  public final long up;
  /** See {@link #up}. */
  public final long down;
  /** Elements that the whole has beyond that; negative: that it lacks. */
  public final long more;

  StreamedOutput(Cells cells) {
    name = cells.text();
    axis = cells.integer();
    up = cells.number();
    down = cells.number();
    more = cells.number();
  }

  /** {@code "y: axis 2, rate 1/8, more -1"}. */
  @NonNull
  @Override
  public String toString() {
    return name + ": axis " + axis + ", rate " + up + "/" + down + ", more " + more;
  }
}
