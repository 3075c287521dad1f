package android.content.res;

import java.io.File;
import java.io.FileInputStream;
import java.io.IOException;
import java.io.InputStream;

/** As much of Android's class as {@code LiteModuleLoader} is compiled and tested with; no part of the jar. */
public final class AssetManager {
  private final File folder;

  /** With the files of a folder, where Android's has those of a package. */
  public AssetManager(File folder) {
    this.folder = folder;
  }

  /** The contents of an asset. */
  public InputStream open(String fileName) throws IOException {
    return new FileInputStream(new File(folder, fileName));
  }
}
