package org.pytorch;

import java.nio.Buffer;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.nio.DoubleBuffer;
import java.nio.FloatBuffer;
import java.nio.IntBuffer;
import java.nio.LongBuffer;
import java.nio.ShortBuffer;
import java.util.Arrays;

/**
 * An array with a shape, an element type and a memory format.
 *
 * <p>{@code fromBlob} copies an array. It keeps a direct buffer itself: what is written into it before {@link Module#forward}
 * is what that call takes. There, tensors of arrays and of {@link ByteBuffer}s are not copied, those of other buffers and
 * those that are not contiguous are copied once.
 *
 * <p>Every {@code fromBlob} throws {@link IllegalArgumentException} where data or shape is null, a size is negative, the shape
 * has not as many elements as the data (a buffer's capacity, whatever its position and limit are), a buffer is not direct or has
 * not the processor's byte order, or the shape has not the number of dimensions of the memory format.
 */
public class Tensor {
  private final DType dtype;
  private final long[] shape;
  private final MemoryFormat format;
  private final Buffer data; // of the dtype's class, from its first to its last element
  private final ByteBuffer bytes; // the same memory; null: there is only the buffer

  private Tensor(DType dtype, Buffer data, ByteBuffer bytes, long[] shape, MemoryFormat format) {
    this.dtype = dtype;
    this.shape = shape.clone();
    this.format = format;
    this.data = data;
    this.bytes = bytes;
  }

  // ---- memory -------------------------------------------------------------------------------------------------------

  private static ByteBuffer memory(int elements, int size) {
    if (elements < 0) throw new IllegalArgumentException("a buffer cannot have " + elements + " elements");
    long bytes = (long) elements * size;
    if (bytes > Integer.MAX_VALUE) throw new IllegalArgumentException("a buffer cannot have " + bytes + " bytes");
    return ByteBuffer.allocateDirect((int) bytes).order(ByteOrder.nativeOrder());
  }

  /**
   * A direct buffer of so many bytes, of zeros, for {@link #fromBlob(ByteBuffer, long[])} and {@link
   * #fromBlobUnsigned(ByteBuffer, long[])}.
   *
   * @throws IllegalArgumentException of this method and of those below: the number is negative, or is one of more than 2 GiB.
   */
  public static ByteBuffer allocateByteBuffer(int numElements) {
    return memory(numElements, 1);
  }

  /** The same for {@link #fromBlob(IntBuffer, long[])}. */
  public static IntBuffer allocateIntBuffer(int numElements) {
    return memory(numElements, 4).asIntBuffer();
  }

  /** The same for {@link #fromBlob(FloatBuffer, long[])}. */
  public static FloatBuffer allocateFloatBuffer(int numElements) {
    return memory(numElements, 4).asFloatBuffer();
  }

  /** The same for {@link #fromBlob(LongBuffer, long[])}. */
  public static LongBuffer allocateLongBuffer(int numElements) {
    return memory(numElements, 8).asLongBuffer();
  }

  /** The same for {@link #fromBlob(DoubleBuffer, long[])}. */
  public static DoubleBuffer allocateDoubleBuffer(int numElements) {
    return memory(numElements, 8).asDoubleBuffer();
  }

  /** The same for {@link #fromBlob(ShortBuffer, long[])}. PyTorch Mobile has none; the name is ExecuTorch's. */
  public static ShortBuffer allocateHalfBuffer(int numElements) {
    return memory(numElements, 2).asShortBuffer();
  }

  // ---- from arrays --------------------------------------------------------------------------------------------------

  /** A tensor of uint8, of these bits. */
  public static Tensor fromBlobUnsigned(byte[] data, long[] shape) {
    return fromBlobUnsigned(data, shape, MemoryFormat.CONTIGUOUS);
  }

  /** The same in a memory format. */
  public static Tensor fromBlobUnsigned(byte[] data, long[] shape, MemoryFormat memoryFormat) {
    return ofBytes(DType.UINT8, data, shape, memoryFormat);
  }

  /** A tensor of int8. */
  public static Tensor fromBlob(byte[] data, long[] shape) {
    return fromBlob(data, shape, MemoryFormat.CONTIGUOUS);
  }

  /** The same in a memory format. */
  public static Tensor fromBlob(byte[] data, long[] shape, MemoryFormat memoryFormat) {
    return ofBytes(DType.INT8, data, shape, memoryFormat);
  }

