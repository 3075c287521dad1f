package android.graphics;

/** As much of Android's class as {@code TensorImageUtils} is compiled and tested with; no part of the jar. */
public class ImageFormat {
  private ImageFormat() {}

  /** Three planes, of which the last two have half the width and height. */
  public static final int YUV_420_888 = 35;
}
