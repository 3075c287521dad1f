package android.graphics;

/** As much of Android's class as {@code TensorImageUtils} is compiled and tested with; no part of the jar. */
public final class Bitmap {
  private final int width;
  private final int height;
  private final int[] colors;

  private Bitmap(int[] colors, int width, int height) {
    this.colors = colors.clone();
    this.width = width;
    this.height = height;
  }

  /** How pixels lie in memory. */
  public enum Config {
    /** 8 bits each of alpha, red, green and blue. */
    ARGB_8888
  }

  /** Of colours 0xAARRGGBB, row by row. */
  public static Bitmap createBitmap(int[] colors, int width, int height, Config config) {
    if (colors.length < width * height) throw new ArrayIndexOutOfBoundsException();
    return new Bitmap(colors, width, height);
  }

  /** In pixels. */
  public int getWidth() {
    return width;
  }

  /** In pixels. */
  public int getHeight() {
    return height;
  }

  /** Copies colours 0xAARRGGBB of an area. */
  public void getPixels(int[] pixels, int offset, int stride, int x, int y, int width, int height) {
    if (x < 0 || y < 0 || x + width > this.width || y + height > this.height) throw new IllegalArgumentException();
    for (int row = 0; row < height; ++row) {
      System.arraycopy(colors, (y + row) * this.width + x, pixels, offset + row * stride, width);
    }
  }
}