  private static Tensor ofBytes(DType dtype, byte[] data, long[] shape, MemoryFormat format) {
    check(data, data == null ? 0 : data.length, shape, format);
    Tensor made = allocate(dtype, data.length, shape, format);
    made.whole(ByteBuffer.class).put(data);
    return made;
  }

  /** A tensor of int32. */
  public static Tensor fromBlob(int[] data, long[] shape) {
    return fromBlob(data, shape, MemoryFormat.CONTIGUOUS);
  }

  /** The same in a memory format. */
  public static Tensor fromBlob(int[] data, long[] shape, MemoryFormat memoryFormat) {
    check(data, data == null ? 0 : data.length, shape, memoryFormat);
    Tensor made = allocate(DType.INT32, data.length, shape, memoryFormat);
    made.whole(IntBuffer.class).put(data);
    return made;
  }

  /** A tensor of float32. */
  public static Tensor fromBlob(float[] data, long[] shape) {
    return fromBlob(data, shape, MemoryFormat.CONTIGUOUS);
  }

  /** The same in a memory format. */
  public static Tensor fromBlob(float[] data, long[] shape, MemoryFormat memoryFormat) {
    check(data, data == null ? 0 : data.length, shape, memoryFormat);
    Tensor made = allocate(DType.FLOAT32, data.length, shape, memoryFormat);
    made.whole(FloatBuffer.class).put(data);
    return made;
  }

  /** A tensor of int64. */
  public static Tensor fromBlob(long[] data, long[] shape) {
    return fromBlob(data, shape, MemoryFormat.CONTIGUOUS);
  }

  /** The same in a memory format. */
  public static Tensor fromBlob(long[] data, long[] shape, MemoryFormat memoryFormat) {
    check(data, data == null ? 0 : data.length, shape, memoryFormat);
    Tensor made = allocate(DType.INT64, data.length, shape, memoryFormat);
    made.whole(LongBuffer.class).put(data);
    return made;
  }

  /** A tensor of float64. */
  public static Tensor fromBlob(double[] data, long[] shape) {
    return fromBlob(data, shape, MemoryFormat.CONTIGUOUS);
  }

  /** The same, with the arguments in the order of PyTorch 1.3. */
  public static Tensor fromBlob(long[] shape, double[] data) {
    return fromBlob(data, shape, MemoryFormat.CONTIGUOUS);
  }

  /** The same in a memory format. */
  public static Tensor fromBlob(double[] data, long[] shape, MemoryFormat memoryFormat) {
    check(data, data == null ? 0 : data.length, shape, memoryFormat);
    Tensor made = allocate(DType.FLOAT64, data.length, shape, memoryFormat);
    made.whole(DoubleBuffer.class).put(data);
    return made;
  }

  /** A tensor of float16, of these bits. PyTorch Mobile has none. */
  public static Tensor fromBlob(short[] data, long[] shape) {
    return fromBlob(data, shape, MemoryFormat.CONTIGUOUS);
  }

  /** The same in a memory format. */
  public static Tensor fromBlob(short[] data, long[] shape, MemoryFormat memoryFormat) {
    check(data, data == null ? 0 : data.length, shape, memoryFormat);
    Tensor made = allocate(DType.HALF, data.length, shape, memoryFormat);
    made.whole(ShortBuffer.class).put(data);
    return made;
  }

  // ---- of direct buffers --------------------------------------------------------------------------------------------

  /** A tensor of uint8 in this buffer. */
  public static Tensor fromBlobUnsigned(ByteBuffer data, long[] shape) {
    return fromBlobUnsigned(data, shape, MemoryFormat.CONTIGUOUS);
  }

  /** The same in a memory format. */
  public static Tensor fromBlobUnsigned(ByteBuffer data, long[] shape, MemoryFormat memoryFormat) {
    return ofBuffer(DType.UINT8, data, data == null ? null : data.order(), shape, memoryFormat);
  }

  /** A tensor of int8 in this buffer. */
  public static Tensor fromBlob(ByteBuffer data, long[] shape) {
    return fromBlob(data, shape, MemoryFormat.CONTIGUOUS);
  }

  /** The same in a memory format. */
  public static Tensor fromBlob(ByteBuffer data, long[] shape, MemoryFormat memoryFormat) {
    return ofBuffer(DType.INT8, data, data == null ? null : data.order(), shape, memoryFormat);
  }

