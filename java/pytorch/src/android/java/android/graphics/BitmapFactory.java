package android.graphics;

import java.awt.image.BufferedImage;
import java.io.IOException;
import java.io.InputStream;
import javax.imageio.ImageIO;

/** As much of Android's class as programs in the tests use; no part of the jar. */
public class BitmapFactory {
  private BitmapFactory() {}

  /** Null: it is no image. */
  public static Bitmap decodeStream(InputStream in) {
    try {
      BufferedImage image = ImageIO.read(in);
      if (image == null) return null;
      int width = image.getWidth();
      int[] colors = image.getRGB(0, 0, width, image.getHeight(), null, 0, width);
      return Bitmap.createBitmap(colors, width, image.getHeight(), Bitmap.Config.ARGB_8888);
    } catch (IOException e) {
      return null;
    }
  }
}
