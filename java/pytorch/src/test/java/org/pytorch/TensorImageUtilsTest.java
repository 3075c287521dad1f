package org.pytorch;

import static org.junit.Assert.assertArrayEquals;
import static org.junit.Assert.assertEquals;
import static org.pinnace.Thrown.thrown;
import static org.pytorch.Thrown.unfit;
import static org.pytorch.Thrown.wrong;

import android.graphics.Bitmap;
import android.graphics.ImageFormat;
import android.media.Image;
import java.nio.ByteBuffer;
import java.nio.FloatBuffer;
import org.junit.Test;
import org.pytorch.torchvision.TensorImageUtils;

/** Pictures as tensors. */
public class TensorImageUtilsTest {
  private static final float[] NO_MEAN = {0, 0, 0};
  private static final float[] BYTES = {1 / 255f, 1 / 255f, 1 / 255f}; // the elements are 0 to 255
  private static final MemoryFormat LAST = MemoryFormat.CHANNELS_LAST;

  /** Three columns and two rows: red is 10 row + column, green 100 more, blue 200. */
  private static Bitmap bitmap() {
    int[] colors = new int[6];
    for (int i = 0; i < 6; ++i) {
      int value = 10 * (i / 3) + i % 3;
      colors[i] = 0xff000000 | value << 16 | (value + 100) << 8 | (value + 200);
    }
    return Bitmap.createBitmap(colors, 3, 2, Bitmap.Config.ARGB_8888);
  }

  private static void is(MemoryFormat format, long height, long width, float[] wanted, Tensor tensor) {
    assertArrayEquals(new long[] {1, 3, height, width}, tensor.shape());
    assertEquals(format, tensor.memoryFormat());
    assertArrayEquals(wanted, tensor.getDataAsFloatArray(), 1e-3f);
  }

  @Test
  public void bitmaps() {
    float[] planes = {0, 1, 2, 10, 11, 12, 100, 101, 102, 110, 111, 112, 200, 201, 202, 210, 211, 212};
    float[] pixels = {0, 100, 200, 1, 101, 201, 2, 102, 202, 10, 110, 210, 11, 111, 211, 12, 112, 212};
    is(MemoryFormat.CONTIGUOUS, 2, 3, planes, TensorImageUtils.bitmapToFloat32Tensor(bitmap(), NO_MEAN, BYTES));
    is(LAST, 2, 3, pixels, TensorImageUtils.bitmapToFloat32Tensor(bitmap(), NO_MEAN, BYTES, LAST));
    float[] area = {11, 12, 111, 112, 211, 212};
    is(MemoryFormat.CONTIGUOUS, 1, 2, area, TensorImageUtils.bitmapToFloat32Tensor(bitmap(), 1, 1, 2, 1, NO_MEAN, BYTES));
    float[] areaLast = {11, 111, 211, 12, 112, 212};
    is(LAST, 1, 2, areaLast, TensorImageUtils.bitmapToFloat32Tensor(bitmap(), 1, 1, 2, 1, NO_MEAN, BYTES, LAST));
    FloatBuffer buffer = FloatBuffer.allocate(13);
    buffer.position(5);
    TensorImageUtils.bitmapToFloatBuffer(bitmap(), 1, 1, 2, 1, NO_MEAN, BYTES, buffer, 0);
    TensorImageUtils.bitmapToFloatBuffer(bitmap(), 1, 1, 2, 1, NO_MEAN, BYTES, buffer, 7, LAST);
    assertEquals(5, buffer.position());
    assertArrayEquals(new float[] {11, 12, 111, 112, 211, 212, 0, 11, 111, 211, 12, 112, 212}, buffer.array(), 1e-3f);
  }

  @Test
  public void normalises() {
    float[] mean = TensorImageUtils.TORCHVISION_NORM_MEAN_RGB;
    float[] std = TensorImageUtils.TORCHVISION_NORM_STD_RGB;
    assertArrayEquals(new float[] {0.485f, 0.456f, 0.406f}, mean, 0);
    assertArrayEquals(new float[] {0.229f, 0.224f, 0.225f}, std, 0);
    float[] data = TensorImageUtils.bitmapToFloat32Tensor(bitmap(), mean, std).getDataAsFloatArray();
    assertEquals((0 / 255f - 0.485f) / 0.229f, data[0], 0);
    assertEquals((101 / 255f - 0.456f) / 0.224f, data[7], 0);
    assertEquals((212 / 255f - 0.406f) / 0.225f, data[17], 0);
  }