  /** A tensor of int32 in this buffer. */
  public static Tensor fromBlob(IntBuffer data, long[] shape) {
    return fromBlob(data, shape, MemoryFormat.CONTIGUOUS);
  }

  /** The same in a memory format. */
  public static Tensor fromBlob(IntBuffer data, long[] shape, MemoryFormat memoryFormat) {
    return ofBuffer(DType.INT32, data, data == null ? null : data.order(), shape, memoryFormat);
  }

  /** A tensor of float32 in this buffer. */
  public static Tensor fromBlob(FloatBuffer data, long[] shape) {
    return fromBlob(data, shape, MemoryFormat.CONTIGUOUS);
  }

  /** The same in a memory format. */
  public static Tensor fromBlob(FloatBuffer data, long[] shape, MemoryFormat memoryFormat) {
    return ofBuffer(DType.FLOAT32, data, data == null ? null : data.order(), shape, memoryFormat);
  }

  /** A tensor of int64 in this buffer. */
  public static Tensor fromBlob(LongBuffer data, long[] shape) {
    return fromBlob(data, shape, MemoryFormat.CONTIGUOUS);
  }

  /** The same in a memory format. */
  public static Tensor fromBlob(LongBuffer data, long[] shape, MemoryFormat memoryFormat) {
    return ofBuffer(DType.INT64, data, data == null ? null : data.order(), shape, memoryFormat);
  }

  /** A tensor of float64 in this buffer. */
  public static Tensor fromBlob(DoubleBuffer data, long[] shape) {
    return fromBlob(data, shape, MemoryFormat.CONTIGUOUS);
  }

  /** The same in a memory format. */
  public static Tensor fromBlob(DoubleBuffer data, long[] shape, MemoryFormat memoryFormat) {
    return ofBuffer(DType.FLOAT64, data, data == null ? null : data.order(), shape, memoryFormat);
  }

  /** A tensor of float16 in this buffer of bits. PyTorch Mobile has none. */
  public static Tensor fromBlob(ShortBuffer data, long[] shape) {
    return fromBlob(data, shape, MemoryFormat.CONTIGUOUS);
  }

  /** The same in a memory format. */
  public static Tensor fromBlob(ShortBuffer data, long[] shape, MemoryFormat memoryFormat) {
    return ofBuffer(DType.HALF, data, data == null ? null : data.order(), shape, memoryFormat);
  }

  private static Tensor ofBuffer(DType dtype, Buffer data, ByteOrder order, long[] shape, MemoryFormat format) {
    check(data, data == null ? 0 : data.capacity(), shape, format);
    if (!data.isDirect()) {
      throw new IllegalArgumentException("the buffer is not direct: make it by the allocate methods of org.pytorch.Tensor");
    }
    if (order != ByteOrder.nativeOrder()) {
      throw new IllegalArgumentException("the buffer has the order " + order + ", the processor " + ByteOrder.nativeOrder());
    }
    return new Tensor(dtype, data, data instanceof ByteBuffer ? (ByteBuffer) data : null, shape, format);
  }

  private static void check(Object data, int count, long[] shape, MemoryFormat format) {
    if (data == null) throw new IllegalArgumentException("the data are null");
    if (format == null) throw new IllegalArgumentException("the memory format is null");
    long elements = numel(shape);
    if (elements != count) {
      throw new IllegalArgumentException(
          "the shape " + Arrays.toString(shape) + " has " + elements + " elements, the data have " + count);
    }
    if (format.rank != 0 && format.rank != shape.length) {
      throw new IllegalArgumentException(
          format + " is of tensors with " + format.rank + " dimensions, the shape is " + Arrays.toString(shape));
    }
  }

  private static Tensor allocate(DType dtype, int elements, long[] shape, MemoryFormat format) {
    return over(dtype, memory(elements, dtype.bytes()), shape, format);
  }

  private static Tensor over(DType dtype, ByteBuffer bytes, long[] shape, MemoryFormat format) {
    Buffer data = bytes;
    switch (dtype) {
      case INT32:
        data = bytes.asIntBuffer();
        break;
      case FLOAT32:
        data = bytes.asFloatBuffer();
        break;
      case INT64:
        data = bytes.asLongBuffer();
        break;
      case FLOAT64:
        data = bytes.asDoubleBuffer();
        break;
      case HALF:
        data = bytes.asShortBuffer();
        break;
      default: // of one byte
    }
    return new Tensor(dtype, data, bytes, shape, format);
  }

