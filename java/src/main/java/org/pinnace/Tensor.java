package org.pinnace;

import androidx.annotation.NonNull;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.util.Arrays;

/**
 * An array in native memory: dense, row-major, little-endian. It shares the memory of the direct buffer that it was made
 * of; nothing is copied, neither here nor when it goes into a run.
 *
 * <p>The type and the place of the memory never change. What is in it may be written by anyone; not while a run has it.
 */
public final class Tensor {
  static final int MAX_RANK = 32;

  private final DType dtype;
  private final long[] shape;
  private final ByteBuffer buffer;
  final long address;
  final long bytes;

  private Tensor(DType dtype, long[] shape, ByteBuffer buffer, long bytes) {
    this.dtype = dtype;
    this.shape = shape;
    this.buffer = buffer;
    this.bytes = bytes;
    this.address = Native.address(buffer);
  }

  /**
   * The bytes of a direct buffer from its position to its limit, not copied. The buffer's own position, limit and order
   * may change afterwards; its order counts for nothing: what is in it is little-endian. The position must be at an address that
   * is a multiple of the elements' bytes, as position 0 of {@code allocateDirect} is.
   *
   * @throws PinnaceException.InvalidArgument the buffer is null or not direct, has too few bytes, or begins elsewhere, or a size
   *     is negative.
   */
  @NonNull
  public static Tensor of(@NonNull DType dtype, @NonNull long[] shape, @NonNull ByteBuffer buffer) {
    if (buffer == null) throw new PinnaceException.InvalidArgument("the buffer is null");
    if (!buffer.isDirect()) {
      throw new PinnaceException.InvalidArgument("the buffer is not direct: use ByteBuffer.allocateDirect");
    }
    long bytes = bytesOf(dtype, shape);
    if (bytes > buffer.remaining()) {
      throw new PinnaceException.InvalidArgument(
          dtype + Arrays.toString(shape) + " has " + bytes + " bytes, the buffer has " + buffer.remaining());
    }
    Tensor made = new Tensor(dtype, shape.clone(), buffer.slice(), bytes);
    int element = Math.max(1, dtype.bits() / 8);
    if (bytes > 0 && made.address % element != 0) {
      throw new PinnaceException.InvalidArgument("the buffer's position " + buffer.position()
          + " is at an address that is no multiple of " + element + ", the bytes of one " + dtype);
    }
    return made;
  }

  /** A tensor of zeros in memory of its own. Errors as above. */
  @NonNull
  public static Tensor allocate(@NonNull DType dtype, @NonNull long... shape) {
    long bytes = bytesOf(dtype, shape);
    if (bytes > Integer.MAX_VALUE) {
      throw new PinnaceException.InvalidArgument(dtype + Arrays.toString(shape) + " has more bytes than a buffer can have");
    }
    return new Tensor(dtype, shape.clone(), ByteBuffer.allocateDirect(Math.max(1, (int) bytes)), bytes);
  }

  /** A copy of these elements. Errors as above, and where there are not as many as the shape has. */
  @NonNull
  public static Tensor of(@NonNull float[] elements, @NonNull long... shape) {
    Tensor made = allocateFor(DType.F32, elements == null ? -1 : elements.length, shape);
    made.buffer().asFloatBuffer().put(elements);
    return made;
  }

  /** As above, of int32. */
  @NonNull
  public static Tensor of(@NonNull int[] elements, @NonNull long... shape) {
    Tensor made = allocateFor(DType.I32, elements == null ? -1 : elements.length, shape);
    made.buffer().asIntBuffer().put(elements);
    return made;
  }

  /** As above, of int64. */
  @NonNull
  public static Tensor of(@NonNull long[] elements, @NonNull long... shape) {
    Tensor made = allocateFor(DType.I64, elements == null ? -1 : elements.length, shape);
    made.buffer().asLongBuffer().put(elements);
    return made;
  }

  /** As above, of types of 8 bits: U8, I8, BOOL. */
  @NonNull
  public static Tensor of(@NonNull DType dtype, @NonNull byte[] elements, @NonNull long... shape) {
    if (dtype != null && dtype.bits() != 8) throw new PinnaceException.InvalidArgument(dtype + " has no elements of 8 bits");
    Tensor made = allocateFor(dtype, elements == null ? -1 : elements.length, shape);
    made.buffer().put(elements);
    return made;
  }

