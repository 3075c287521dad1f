package org.pytorch;

import static org.junit.Assert.assertTrue;
import static org.junit.Assert.fail;

import java.io.File;

/** What the tests have in common. */
final class Thrown {
  interface Calls {
    void make() throws Exception;
  }

  private Thrown() {}

  /** The exception of this kind, with these words, that the calls throw. */
  static <E extends Throwable> E thrown(Class<E> kind, String words, Calls calls) {
    try {
      calls.make();
    } catch (Throwable failure) {
      if (!kind.isInstance(failure)) throw new AssertionError(failure + " is no " + kind, failure);
      assertTrue(failure.getMessage() + " does not say: " + words, failure.getMessage().contains(words));
      return kind.cast(failure);
    }
    fail("nothing was thrown, " + kind + " was expected: " + words);
    return null;
  }

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