  // ---- what it is ---------------------------------------------------------------------------------------------------

  /** Number of elements. */
  public long numel() {
    return numel(shape);
  }

  /** Number of elements of a shape. @throws IllegalArgumentException it is null, or has a negative size or more than 2^63. */
  public static long numel(long[] shape) {
    if (shape == null) throw new IllegalArgumentException("the shape is null");
    long elements = 1;
    boolean empty = false;
    for (long size : shape) {
      if (size < 0) throw new IllegalArgumentException("the shape " + Arrays.toString(shape) + " has a negative size");
      empty |= size == 0;
    }
    if (empty) return 0;
    try {
      for (long size : shape) elements = Math.multiplyExact(elements, size);
    } catch (ArithmeticException e) {
      throw new IllegalArgumentException("the shape " + Arrays.toString(shape) + " has more than 2^63 elements", e);
    }
    return elements;
  }

  /** A copy of the sizes: N, C, H, W of an image, whatever the memory format is. */
  public long[] shape() {
    return shape.clone();
  }

  /** The elements' type. */
  public DType dtype() {
    return dtype;
  }

  /** The order of the elements in memory. That of results of {@link Module#forward} is {@link MemoryFormat#CONTIGUOUS}. */
  public MemoryFormat memoryFormat() {
    return format;
  }

  // ---- what is in it ------------------------------------------------------------------------------------------------

  /** A copy of the elements, in the order of the memory. @throws IllegalStateException they are no int8. */
  public byte[] getDataAsByteArray() {
    return bytesOf(DType.INT8);
  }

  /** The same of the bits of uint8. @throws IllegalStateException they are no uint8. */
  public byte[] getDataAsUnsignedByteArray() {
    return bytesOf(DType.UINT8);
  }

  private byte[] bytesOf(DType wanted) {
    need(wanted);
    byte[] copy = new byte[data.capacity()];
    whole(ByteBuffer.class).get(copy);
    return copy;
  }

  /** The same of int32. @throws IllegalStateException they are no int32. */
  public int[] getDataAsIntArray() {
    need(DType.INT32);
    int[] copy = new int[data.capacity()];
    whole(IntBuffer.class).get(copy);
    return copy;
  }

  /** The same of float32. @throws IllegalStateException they are no float32. */
  public float[] getDataAsFloatArray() {
    need(DType.FLOAT32);
    float[] copy = new float[data.capacity()];
    whole(FloatBuffer.class).get(copy);
    return copy;
  }

  /** The same of int64. @throws IllegalStateException they are no int64. */
  public long[] getDataAsLongArray() {
    need(DType.INT64);
    long[] copy = new long[data.capacity()];
    whole(LongBuffer.class).get(copy);
    return copy;
  }

  /** The same of float64. @throws IllegalStateException they are no float64. */
  public double[] getDataAsDoubleArray() {
    need(DType.FLOAT64);
    double[] copy = new double[data.capacity()];
    whole(DoubleBuffer.class).get(copy);
    return copy;
  }

  /** The same of the bits of float16. PyTorch Mobile has none. @throws IllegalStateException they are no float16. */
  public short[] getDataAsShortArray() {
    need(DType.HALF);
    short[] copy = new short[data.capacity()];
    whole(ShortBuffer.class).get(copy);
    return copy;
  }

  /**
   * The memory itself: a direct buffer of the elements' class, {@link ByteBuffer} for those of one byte and {@link ShortBuffer}
   * for float16. In PyTorch Mobile it is there for its own package alone.
   */
  public Buffer getRawDataBuffer() {
    return data;
  }

  /** {@code "Tensor([1, 3], dtype=torch.float32)"}. */
  @Override
  public String toString() {
    return "Tensor(" + Arrays.toString(shape) + ", dtype=torch." + dtype.text + ")";
  }

  private void need(DType wanted) {
    if (dtype != wanted) throw new IllegalStateException(this + " has no elements of " + wanted.text);
  }

  /** All of the data, with a position and a limit of its own. */
  private <B extends Buffer> B whole(Class<B> kind) {
    return kind.cast(whole(data));
  }

