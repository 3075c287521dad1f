package org.pytorch;

import android.content.res.AssetManager;
import java.io.ByteArrayOutputStream;
import java.io.IOException;
import java.io.InputStream;
import java.nio.ByteBuffer;
import java.util.Map;

/** Loads modules as {@link Module#load(String)} does: PyTorch's two formats of files are one, {@code .pnc}, here. */
public class LiteModuleLoader {
  private LiteModuleLoader() {}

  /** As {@link Module#load(String, Map, Device)}. */
  public static Module load(String modelPath, Map<String, String> extraFiles, Device device) {
    return Module.load(modelPath, extraFiles, device);
  }

  /** As {@link Module#load(String)}. */
  public static Module load(String modelPath) {
    return Module.load(modelPath);
  }

  /**
   * Loads the {@code .pnc} file that is an asset of an Android package, into memory: a file on disk, which is mapped, takes
   * less. There is no {@code AssetManager} on other JVMs, and so no way to call it.
   *
   * @throws IllegalArgumentException an argument is null; there is no such asset; or it is another file than a {@code .pnc},
   *     in which case the sentence has the command that converts it.
   */
  public static Module loadModuleFromAsset(AssetManager assetManager, String assetName, Device device) {
    if (assetManager == null) throw new IllegalArgumentException("the asset manager is null");
    if (assetName == null) throw new IllegalArgumentException("the asset's name is null");
    return new Module(assetName, read(assetManager, assetName), device);
  }

  /** The same, for the CPU. */
  public static Module loadModuleFromAsset(AssetManager assetManager, String assetName) {
    return loadModuleFromAsset(assetManager, assetName, Device.CPU);
  }

  private static ByteBuffer read(AssetManager assets, String name) {
    try (InputStream in = assets.open(name)) {
      ByteArrayOutputStream all = new ByteArrayOutputStream();
      byte[] part = new byte[1 << 16];
      for (int bytes; (bytes = in.read(part)) > 0; ) all.write(part, 0, bytes);
      return ByteBuffer.wrap(all.toByteArray());
    } catch (IOException e) {
      throw new IllegalArgumentException("the asset '" + name + "' cannot be read: " + e.getMessage(), e);
    }
  }
}
