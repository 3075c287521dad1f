package org.pytorch.torchvision;

import android.graphics.Bitmap;
import android.graphics.ImageFormat;
import android.media.Image;
import java.nio.ByteBuffer;
import java.nio.FloatBuffer;
import java.util.Arrays;
import org.pytorch.MemoryFormat;
import org.pytorch.Tensor;

/**
 * Tensors of Android's pictures: float32 of the shape [1, 3, height, width], with the channels red, green and blue, each {@code
 * (value / 255 - mean) / std}. Alpha is left out.
 *
 * <p>Android's classes are not part of the jar: what runs elsewhere brings classes of these names, or does without these methods.
 *
 * <p>Every method throws {@link IllegalArgumentException} where an argument is null, mean or std has not three numbers, or the
 * memory format is not that of an image; those with a buffer throw {@link IllegalStateException} where it is too small.
 */
public final class TensorImageUtils {
  /** The mean of red, green and blue that torchvision's models for ImageNet are trained with. */
  public static float[] TORCHVISION_NORM_MEAN_RGB = {0.485f, 0.456f, 0.406f};

  /** Their standard deviation. */
  public static float[] TORCHVISION_NORM_STD_RGB = {0.229f, 0.224f, 0.225f};

  private TensorImageUtils() {}

  // ---- bitmaps ------------------------------------------------------------------------------------------------------

  /** Of a whole bitmap. */
  public static Tensor bitmapToFloat32Tensor(Bitmap bitmap, float[] normMeanRGB, float[] normStdRGB) {
    return bitmapToFloat32Tensor(bitmap, normMeanRGB, normStdRGB, MemoryFormat.CONTIGUOUS);
  }

  /** The same in a memory format. */
  public static Tensor bitmapToFloat32Tensor(
      Bitmap bitmap, float[] normMeanRGB, float[] normStdRGB, MemoryFormat memoryFormat) {
    need(bitmap, "the bitmap");
    return bitmapToFloat32Tensor(
        bitmap, 0, 0, bitmap.getWidth(), bitmap.getHeight(), normMeanRGB, normStdRGB, memoryFormat);
  }

  /** Of the area of a bitmap that begins at (x, y). Android throws where it is not inside. */
  public static Tensor bitmapToFloat32Tensor(
      Bitmap bitmap, int x, int y, int width, int height, float[] normMeanRGB, float[] normStdRGB) {
    return bitmapToFloat32Tensor(bitmap, x, y, width, height, normMeanRGB, normStdRGB, MemoryFormat.CONTIGUOUS);
  }

  /** The same in a memory format. */
  public static Tensor bitmapToFloat32Tensor(Bitmap bitmap, int x, int y, int width, int height, float[] normMeanRGB,
      float[] normStdRGB, MemoryFormat memoryFormat) {
    FloatBuffer buffer = Tensor.allocateFloatBuffer(size(width, height));
    bitmapToFloatBuffer(bitmap, x, y, width, height, normMeanRGB, normStdRGB, buffer, 0, memoryFormat);
    return Tensor.fromBlob(buffer, new long[] {1, 3, height, width}, memoryFormat);
  }

  /** Writes the elements of such a tensor into a buffer, from an offset on. The buffer's position stays. */
  public static void bitmapToFloatBuffer(Bitmap bitmap, int x, int y, int width, int height, float[] normMeanRGB,
      float[] normStdRGB, FloatBuffer outBuffer, int outBufferOffset) {
    bitmapToFloatBuffer(bitmap, x, y, width, height, normMeanRGB, normStdRGB, outBuffer, outBufferOffset,
        MemoryFormat.CONTIGUOUS);
  }

  /** The same in a memory format. */
  public static void bitmapToFloatBuffer(Bitmap bitmap, int x, int y, int width, int height, float[] normMeanRGB,
      float[] normStdRGB, FloatBuffer outBuffer, int outBufferOffset, MemoryFormat memoryFormat) {
    need(bitmap, "the bitmap");
    check(normMeanRGB, normStdRGB, memoryFormat);
    checkRoom(outBuffer, outBufferOffset, width, height);
    int[] colors = new int[width * height];
    bitmap.getPixels(colors, 0, width, x, y, width, height);
    write(colors, normMeanRGB, normStdRGB, memoryFormat, outBuffer, outBufferOffset);
  }

