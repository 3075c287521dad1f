package org.pinnace;

import java.io.File;
import java.io.IOException;
import java.io.InputStream;
import java.io.OutputStream;
import java.net.URL;
import java.nio.ByteBuffer;
import java.nio.file.Files;
import java.util.Collections;
import java.util.Locale;
import java.util.jar.Manifest;

/**
 * The functions of {@code pinnace_jni.c}, and where their library is found: the file that the property {@code
 * org.pinnace.library} names, else the one inside the jar, copied to a temporary file, else {@code pinnace_jni} of {@code
 * java.library.path}, which is the one of an Android package.
 *
 * <p>Pointers are those of the C API. A tensor is its address, bytes, dtype, rank and sizes, one after another. Names and
 * lists are {@link Cells}. Every function throws a {@link PinnaceException} where the C API fails.
 */
final class Native {
  static {
    load();
  }

  private Native() {}

  private static void load() {
    String named = System.getProperty("org.pinnace.library");
    if (named != null) {
      System.load(new File(named).getAbsolutePath());
      return;
    }
    String resource = "native/" + platform() + "/libpinnace_jni.so";
    try (InputStream library = Native.class.getResourceAsStream(resource)) {
      if (library == null) {
        loadFromPath();
        return;
      }
      File copy = File.createTempFile("pinnace_jni", ".so");
      try {
        try (OutputStream out = Files.newOutputStream(copy.toPath())) {
          byte[] part = new byte[1 << 16];
          for (int bytes; (bytes = library.read(part)) > 0; ) out.write(part, 0, bytes);
        }
        System.load(copy.getAbsolutePath());
      } finally {
        copy.delete(); // what is mapped stays
      }
    } catch (IOException e) {
      throw new UnsatisfiedLinkError("the library " + resource + " of pinnace's jar cannot be copied: " + e.getMessage());
    }
  }

  /** The one of an Android package, or of a system that brings its own. */
  private static void loadFromPath() throws IOException {
    try {
      System.loadLibrary("pinnace_jni");
    } catch (UnsatisfiedLinkError e) {
      String jar = platforms();
      if (jar == null) throw e;
      throw new UnsatisfiedLinkError("the jar has libraries for " + jar + ", this is " + platform() + "; and " + e.getMessage());
    }
  }

  /** What the manifest of pinnace's jar says that it has libraries for; null: there is no such jar. */
  private static String platforms() throws IOException {
    ClassLoader loader = Native.class.getClassLoader();
    if (loader == null) loader = ClassLoader.getSystemClassLoader();
    for (URL url : Collections.list(loader.getResources("META-INF/MANIFEST.MF"))) {
      try (InputStream in = url.openStream()) {
        String found = new Manifest(in).getMainAttributes().getValue("Native-Platforms");
        if (found != null) return found;
      }
    }
    return null;
  }

  private static String platform() {
    String system = System.getProperty("os.name", "").toLowerCase(Locale.ROOT);
    String processor = System.getProperty("os.arch", "").toLowerCase(Locale.ROOT);
    if (processor.equals("amd64")) processor = "x86_64";
    if (processor.equals("arm64")) processor = "aarch64";
    return system + "-" + processor;
  }

  static native byte[] version();

  static native byte[] devices();

  static native void free(int kind, long pointer);

  static native long openPath(byte[] path, int verify);

  static native long openDescriptor(Object descriptor, long offset, long bytes, int verify);

  static native long openBytes(Object buffer, long offset, long bytes, int verify);

  static native byte[] specs(long program);

  static native byte[] metadata(long program);

  /** The number of streamed inputs, those, and the streamed outputs. */
  static native byte[] streams(long program);

  static native long create(
      long program, byte[][] words, int[] numbers, long[] times, int[] processors, byte[][] keep, long[] ops);

  static native long customOp(byte[] name, int outputs, Object functions);

  /** Names of the outputs. */
  static native byte[] outputs(long session);

  /** {@code owners}: what keeps the tensors' memory during the call. */
  static native void run(long session, Object owners, long[] inputs, int inputCount, long[] outputs, int outputCount,
      long token, long timeoutNs);

  static native byte[] profile(long session, Object owners, long[] inputs, int inputCount, long[] outputs, int outputCount,
      long token, long timeoutNs);

  /** Dtype and sizes of an output of the last run. */
  static native long[] outputType(long session, int index);

  static native void copyOutput(long session, int index, ByteBuffer to);

  static native byte[] placement(long session);

  static native long[] plan(long session);

  static native byte[] precision(long session);

  static native void limitLoops(long session, long limitNs);

  static native void copyState(long session, int index, Object owner, long[] to);

  static native void setState(long session, int index, Object owner, long[] value);

  static native void resetState(long session);

  static native byte[] saveState(long session);

  static native void restoreState(long session, byte[] saved);

  static native long fork(long session);

  /** How many elements along time are left of each output. */
  static native long[] finish(long session, Object owners, long[] inputs, int inputCount, long token, long timeoutNs);

  /** The page, of the kit in the direct buffer or, where that is null, in the file. */
  static native byte[] report(byte[] path, Object buffer, long offset, long bytes, byte[][] targets, double seconds);

  static native long token();

  static native void cancel(long token);

  static native boolean cancelled(long token);

  /** Whether messages of that level and above go to {@link Log#called}; none is under way on return that began before. */
  static native void logTo(boolean wanted, int least);

  static native void logLevel(int least);

  /** The address of a direct buffer's first byte; 0: it is none. */
  static native long address(Object buffer);
}
