package org.pytorch;

import android.content.res.AssetManager;

/** What concerns all modules, and modules that are assets of an Android package. */
public final class PyTorchAndroid {
  private static volatile int threads = 0;

  private PyTorchAndroid() {}

  /** As {@link LiteModuleLoader#loadModuleFromAsset(AssetManager, String, Device)}. */
  public static Module loadModuleFromAsset(AssetManager assetManager, String assetName, Device device) {
    return LiteModuleLoader.loadModuleFromAsset(assetManager, assetName, device);
  }

  /** The same, for the CPU. */
  public static Module loadModuleFromAsset(AssetManager assetManager, String assetName) {
    return LiteModuleLoader.loadModuleFromAsset(assetManager, assetName);
  }

  /**
   * Sets how many threads a run may use, the caller's included, for every module of the process. Those that are loaded already
   * take it up with their next run. Unless it is called, a run uses as many as the process may use processors.
   *
   * @throws IllegalArgumentException the number is below 1.
   */
  public static void setNumThreads(int numThreads) {
    if (numThreads < 1) throw new IllegalArgumentException("a run cannot use " + numThreads + " threads, needs 1 or more");
    threads = numThreads;
  }

  /** 0: it was not set. */
  static int threads() {
    return threads;
  }
}
