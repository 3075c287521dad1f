package org.pytorch;

/**
 * The order in which a {@link Tensor}'s elements lie in memory. Its shape is N, C, (D,) H, W in every format.
 *
 * <p>A {@code .pnc} takes and gives {@link #CONTIGUOUS} tensors: {@link Module#forward} copies others into that order first.
 */
public enum MemoryFormat {
  /** N, C, (D,) H, W: the last dimension changes fastest. */
  CONTIGUOUS(0),
  /** N, H, W, C: the channels of a pixel lie together. Tensors of 4 dimensions. */
  CHANNELS_LAST(4),
  /** N, D, H, W, C. Tensors of 5 dimensions. */
  CHANNELS_LAST_3D(5);

  /** How many dimensions a tensor has to have; 0: any number. */
  final int rank;

  MemoryFormat(int rank) {
    this.rank = rank;
  }
}
