package org.pytorch;

import static org.junit.Assert.assertArrayEquals;
import static org.junit.Assert.assertEquals;
import static org.junit.Assert.assertSame;
import static org.junit.Assert.assertTrue;
import static org.pytorch.Thrown.unfit;
import static org.pytorch.Thrown.wrong;

import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.nio.DoubleBuffer;
import java.nio.FloatBuffer;
import java.nio.IntBuffer;
import java.nio.LongBuffer;
import java.nio.ShortBuffer;
import org.junit.Test;

/** Tensors without a model. */
public class TensorTest {
  private static final long[] TWO = {1, 2};
  private static final long[] IMAGE = {1, 2, 1, 1};
  private static final long[] VOLUME = {1, 2, 1, 1, 1};
  private static final MemoryFormat LAST = MemoryFormat.CHANNELS_LAST;

  private static void is(DType dtype, long[] shape, MemoryFormat format, Tensor tensor) {
    assertEquals(dtype, tensor.dtype());
    assertArrayEquals(shape, tensor.shape());
    assertEquals(format, tensor.memoryFormat());
    assertEquals(2, tensor.numel());
    assertTrue(tensor.getRawDataBuffer().isDirect());
    assertEquals(2, tensor.getRawDataBuffer().capacity());
  }

  private static void is(DType dtype, Tensor plain, Tensor image) {
    is(dtype, TWO, MemoryFormat.CONTIGUOUS, plain);
    is(dtype, IMAGE, LAST, image);
  }

  @Test
  public void takesArrays() {
    byte[] bytes = {1, -1};
    is(DType.UINT8, Tensor.fromBlobUnsigned(bytes, TWO), Tensor.fromBlobUnsigned(bytes, IMAGE, LAST));
    assertArrayEquals(bytes, Tensor.fromBlobUnsigned(bytes, TWO).getDataAsUnsignedByteArray());
    is(DType.INT8, Tensor.fromBlob(bytes, TWO), Tensor.fromBlob(bytes, IMAGE, LAST));
    assertArrayEquals(bytes, Tensor.fromBlob(bytes, TWO).getDataAsByteArray());
    int[] ints = {1, Integer.MIN_VALUE};
    is(DType.INT32, Tensor.fromBlob(ints, TWO), Tensor.fromBlob(ints, IMAGE, LAST));
    assertArrayEquals(ints, Tensor.fromBlob(ints, IMAGE, LAST).getDataAsIntArray());
    float[] floats = {1.5f, -0.0f};
    is(DType.FLOAT32, Tensor.fromBlob(floats, TWO), Tensor.fromBlob(floats, IMAGE, LAST));
    assertArrayEquals(floats, Tensor.fromBlob(floats, TWO).getDataAsFloatArray(), 0);
    long[] longs = {1, Long.MIN_VALUE};
    is(DType.INT64, Tensor.fromBlob(longs, TWO), Tensor.fromBlob(longs, IMAGE, LAST));
    assertArrayEquals(longs, Tensor.fromBlob(longs, TWO).getDataAsLongArray());
    double[] doubles = {1.5, 1e300};
    is(DType.FLOAT64, Tensor.fromBlob(doubles, TWO), Tensor.fromBlob(doubles, IMAGE, LAST));
    is(DType.FLOAT64, TWO, MemoryFormat.CONTIGUOUS, Tensor.fromBlob(TWO, doubles));
    assertArrayEquals(doubles, Tensor.fromBlob(TWO, doubles).getDataAsDoubleArray(), 0);
    short[] halves = {0x3c00, (short) 0xc000};
    is(DType.HALF, Tensor.fromBlob(halves, TWO), Tensor.fromBlob(halves, IMAGE, LAST));
    assertArrayEquals(halves, Tensor.fromBlob(halves, TWO).getDataAsShortArray());
    floats[0] = 9; // a copy was taken, and a copy is given
    Tensor tensor = Tensor.fromBlob(floats, TWO);
    floats[0] = 8;
    tensor.getDataAsFloatArray()[0] = 7;
    tensor.shape()[0] = 5;
    assertEquals(9, tensor.getDataAsFloatArray()[0], 0);
    assertArrayEquals(TWO, tensor.shape());
  }