  private static Tensor allocateFor(DType dtype, long count, long[] shape) {
    if (count < 0) throw new PinnaceException.InvalidArgument("the elements are null");
    Tensor made = allocate(dtype, shape);
    if (made.elements() != count) {
      throw new PinnaceException.InvalidArgument(
          dtype + Arrays.toString(shape) + " has " + made.elements() + " elements, was given " + count);
    }
    return made;
  }

  private static long bytesOf(DType dtype, long[] shape) {
    if (dtype == null) throw new PinnaceException.InvalidArgument("the dtype is null");
    if (shape == null) throw new PinnaceException.InvalidArgument("the shape is null");
    if (shape.length > MAX_RANK) throw new PinnaceException.InvalidArgument("rank " + shape.length + " is above " + MAX_RANK);
    for (long size : shape) {
      if (size < 0) throw new PinnaceException.InvalidArgument("the shape " + Arrays.toString(shape) + " has a negative size");
    }
    try {
      return dtype.bytes(elementsOf(shape));
    } catch (ArithmeticException e) {
      throw new PinnaceException.InvalidArgument("the shape " + Arrays.toString(shape) + " has more than 2^63 bytes");
    }
  }

  private static long elementsOf(long[] shape) {
    long elements = 1;
    for (long size : shape) {
      if (size == 0) return 0;
    }
    for (long size : shape) elements = Math.multiplyExact(elements, size);
    return elements;
  }

  /** The elements' type. */
  @NonNull
  public DType dtype() {
    return dtype;
  }

  /** A copy of the sizes. */
  @NonNull
  public long[] shape() {
    return shape.clone();
  }

  /** Number of dimensions. */
  public int rank() {
    return shape.length;
  }

  /** Number of elements. */
  public long elements() {
    return elementsOf(shape);
  }

  /** The memory itself, little-endian, from its first byte to its last: what is written into it the tensor has. */
  @NonNull
  public ByteBuffer buffer() {
    ByteBuffer view = buffer.duplicate();
    view.clear();
    view.limit((int) bytes);
    return view.order(ByteOrder.nativeOrder());
  }

  /** A copy of the elements. @throws PinnaceException.InvalidArgument they are no float32. */
  @NonNull
  public float[] floats() {
    check(DType.F32);
    float[] copy = new float[(int) elements()];
    buffer().asFloatBuffer().get(copy);
    return copy;
  }

  /** A copy of the elements. @throws PinnaceException.InvalidArgument they are no int32. */
  @NonNull
  public int[] ints() {
    check(DType.I32);
    int[] copy = new int[(int) elements()];
    buffer().asIntBuffer().get(copy);
    return copy;
  }

  /** A copy of the elements. @throws PinnaceException.InvalidArgument they are no int64. */
  @NonNull
  public long[] longs() {
    check(DType.I64);
    long[] copy = new long[(int) elements()];
    buffer().asLongBuffer().get(copy);
    return copy;
  }

  /** A copy of the bytes, of any dtype. */
  @NonNull
  public byte[] toBytes() {
    byte[] copy = new byte[(int) bytes];
    buffer().get(copy);
    return copy;
  }

  /** A copy of the first {@code count} elements along an axis, of a type of whole bytes. */
  Tensor first(int axis, long count) {
    long[] sizes = shape.clone();
    sizes[axis] = count;
    Tensor copy = allocate(dtype, sizes);
    long inner = 1;
    for (int d = axis + 1; d < sizes.length; ++d) inner *= sizes[d];
    int from = (int) dtype.bytes(inner * shape[axis]);
    int to = (int) dtype.bytes(inner * count);
    ByteBuffer source = buffer();
    ByteBuffer target = copy.buffer();
    for (int row = 0; to > 0 && (row + 1) * (long) to <= copy.bytes; ++row) {
      source.limit(row * from + to);
      source.position(row * from);
      target.put(source);
    }
    return copy;
  }

  boolean readOnly() {
    return buffer.isReadOnly();
  }

  private void check(DType wanted) {
    if (dtype != wanted) throw new PinnaceException.InvalidArgument("the tensor is " + dtype + ", not " + wanted);
  }

  /** {@code "float32[1, 3]"}. */
  @NonNull
  @Override
  public String toString() {
    return dtype + Arrays.toString(shape);
  }

  /** As native code takes it, appended from {@code at} on; gives where the next one goes. */
  int pack(long[] to, int at) {
    to[at] = address;
    to[at + 1] = bytes;
    to[at + 2] = dtype.ordinal();
    to[at + 3] = shape.length;
    System.arraycopy(shape, 0, to, at + 4, shape.length);
    return at + 4 + shape.length;
  }

  int packedLength() {
    return 4 + shape.length;
  }
}