  // ---- pictures of a camera -----------------------------------------------------------------------------------------

  /**
   * Of a camera's picture: turned upright, cut to the tensor's proportions around its centre, and scaled by taking the nearest
   * pixel. Y, U and V become colours as ITU-R BT.601 says for values of 16 to 235.
   *
   * @param image of the format {@code ImageFormat.YUV_420_888}, else IllegalArgumentException is thrown.
   * @param rotateCWDegrees how far it is to be turned clockwise: 0, 90, 180 or 270, else IllegalArgumentException is thrown.
   * @param tensorWidth 1 or more.
   * @param tensorHeight 1 or more.
   */
  public static Tensor imageYUV420CenterCropToFloat32Tensor(
      Image image, int rotateCWDegrees, int tensorWidth, int tensorHeight, float[] normMeanRGB, float[] normStdRGB) {
    return imageYUV420CenterCropToFloat32Tensor(
        image, rotateCWDegrees, tensorWidth, tensorHeight, normMeanRGB, normStdRGB, MemoryFormat.CONTIGUOUS);
  }

  /** The same in a memory format. */
  public static Tensor imageYUV420CenterCropToFloat32Tensor(Image image, int rotateCWDegrees, int tensorWidth,
      int tensorHeight, float[] normMeanRGB, float[] normStdRGB, MemoryFormat memoryFormat) {
    FloatBuffer buffer = Tensor.allocateFloatBuffer(size(tensorWidth, tensorHeight));
    imageYUV420CenterCropToFloatBuffer(
        image, rotateCWDegrees, tensorWidth, tensorHeight, normMeanRGB, normStdRGB, buffer, 0, memoryFormat);
    return Tensor.fromBlob(buffer, new long[] {1, 3, tensorHeight, tensorWidth}, memoryFormat);
  }

  /** Writes the elements of such a tensor into a buffer, from an offset on. The buffer's position stays. */
  public static void imageYUV420CenterCropToFloatBuffer(Image image, int rotateCWDegrees, int tensorWidth, int tensorHeight,
      float[] normMeanRGB, float[] normStdRGB, FloatBuffer outBuffer, int outBufferOffset) {
    imageYUV420CenterCropToFloatBuffer(image, rotateCWDegrees, tensorWidth, tensorHeight, normMeanRGB, normStdRGB, outBuffer,
        outBufferOffset, MemoryFormat.CONTIGUOUS);
  }

  /** The same in a memory format. */
  public static void imageYUV420CenterCropToFloatBuffer(Image image, int rotateCWDegrees, int tensorWidth, int tensorHeight,
      float[] normMeanRGB, float[] normStdRGB, FloatBuffer outBuffer, int outBufferOffset, MemoryFormat memoryFormat) {
    need(image, "the image");
    if (image.getFormat() != ImageFormat.YUV_420_888) {
      throw new IllegalArgumentException("the image has the format " + image.getFormat() + ", needs YUV_420_888 (35)");
    }
    if (rotateCWDegrees != 0 && rotateCWDegrees != 90 && rotateCWDegrees != 180 && rotateCWDegrees != 270) {
      throw new IllegalArgumentException("a turn by " + rotateCWDegrees + " degrees, must be 0, 90, 180 or 270");
    }
    check(normMeanRGB, normStdRGB, memoryFormat);
    checkRoom(outBuffer, outBufferOffset, tensorWidth, tensorHeight);
    int[] colors = crop(image, rotateCWDegrees, tensorWidth, tensorHeight);
    write(colors, normMeanRGB, normStdRGB, memoryFormat, outBuffer, outBufferOffset);
  }