  private static Buffer whole(Buffer data) {
    Buffer copy;
    if (data instanceof ByteBuffer) copy = ((ByteBuffer) data).duplicate();
    else if (data instanceof ShortBuffer) copy = ((ShortBuffer) data).duplicate();
    else if (data instanceof IntBuffer) copy = ((IntBuffer) data).duplicate();
    else if (data instanceof LongBuffer) copy = ((LongBuffer) data).duplicate();
    else if (data instanceof FloatBuffer) copy = ((FloatBuffer) data).duplicate();
    else copy = ((DoubleBuffer) data).duplicate();
    copy.clear();
    return copy;
  }

  // ---- to pinnace and back ------------------------------------------------------------------------------------------

  /** One in pinnace's memory, of a type that DType has. */
  static Tensor of(org.pinnace.Tensor from) {
    DType dtype = DType.of(from.dtype());
    return over(dtype, contents(from), from.shape(), MemoryFormat.CONTIGUOUS);
  }

  /** This tensor's own memory, where pinnace can take it as it is; else null. */
  org.pinnace.Tensor shared() {
    if (bytes == null || format != MemoryFormat.CONTIGUOUS) return null;
    return org.pinnace.Tensor.of(dtype.pinnace, shape, (ByteBuffer) whole(bytes));
  }

  /**
   * A contiguous copy.
   *
   * @param before what an earlier call gave; its memory is used again where it is of the same type. Null: there is none.
   */
  org.pinnace.Tensor copied(org.pinnace.Tensor before) {
    boolean again = before != null && before.dtype() == dtype.pinnace && Arrays.equals(before.shape(), shape);
    org.pinnace.Tensor copy = again ? before : org.pinnace.Tensor.allocate(dtype.pinnace, shape);
    Buffer to = over(dtype, contents(copy), shape, MemoryFormat.CONTIGUOUS).data;
    if (format == MemoryFormat.CONTIGUOUS) copy(whole(data), to);
    else reorder(to);
    return copy;
  }

  /** The bytes that a tensor has, and no more. */
  private static ByteBuffer contents(org.pinnace.Tensor tensor) {
    return tensor.buffer().slice().order(ByteOrder.nativeOrder());
  }

  private static void copy(Buffer from, Buffer to) {
    if (from instanceof ByteBuffer) ((ByteBuffer) to).put((ByteBuffer) from);
    else if (from instanceof ShortBuffer) ((ShortBuffer) to).put((ShortBuffer) from);
    else if (from instanceof IntBuffer) ((IntBuffer) to).put((IntBuffer) from);
    else if (from instanceof LongBuffer) ((LongBuffer) to).put((LongBuffer) from);
    else if (from instanceof FloatBuffer) ((FloatBuffer) to).put((FloatBuffer) from);
    else ((DoubleBuffer) to).put((DoubleBuffer) from);
  }

  /** From channels last to contiguous: each image is a matrix [pixels, channels] that is transposed. */
  private void reorder(Buffer to) {
    int images = (int) shape[0];
    int channels = (int) shape[1];
    int pixels = channels == 0 || images == 0 ? 0 : data.capacity() / images / channels;
    Mover mover = mover(data, to);
    for (int n = 0; n < images; ++n) {
      int image = n * channels * pixels;
      for (int c = 0; c < channels; ++c) {
        for (int p = 0; p < pixels; ++p) mover.move(image + p * channels + c, image + c * pixels + p);
      }
    }
  }

  private interface Mover {
    void move(int from, int to);
  }

  private static Mover mover(Buffer from, Buffer to) {
    if (from instanceof ByteBuffer) return (i, o) -> ((ByteBuffer) to).put(o, ((ByteBuffer) from).get(i));
    if (from instanceof ShortBuffer) return (i, o) -> ((ShortBuffer) to).put(o, ((ShortBuffer) from).get(i));
    if (from instanceof IntBuffer) return (i, o) -> ((IntBuffer) to).put(o, ((IntBuffer) from).get(i));
    if (from instanceof LongBuffer) return (i, o) -> ((LongBuffer) to).put(o, ((LongBuffer) from).get(i));
    if (from instanceof FloatBuffer) return (i, o) -> ((FloatBuffer) to).put(o, ((FloatBuffer) from).get(i));
    return (i, o) -> ((DoubleBuffer) to).put(o, ((DoubleBuffer) from).get(i));
  }
}
