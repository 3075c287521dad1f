package org.pytorch;

import static org.pinnace.Thrown.thrown;

import java.io.File;
import org.pinnace.Thrown.Calls;

/** What the tests have in common. */
final class Thrown {
  private Thrown() {}

  static void wrong(String words, Calls calls) {
    thrown(IllegalArgumentException.class, words, calls);
  }

  static void unfit(String words, Calls calls) {
    thrown(IllegalStateException.class, words, calls);
  }

  static String file(String name) {
    return new File(new File(System.getProperty("pinnace.tests"), "pytorch"), name).getPath();
  }
}
