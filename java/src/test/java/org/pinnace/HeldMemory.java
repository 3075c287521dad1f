package org.pinnace;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Paths;

/** What the process holds of the machine's memory. */
final class HeldMemory {
  private HeldMemory() {}

  static long bytes() throws IOException {
    String text = new String(Files.readAllBytes(Paths.get("/proc/self/statm")));
    return Long.parseLong(text.split(" ")[1]) * 4096;
  }
}
