package org.pytorch;

/** Loads PyTorch's library of selected operators; pinnace has none, so that there is nothing to load. */
public class PyTorchCodegenLoader {
  private PyTorchCodegenLoader() {}

  /** Does nothing: pinnace's library has all operators, or those that it was built with. */
  public static void loadNativeLibs() {}
}
