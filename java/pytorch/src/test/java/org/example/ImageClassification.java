package org.example;

import android.graphics.Bitmap;
import android.graphics.BitmapFactory;
import java.io.FileInputStream;
import java.io.IOException;
import java.io.InputStream;
import org.pytorch.IValue;
import org.pytorch.LiteModuleLoader;
import org.pytorch.MemoryFormat;
import org.pytorch.Module;
import org.pytorch.Tensor;
import org.pytorch.torchvision.TensorImageUtils;

/** An application of PyTorch Mobile: loads a model, has it classify a picture, and prints the class with the highest score. */
public class ImageClassification {
  private ImageClassification() {}

  /** The scores of each class. */
  public static float[] scores(Module module, Bitmap bitmap) {
    Tensor input = TensorImageUtils.bitmapToFloat32Tensor(bitmap, TensorImageUtils.TORCHVISION_NORM_MEAN_RGB,
        TensorImageUtils.TORCHVISION_NORM_STD_RGB, MemoryFormat.CHANNELS_LAST);
    Tensor output = module.forward(IValue.from(input)).toTensor();
    return output.getDataAsFloatArray();
  }

  /** The class with the highest score. */
  public static int best(float[] scores) {
    int best = 0;
    for (int i = 1; i < scores.length; ++i) {
      if (scores[i] > scores[best]) best = i;
    }
    return best;
  }

  /** {@code ImageClassification MODEL PICTURE}. */
  public static void main(String[] arguments) throws IOException {
    Module module = LiteModuleLoader.load(arguments[0]);
    try (InputStream picture = new FileInputStream(arguments[1])) {
      Bitmap bitmap = BitmapFactory.decodeStream(picture);
      System.out.println("class " + best(scores(module, bitmap)));
    }
    module.destroy();
  }
}