  @Test
  public void refusesWhatDoesNotFit() {
    Bitmap good = bitmap();
    FloatBuffer small = FloatBuffer.allocate(18);
    wrong("bitmap is null", () -> TensorImageUtils.bitmapToFloat32Tensor(null, NO_MEAN, BYTES));
    wrong("mean has not 3 numbers: [1.0]", () -> TensorImageUtils.bitmapToFloat32Tensor(good, new float[] {1}, BYTES));
    wrong("std has not 3 numbers: null", () -> TensorImageUtils.bitmapToFloat32Tensor(good, NO_MEAN, null));
    wrong("not CHANNELS_LAST_3D",
        () -> TensorImageUtils.bitmapToFloat32Tensor(good, NO_MEAN, BYTES, MemoryFormat.CHANNELS_LAST_3D));
    wrong("not null", () -> TensorImageUtils.bitmapToFloat32Tensor(good, NO_MEAN, BYTES, null));
    wrong("no image of 0 by 2 pixels", () -> TensorImageUtils.bitmapToFloat32Tensor(good, 0, 0, 0, 2, NO_MEAN, BYTES));
    wrong("buffer is null", () -> TensorImageUtils.bitmapToFloatBuffer(good, 0, 0, 3, 2, NO_MEAN, BYTES, null, 0));
    unfit("has 18 elements, needs 18 from 1 on",
        () -> TensorImageUtils.bitmapToFloatBuffer(good, 0, 0, 3, 2, NO_MEAN, BYTES, small, 1));
    unfit("from -1 on", () -> TensorImageUtils.bitmapToFloatBuffer(good, 0, 0, 3, 2, NO_MEAN, BYTES, small, -1));
    try {
      TensorImageUtils.bitmapToFloat32Tensor(good, 2, 0, 3, 2, NO_MEAN, BYTES);
      throw new AssertionError("an area beyond the bitmap");
    } catch (IllegalArgumentException e) {
      // of the bitmap itself
    }
    wrong("image is null", () -> TensorImageUtils.imageYUV420CenterCropToFloat32Tensor(null, 0, 1, 1, NO_MEAN, BYTES));
    wrong("45 degrees", () -> TensorImageUtils.imageYUV420CenterCropToFloat32Tensor(new Camera(4, 2), 45, 1, 1, NO_MEAN, BYTES));
    wrong("no image of 1 by 0",
        () -> TensorImageUtils.imageYUV420CenterCropToFloat32Tensor(new Camera(4, 2), 0, 1, 0, NO_MEAN, BYTES));
    Camera other = new Camera(4, 2);
    other.format = 256;
    thrown(IllegalArgumentException.class, "the format 256",
        () -> TensorImageUtils.imageYUV420CenterCropToFloat32Tensor(other, 0, 1, 1, NO_MEAN, BYTES));
  }

  /** A grey picture, of which the pixel (x, y) has the light 16 + 20 (4 y + x), and where colours can be set. */
  private static final class Camera extends Image {
    private static final class Samples extends Plane {
      final ByteBuffer bytes;
      final int row;
      final int pixel;

      Samples(int width, int height, int pixel) {
        this.pixel = pixel;
        row = width * pixel + 3; // rows may be padded
        bytes = ByteBuffer.allocateDirect(row * height);
      }

      void set(int x, int y, int value) {
        bytes.put(y * row + x * pixel, (byte) value);
      }

      @Override
      public int getRowStride() {
        return row;
      }

      @Override
      public int getPixelStride() {
        return pixel;
      }

      @Override
      public ByteBuffer getBuffer() {
        return bytes;
      }
    }

    final int width;
    final int height;
    final Samples[] planes;
    int format = ImageFormat.YUV_420_888;

    Camera(int width, int height) {
      this.width = width;
      this.height = height;
      planes = new Samples[] {
        new Samples(width, height, 1), new Samples(width / 2, height / 2, 2), new Samples(width / 2, height / 2, 2)
      };
      for (int y = 0; y < height; ++y) {
        for (int x = 0; x < width; ++x) planes[0].set(x, y, light(x, y));
      }
      fill(1, 128);
      fill(2, 128);
    }