  @Test
  public void keepsDirectBuffers() {
    ByteBuffer bytes = Tensor.allocateByteBuffer(2);
    is(DType.UINT8, Tensor.fromBlobUnsigned(bytes, TWO), Tensor.fromBlobUnsigned(bytes, IMAGE, LAST));
    is(DType.INT8, Tensor.fromBlob(bytes, TWO), Tensor.fromBlob(bytes, IMAGE, LAST));
    Tensor tensor = Tensor.fromBlob(bytes, TWO);
    bytes.put((byte) 3).put((byte) 4); // its position is of no account
    assertArrayEquals(new byte[] {3, 4}, tensor.getDataAsByteArray());
    assertEquals(2, bytes.position());
    assertSame(bytes, tensor.getRawDataBuffer());
    IntBuffer ints = Tensor.allocateIntBuffer(2);
    is(DType.INT32, Tensor.fromBlob(ints, TWO), Tensor.fromBlob(ints, IMAGE, LAST));
    ints.put(1, 5);
    assertArrayEquals(new int[] {0, 5}, Tensor.fromBlob(ints, TWO).getDataAsIntArray());
    FloatBuffer floats = Tensor.allocateFloatBuffer(2);
    is(DType.FLOAT32, Tensor.fromBlob(floats, TWO), Tensor.fromBlob(floats, IMAGE, LAST));
    floats.put(1, 5);
    assertArrayEquals(new float[] {0, 5}, Tensor.fromBlob(floats, TWO).getDataAsFloatArray(), 0);
    LongBuffer longs = Tensor.allocateLongBuffer(2);
    is(DType.INT64, Tensor.fromBlob(longs, TWO), Tensor.fromBlob(longs, IMAGE, LAST));
    longs.put(1, 5);
    assertArrayEquals(new long[] {0, 5}, Tensor.fromBlob(longs, TWO).getDataAsLongArray());
    DoubleBuffer doubles = Tensor.allocateDoubleBuffer(2);
    is(DType.FLOAT64, Tensor.fromBlob(doubles, TWO), Tensor.fromBlob(doubles, IMAGE, LAST));
    doubles.put(1, 5);
    assertArrayEquals(new double[] {0, 5}, Tensor.fromBlob(doubles, TWO).getDataAsDoubleArray(), 0);
    ShortBuffer halves = Tensor.allocateHalfBuffer(2);
    is(DType.HALF, Tensor.fromBlob(halves, TWO), Tensor.fromBlob(halves, IMAGE, LAST));
    halves.put(1, (short) 5);
    assertArrayEquals(new short[] {0, 5}, Tensor.fromBlob(halves, TWO).getDataAsShortArray());
    assertEquals(MemoryFormat.CHANNELS_LAST_3D,
        Tensor.fromBlob(floats, VOLUME, MemoryFormat.CHANNELS_LAST_3D).memoryFormat());
  }

  @Test
  public void describesItself() {
    assertEquals("Tensor([1, 2], dtype=torch.float32)", Tensor.fromBlob(new float[2], TWO).toString());
    assertEquals("Tensor([], dtype=torch.uint8)", Tensor.fromBlobUnsigned(new byte[1], new long[0]).toString());
    assertEquals(1, Tensor.numel(new long[0]));
    assertEquals(0, Tensor.numel(new long[] {1L << 40, 0, 1L << 40}));
    assertEquals(1L << 40, Tensor.numel(new long[] {1L << 20, 1L << 20}));
    assertEquals(0, Tensor.fromBlob(new float[0], new long[] {0, 3}).getDataAsFloatArray().length);
    assertEquals(DType.HALF, DType.valueOf("HALF"));
    assertEquals(7, DType.values().length);
    assertEquals(3, MemoryFormat.values().length);
    assertEquals(MemoryFormat.CONTIGUOUS, MemoryFormat.valueOf("CONTIGUOUS"));
    assertEquals(Device.VULKAN, Device.valueOf("VULKAN"));
    assertEquals(2, Device.values().length);
  }