  private static int[] crop(Image image, int turn, int width, int height) {
    boolean lying = turn == 90 || turn == 270;
    int fullWidth = lying ? image.getHeight() : image.getWidth(); // of the upright picture
    int fullHeight = lying ? image.getWidth() : image.getHeight();
    double scale = Math.min((double) fullWidth / width, (double) fullHeight / height);
    int left = (int) ((fullWidth - width * scale) / 2);
    int top = (int) ((fullHeight - height * scale) / 2);
    Image.Plane[] planes = image.getPlanes();
    int[] colors = new int[width * height];
    for (int y = 0; y < height; ++y) {
      int row = Math.min(top + (int) (y * scale), fullHeight - 1);
      for (int x = 0; x < width; ++x) {
        int column = Math.min(left + (int) (x * scale), fullWidth - 1);
        int fromX = column;
        int fromY = row;
        if (turn == 90) {
          fromX = row;
          fromY = fullWidth - 1 - column;
        } else if (turn == 180) {
          fromX = fullWidth - 1 - column;
          fromY = fullHeight - 1 - row;
        } else if (turn == 270) {
          fromX = fullHeight - 1 - row;
          fromY = column;
        }
        int light = sample(planes[0], fromX, fromY);
        int blue = sample(planes[1], fromX / 2, fromY / 2);
        int red = sample(planes[2], fromX / 2, fromY / 2);
        colors[y * width + x] = color(light, blue, red);
      }
    }
    return colors;
  }

  private static int sample(Image.Plane plane, int x, int y) {
    ByteBuffer bytes = plane.getBuffer();
    return bytes.get(y * plane.getRowStride() + x * plane.getPixelStride()) & 0xff;
  }

  /** 0xRRGGBB, by the matrix of BT.601. */
  private static int color(int y, int u, int v) {
    double light = 255.0 / 219 * (y - 16);
    double blue = 255.0 / 224 * (u - 128);
    double red = 255.0 / 224 * (v - 128);
    int r = clamp(light + 1.402 * red);
    int g = clamp(light - 0.344136 * blue - 0.714136 * red);
    int b = clamp(light + 1.772 * blue);
    return r << 16 | g << 8 | b;
  }

  private static int clamp(double value) {
    return (int) Math.max(0, Math.min(255, Math.round(value)));
  }

  // ---- both ---------------------------------------------------------------------------------------------------------

  private static void write(
      int[] colors, float[] mean, float[] std, MemoryFormat format, FloatBuffer out, int offset) {
    int pixels = colors.length;
    boolean planes = format == MemoryFormat.CONTIGUOUS;
    float[] elements = new float[3 * pixels];
    for (int p = 0; p < pixels; ++p) {
      for (int c = 0; c < 3; ++c) {
        int value = colors[p] >> (16 - 8 * c) & 0xff;
        elements[planes ? c * pixels + p : 3 * p + c] = (value / 255.0f - mean[c]) / std[c];
      }
    }
    FloatBuffer to = out.duplicate();
    to.clear();
    to.position(offset);
    to.put(elements);
  }

  private static void need(Object given, String what) {
    if (given == null) throw new IllegalArgumentException(what + " is null");
  }

  private static void check(float[] mean, float[] std, MemoryFormat format) {
    if (mean == null || mean.length != 3) throw new IllegalArgumentException("mean has not 3 numbers: " + Arrays.toString(mean));
    if (std == null || std.length != 3) throw new IllegalArgumentException("std has not 3 numbers: " + Arrays.toString(std));
    if (format != MemoryFormat.CONTIGUOUS && format != MemoryFormat.CHANNELS_LAST) {
      throw new IllegalArgumentException("an image is CONTIGUOUS or CHANNELS_LAST, not " + format);
    }
  }

  private static int size(int width, int height) {
    if (width < 1 || height < 1 || (long) width * height > Integer.MAX_VALUE / 3) {
      throw new IllegalArgumentException("there is no image of " + width + " by " + height + " pixels");
    }
    return 3 * width * height;
  }

  private static void checkRoom(FloatBuffer out, int offset, int width, int height) {
    need(out, "the buffer");
    int size = size(width, height);
    if (offset < 0 || (long) offset + size > out.capacity()) {
      throw new IllegalStateException(
          "the buffer has " + out.capacity() + " elements, needs " + size + " from " + offset + " on");
    }
  }
}