    static int light(int x, int y) {
      return 16 + 20 * (4 * y + x);
    }

    void fill(int plane, int value) {
      for (int y = 0; y < height / 2; ++y) {
        for (int x = 0; x < width / 2; ++x) planes[plane].set(x, y, value);
      }
    }

    @Override
    public int getFormat() {
      return format;
    }

    @Override
    public int getWidth() {
      return width;
    }

    @Override
    public int getHeight() {
      return height;
    }

    @Override
    public Plane[] getPlanes() {
      return planes;
    }
  }

  /** The red plane of a camera's grey picture, as the places 4 y + x of the pixels that it is made of. */
  private static int[] places(int turn, int width, int height) {
    Tensor tensor = TensorImageUtils.imageYUV420CenterCropToFloat32Tensor(new Camera(4, 2), turn, width, height, NO_MEAN, BYTES);
    float[] data = tensor.getDataAsFloatArray();
    int[] places = new int[width * height];
    for (int i = 0; i < places.length; ++i) {
      assertEquals(data[i], data[i + places.length], 1e-3f);
      assertEquals(data[i], data[i + 2 * places.length], 1e-3f);
      places[i] = Math.round(data[i] * 219 / 255 / 20);
    }
    return places;
  }

  @Test
  public void cameras() {
    assertArrayEquals(new int[] {0, 1, 2, 3, 4, 5, 6, 7}, places(0, 4, 2));
    assertArrayEquals(new int[] {4, 0, 5, 1, 6, 2, 7, 3}, places(90, 2, 4)); // what was at the left is at the top
    assertArrayEquals(new int[] {7, 6, 5, 4, 3, 2, 1, 0}, places(180, 4, 2));
    assertArrayEquals(new int[] {3, 7, 2, 6, 1, 5, 0, 4}, places(270, 2, 4));
    assertArrayEquals(new int[] {1, 2, 5, 6}, places(0, 2, 2)); // the middle
    assertArrayEquals(new int[] {5, 1, 6, 2}, places(90, 2, 2));
    assertArrayEquals(new int[] {1, 1, 2, 2, 1, 1, 2, 2, 5, 5, 6, 6, 5, 5, 6, 6}, places(0, 4, 4)); // nearest
    FloatBuffer buffer = FloatBuffer.allocate(25);
    TensorImageUtils.imageYUV420CenterCropToFloatBuffer(new Camera(4, 2), 0, 2, 2, NO_MEAN, BYTES, buffer, 0);
    TensorImageUtils.imageYUV420CenterCropToFloatBuffer(new Camera(4, 2), 0, 2, 2, NO_MEAN, BYTES, buffer, 13, LAST);
    assertEquals(buffer.get(1), buffer.get(13 + 3), 0);
    assertEquals(LAST,
        TensorImageUtils.imageYUV420CenterCropToFloat32Tensor(new Camera(4, 2), 0, 2, 2, NO_MEAN, BYTES, LAST).memoryFormat());
  }

  @Test
  public void coloursOfCameras() {
    int[][] rows = { // y, u, v, and red, green, blue, by the matrix of BT.601
      {16, 128, 128, 0, 0, 0}, {235, 128, 128, 255, 255, 255}, {81, 90, 240, 255, 0, 0}, {145, 54, 34, 0, 255, 1},
      {41, 240, 110, 0, 0, 255}, {0, 128, 128, 0, 0, 0}, {255, 128, 128, 255, 255, 255}
    };
    for (int[] row : rows) {
      Camera camera = new Camera(2, 2);
      for (int i = 0; i < 4; ++i) camera.planes[0].set(i % 2, i / 2, row[0]);
      camera.fill(1, row[1]);
      camera.fill(2, row[2]);
      float[] data =
          TensorImageUtils.imageYUV420CenterCropToFloat32Tensor(camera, 0, 1, 1, NO_MEAN, BYTES).getDataAsFloatArray();
      assertArrayEquals(new float[] {row[3], row[4], row[5]}, data, 1.5f);
    }
  }
}
