package android.media;

import java.nio.ByteBuffer;

/** As much of Android's class as {@code TensorImageUtils} is compiled and tested with; no part of the jar. */
public abstract class Image {
  /** For those who derive from it. */
  protected Image() {}

  /** A constant of {@code ImageFormat}. */
  public abstract int getFormat();

  /** In pixels. */
  public abstract int getWidth();

  /** In pixels. */
  public abstract int getHeight();

  /** Y, U and V. */
  public abstract Plane[] getPlanes();

  /** One of its planes. */
  public abstract static class Plane {
    /** For those who derive from it. */
    protected Plane() {}

    /** Bytes from a row to the next. */
    public abstract int getRowStride();

    /** Bytes from a sample to the next. */
    public abstract int getPixelStride();

    /** The samples. */
    public abstract ByteBuffer getBuffer();
  }
}