  @Test
  public void refusesWhatIsNoTensor() {
    wrong("data are null", () -> Tensor.fromBlob((float[]) null, TWO));
    wrong("data are null", () -> Tensor.fromBlob((byte[]) null, TWO));
    wrong("data are null", () -> Tensor.fromBlob((int[]) null, TWO));
    wrong("data are null", () -> Tensor.fromBlob((long[]) null, TWO));
    wrong("data are null", () -> Tensor.fromBlob((double[]) null, TWO));
    wrong("data are null", () -> Tensor.fromBlob((short[]) null, TWO));
    wrong("data are null", () -> Tensor.fromBlobUnsigned((byte[]) null, TWO));
    wrong("data are null", () -> Tensor.fromBlob((FloatBuffer) null, TWO));
    wrong("data are null", () -> Tensor.fromBlobUnsigned((ByteBuffer) null, TWO));
    wrong("shape is null", () -> Tensor.fromBlob(new float[2], null));
    wrong("shape is null", () -> Tensor.numel(null));
    wrong("format is null", () -> Tensor.fromBlob(new float[2], IMAGE, null));
    wrong("[1, -2] has a negative size", () -> Tensor.fromBlob(new float[2], new long[] {1, -2}));
    wrong("has 2 elements, the data have 3", () -> Tensor.fromBlob(new float[3], TWO));
    wrong("has 2 elements, the data have 3", () -> Tensor.fromBlob(Tensor.allocateFloatBuffer(3), TWO));
    wrong("more than 2^63", () -> Tensor.numel(new long[] {1L << 40, 1L << 40}));
    wrong("is not direct", () -> Tensor.fromBlob(FloatBuffer.allocate(2), TWO));
    ByteOrder other = ByteOrder.nativeOrder() == ByteOrder.BIG_ENDIAN ? ByteOrder.LITTLE_ENDIAN : ByteOrder.BIG_ENDIAN;
    wrong(other.toString(), () -> Tensor.fromBlob(ByteBuffer.allocateDirect(8).order(other).asFloatBuffer(), TWO));
    wrong(other.toString(), () -> Tensor.fromBlob(ByteBuffer.allocateDirect(2).order(other), TWO));
    wrong("4 dimensions, the shape is [1, 2]", () -> Tensor.fromBlob(new float[2], TWO, LAST));
    wrong("5 dimensions", () -> Tensor.fromBlob(new float[2], IMAGE, MemoryFormat.CHANNELS_LAST_3D));
    wrong("-1 elements", () -> Tensor.allocateFloatBuffer(-1));
    wrong("bytes", () -> Tensor.allocateDoubleBuffer(1 << 30));
  }

  @Test
  public void givesItsOwnTypeAlone() {
    Tensor floats = Tensor.fromBlob(new float[2], TWO);
    unfit("float32) has no elements of int8", floats::getDataAsByteArray);
    unfit("has no elements of uint8", floats::getDataAsUnsignedByteArray);
    unfit("has no elements of int32", floats::getDataAsIntArray);
    unfit("has no elements of int64", floats::getDataAsLongArray);
    unfit("has no elements of float64", floats::getDataAsDoubleArray);
    unfit("has no elements of float16", floats::getDataAsShortArray);
    unfit("has no elements of float32", Tensor.fromBlob(new int[2], TWO)::getDataAsFloatArray);
    unfit("has no elements of int8", Tensor.fromBlobUnsigned(new byte[2], TWO)::getDataAsByteArray);
  }
}
