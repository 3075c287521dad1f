package org.pytorch;

import java.io.File;
import java.io.IOException;
import java.io.RandomAccessFile;
import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;
import java.util.Locale;
import org.pinnace.PinnaceException;

/** What is said of files that are no .pnc. */
final class Conversion {
  private static final String PNC = "\u0089PNC\r\n\u001a\n";
  private static final String ZIP = "PK\u0003\u0004";
  private static final int HEAD = 8;
  private static final int TAIL = 1 << 20; // a zip archive's list of names is at its end

  private Conversion() {}

  /** The failure of opening a file, or of these bytes where there is no file. */
  static RuntimeException refusal(String path, ByteBuffer bytes, PinnaceException.CorruptFile failure) {
    String head;
    String tail;
    if (bytes != null) {
      head = text(bytes, 0, HEAD);
      tail = text(bytes, bytes.capacity() - TAIL, TAIL);
    } else {
      try (RandomAccessFile file = new RandomAccessFile(path, "r")) {
        head = text(file, 0, HEAD);
        tail = text(file, file.length() - TAIL, TAIL);
      } catch (IOException e) {
        return failure;
      }
    }
    if (head.equals(PNC)) return failure; // a damaged one
    return new IllegalArgumentException(sentence(new File(path).getName(), head, tail), failure);
  }

  private static String text(ByteBuffer bytes, int from, int length) {
    int begin = Math.max(0, from);
    return new String(bytes.array(), begin, Math.min(length, bytes.capacity() - begin), StandardCharsets.ISO_8859_1);
  }

  private static String text(RandomAccessFile file, long from, int length) throws IOException {
    long begin = Math.max(0, from);
    byte[] part = new byte[(int) Math.min(length, file.length() - begin)];
    file.seek(begin);
    file.readFully(part);
    return new String(part, StandardCharsets.ISO_8859_1);
  }

  private static String sentence(String name, String head, String tail) {
    String small = name.toLowerCase(Locale.ROOT);
    int dot = name.lastIndexOf('.');
    String command = "pinnace convert " + name + " -o " + (dot > 0 ? name.substring(0, dot) : name) + ".pnc";
    // torch.jit.save() and _save_for_lite_interpreter() write constants.pkl; torch.save() does not.
    if (head.startsWith(ZIP) && tail.contains("/constants.pkl")) {
      return "'" + name + "' is TorchScript; convert it where Python is, and load the .pnc: " + command + " --input x.npy"
          + " (x.npy: an example of its input, written by numpy.save; one more --input for each further input)";
    }
    if (small.endsWith(".onnx") || small.endsWith(".pt2")) {
      return "'" + name + "' is no .pnc file; convert it where Python is, and load the .pnc: " + command;
    }
    if (head.startsWith("ET", 4)) {
      return "'" + name + "' is a program of ExecuTorch, which cannot be converted; convert the model that it was made of:"
          + " pinnace convert MODEL -o net.pnc";
    }
    return "'" + name + "' is no .pnc file, which is made of a model (.ptl, .pt, .pt2 or .onnx):"
        + " pinnace convert MODEL -o net.pnc";
  }
}
