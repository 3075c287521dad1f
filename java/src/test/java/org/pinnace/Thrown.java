package org.pinnace;

import static org.junit.Assert.assertTrue;
import static org.junit.Assert.fail;

/** What calls throw, for tests of misuse. */
public final class Thrown {
  public interface Calls {
    void make() throws Exception;
  }

  private Thrown() {}

  /** The failure, of that kind and with these words in its message. */
  public static <E extends Throwable> E thrown(Class<E> kind, String words, Calls calls) {
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
    thrown(PinnaceException.InvalidArgument.class, words, calls);
  }
}
