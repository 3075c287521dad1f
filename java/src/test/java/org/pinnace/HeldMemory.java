package org.pinnace;

import static org.junit.Assert.assertTrue;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Paths;

/** What the process holds of memory; the property {@code pinnace.held} names the library that asks for it. */
final class HeldMemory {
  static {
    System.load(System.getProperty("pinnace.held"));
  }

  private HeldMemory() {}

  /** Bytes of the machine's memory. */
  static long bytes() throws IOException {
    String text = new String(Files.readAllBytes(Paths.get("/proc/self/statm")));
    return Long.parseLong(text.split(" ")[1]) * 4096;
  }

  /** Bytes that the C library has handed out and not got back, to whichever library. */
  private static native long handedOut();

  /** The same once what is garbage has been given back: direct buffers and what nobody closed go after a collection. */
  static long settled() {
    long least = Long.MAX_VALUE;
    for (int same = 0; same < 3; ) {
      System.gc();
      try {
        Thread.sleep(20);
      } catch (InterruptedException e) {
        throw new AssertionError(e);
      }
      long now = handedOut();
      same = now < least - 512 ? 0 : same + 1;
      least = Math.min(least, now);
    }
    return least;
  }

  interface Calls {
    void make(int turn) throws Exception;
  }

  /** What growth is one that does not come from the calls: a JVM compiles, and threads begin. */
  static final long MOST = 48 << 10;
  private static final int WINDOWS = 4;

  /**
   * Makes the calls, and gives by how many bytes what the C library has handed out grows while so many are made. What happens once
   * is left out: where it grows by more than MOST, as many calls are made again. A leak is in each of these windows.
   */
  static long grown(int turns, Calls calls) throws Exception {
    int turn = 0;
    for (; turn < turns / 5; ++turn) calls.make(turn);
    long grown = Long.MAX_VALUE;
    for (int window = 0; window < WINDOWS && grown > MOST; ++window) {
      long before = settled();
      for (int end = turn + turns; turn < end; ++turn) calls.make(turn);
      grown = Math.min(grown, settled() - before);
    }
    return grown;
  }

  static void doesNotGrow(String what, int turns, Calls calls) throws Exception {
    long grown = grown(turns, calls);
    assertTrue(what + ": " + grown + " bytes more of native memory after " + turns + " turns", grown <= MOST);
  }
}
