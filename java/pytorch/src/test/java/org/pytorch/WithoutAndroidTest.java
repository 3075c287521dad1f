package org.pytorch;

import static org.junit.Assert.assertArrayEquals;
import static org.pinnace.Thrown.thrown;
import static org.pytorch.Thrown.file;

import org.junit.Test;

/** Without Android's classes on the class path, everything but what takes them. */
public class WithoutAndroidTest {
  @Test
  public void loadsAndRuns() {
    thrown(ClassNotFoundException.class, "AssetManager", () -> Class.forName("android.content.res.AssetManager"));
    PyTorchAndroid.setNumThreads(1);
    for (Module module : new Module[] {Module.load(file("counter.pnc")), LiteModuleLoader.load(file("counter.pnc"))}) {
      Tensor input = Tensor.fromBlob(new float[] {1, 2, 3}, new long[] {1, 3});
      assertArrayEquals(new float[] {3, 5, 7}, module.forward(IValue.from(input)).toTensor().getDataAsFloatArray(), 0);
      module.destroy();
    }
  }
}
