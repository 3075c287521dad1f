package org.pinnace;

import androidx.annotation.NonNull;

/** An input that runs take in chunks. Sizes are numbers of its elements along {@link #axis}. */
public final class StreamedInput {
  /** The input. */
  @NonNull public final String name;
  /** Along which chunks are cut. */
  public final int axis;
  /** By how many elements the outputs are delayed. */
  public final long latency;
  /** What every chunk's size is a multiple of. */
  public final long multiple;
  /** How many zeros {@link Session#finish} runs on; 0: it runs nothing. */
  public final long tail;

  StreamedInput(Cells cells) {
    name = cells.text();
    axis = cells.integer();
    latency = cells.number();
    multiple = cells.number();
    tail = cells.number();
  }

  /** {@code "audio: axis 2, latency 15, multiple 1, tail 15"}. */
  @NonNull
  @Override
  public String toString() {
    return name + ": axis " + axis + ", latency " + latency + ", multiple " + multiple + ", tail " + tail;
  }
}
