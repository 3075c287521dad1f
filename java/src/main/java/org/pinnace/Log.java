package org.pinnace;

import androidx.annotation.NonNull;
import androidx.annotation.Nullable;
import java.nio.charset.StandardCharsets;

/**
 * What the library tells beside results and exceptions: what was loaded, chosen, packed, measured and refused, and what is slower than
 * it could be. Nothing is written unless an application asks for it:
 *
 * <pre>{@code
 * Log.setSink((level, text) -> android.util.Log.println(level.ordinal() + 2, "pinnace", text), Log.Level.INFO);
 * }</pre>
 */
public final class Log {
  /** In the order of the C API's numbers. {@code android.util.Log} numbers the first five from 2 on, in the same order. */
  public enum Level {
    /** Each run. */
    TRACE,
    /** Each node and each decision. */
    DEBUG,
    /** Each phase: loaded, planned, packed, measured, prepared. */
    INFO,
    /** Something is slower than it could be, or other than was asked for. */
    WARN,
    /** Something failed in a place from which no call can return it. */
    ERROR,
    /** Of no message; as a limit: none is wanted. */
    OFF
  }

  /** Takes messages. */
  public interface Sink {
    /**
     * One message. May be called on any thread, on several at once, and while locks of the library are held: it must neither call
     * pinnace nor wait for a thread that does. What it throws goes to {@code System.err}, and the library's call goes on.
     *
     * @param level never {@link Level#OFF}.
     * @param text one line, of about 4,000 bytes at most; control characters of names from files are escaped.
     */
    void message(@NonNull Level level, @NonNull String text);
  }

  private static final class Receiver {
    final Sink sink;
    final Level least;

    Receiver(Sink sink, Level least) {
      this.sink = sink;
      this.least = least;
    }
  }

  private static final Level[] LEVELS = Level.values();
  private static final Object CHANGES = new Object();
  private static final ThreadLocal<Boolean> IN_SINK = new ThreadLocal<>();

  private static volatile Receiver receiver = null; // written under CHANGES

  private Log() {}

  /**
   * Sends messages of level {@code least} and above to {@code sink}, in the place of the one before; null: they are dropped. On
   * return no call of the one before is under way.
   *
   * @throws PinnaceException.InvalidArgument called by a sink, or {@code least} is null.
   */
  public static void setSink(@Nullable Sink sink, @NonNull Level least) {
    check(least);
    synchronized (CHANGES) {
      Receiver before = receiver;
      receiver = sink == null ? null : new Receiver(sink, least);
      try {
        Native.logTo(sink != null, least.ordinal());
      } catch (RuntimeException | Error failure) {
        receiver = before;
        throw failure;
      }
    }
  }

  /**
   * Changes the least level that the present sink gets; without a sink nothing happens.
   *
   * @throws PinnaceException.InvalidArgument called by a sink, or {@code least} is null.
   */
  public static void setLevel(@NonNull Level least) {
    check(least);
    synchronized (CHANGES) {
      if (receiver == null) return;
      Native.logLevel(least.ordinal());
      receiver = new Receiver(receiver.sink, least);
    }
  }

  /** Before CHANGES, which a thread may hold that waits for the sink's return. */
  private static void check(Level least) {
    if (least == null) throw new PinnaceException.InvalidArgument("the least level is null");
    if (IN_SINK.get() != null) throw new PinnaceException.InvalidArgument("a log sink cannot change the log");
  }

  /** One message; called by native code, through which nothing is thrown. */
  static void called(int number, byte[] text) {
    try {
      Receiver to = receiver;
      if (to == null || number < to.least.ordinal()) return; // the sink or its level is changing at the moment
      IN_SINK.set(true);
      try {
        to.sink.message(LEVELS[number], new String(text, StandardCharsets.UTF_8));
      } finally {
        IN_SINK.remove();
      }
    } catch (Throwable failure) {
      report(failure);
    }
  }

  private static void report(Throwable failure) {
    try {
      failure.printStackTrace();
    } catch (Throwable another) { // where memory has run out, or the failure's own methods throw
      // there is nobody left to tell
    }
  }
}
