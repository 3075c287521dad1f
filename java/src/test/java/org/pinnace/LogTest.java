package org.pinnace;

import static org.junit.Assert.assertEquals;
import static org.junit.Assert.assertTrue;
import static org.pinnace.Thrown.thrown;
import static org.pinnace.Thrown.wrong;

import java.io.ByteArrayOutputStream;
import java.io.File;
import java.io.PrintStream;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Collections;
import java.util.List;
import java.util.Map;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.concurrent.atomic.AtomicReference;
import org.junit.After;
import org.junit.Test;

/** Messages of the library. {@code counter.pnc} of the folder {@code pinnace.tests} takes x float32[n,3], n in 1..8. */
public class LogTest {
  private static final class Messages implements Log.Sink {
    final List<String> lines = Collections.synchronizedList(new ArrayList<String>());
    final List<Thread> threads = Collections.synchronizedList(new ArrayList<Thread>());

    @Override
    public void message(Log.Level level, String text) {
      lines.add(level + " " + text);
      threads.add(Thread.currentThread());
    }

    boolean has(Log.Level level, String words) {
      synchronized (lines) {
        for (String line : lines) {
          if (line.startsWith(level + " ") && line.contains(words)) return true;
        }
      }
      return false;
    }

    int count(Log.Level level) {
      int found = 0;
      synchronized (lines) {
        for (String line : lines) {
          if (line.startsWith(level + " ")) ++found;
        }
      }
      return found;
    }
  }

  private static final Map<String, Tensor> X = Collections.singletonMap("x", Tensor.of(new float[] {1, 2, 3}, 1, 3));

  private static File counter() {
    return new File(System.getProperty("pinnace.tests"), "counter.pnc");
  }

  private static void openAndRun() {
    try (Program program = Program.open(counter().getPath());
        Session session = Session.create(program, new Options().target("cpu").threads(1))) {
      session.run(X);
    }
  }

  @After
  public void noSink() {
    Log.setSink(null, Log.Level.OFF);
  }

  @Test
  public void levels() {
    Messages messages = new Messages();
    Log.setSink(messages, Log.Level.INFO);
    openAndRun();
    assertTrue(messages.lines.toString(), messages.has(Log.Level.INFO, "opened"));
    assertTrue(messages.lines.toString(), messages.has(Log.Level.INFO, "prepared"));
    assertEquals(0, messages.count(Log.Level.DEBUG) + messages.count(Log.Level.TRACE));
    Log.setLevel(Log.Level.TRACE);
    openAndRun();
    assertEquals(messages.lines.toString(), 1, messages.count(Log.Level.TRACE)); // one run
    assertTrue(messages.count(Log.Level.DEBUG) > 0);
    Log.setLevel(Log.Level.OFF);
    int before = messages.lines.size();
    openAndRun();
    assertEquals(before, messages.lines.size());
    Log.setLevel(Log.Level.INFO);
    openAndRun();
    assertTrue(messages.lines.size() > before);
  }

  @Test
  public void anotherSinkAndNone() {
    Messages first = new Messages();
    Messages second = new Messages();
    Log.setSink(first, Log.Level.INFO);
    Log.setSink(second, Log.Level.TRACE);
    openAndRun();
    assertEquals(0, first.lines.size());
    int count = second.lines.size();
    assertTrue(second.lines.toString(), second.has(Log.Level.TRACE, ""));
    Log.setSink(null, Log.Level.INFO);
    Log.setLevel(Log.Level.TRACE); // of nobody
    openAndRun();
    assertEquals(count, second.lines.size());
  }

  @Test
  public void messagesOfThreadsThatAreNotTheMachines() {
    Messages messages = new Messages();
    try (Program program = Program.open(counter().getPath());
        Session session = Session.create(program, new Options().target("cpu").threads(1))) {
      Log.setSink(messages, Log.Level.TRACE);
      session.runAsync(X).join();
    }
    Log.setSink(null, Log.Level.OFF);
    assertEquals(1, messages.count(Log.Level.TRACE));
  }

  @Test
  public void failuresOfCallsStayThemselves() {
    Messages messages = new Messages();
    Log.setSink(messages, Log.Level.TRACE);
    try (Program program = Program.open(counter().getPath());
        Session session = Session.create(program, new Options().target("cpu"))) {
      wrong("x", () -> session.run(Collections.singletonMap("x", Tensor.of(new float[] {1}, 1, 1))));
      assertEquals(3, session.run(X).get("y").floats()[0], 0); // 2 x + 1
    }
    thrown(PinnaceException.class, "no.pnc", () -> Program.open("no.pnc"));
  }

  @Test
  public void namesOfAnyLanguage() throws Exception {
    Path folder = Files.createTempDirectory("log");
    Path file = folder.resolve("net-\u00e4\u4e2d\ud83d\ude00.pnc");
    Files.copy(counter().toPath(), file);
    Messages messages = new Messages();
    Log.setSink(messages, Log.Level.INFO);
    Program.open(file.toString()).close();
    assertTrue(messages.lines.toString(), messages.has(Log.Level.INFO, "net-\u00e4\u4e2d\ud83d\ude00.pnc"));
    Files.delete(file);
    Files.delete(folder);
  }

  @Test
  public void whatASinkThrows() {
    PrintStream err = System.err;
    ByteArrayOutputStream said = new ByteArrayOutputStream();
    AtomicInteger calls = new AtomicInteger();
    System.setErr(new PrintStream(said, true));
    try {
      Log.setSink((level, text) -> {
        calls.incrementAndGet();
        throw new IllegalStateException("the sink's own");
      }, Log.Level.TRACE);
      openAndRun();
    } finally {
      System.setErr(err);
    }
    assertTrue(calls.get() > 1);
    assertTrue(said.toString(), said.toString().contains("the sink's own"));
  }

  @Test
  public void sinksDoNotChangeTheLog() throws Exception {
    AtomicReference<Throwable> failure = new AtomicReference<>();
    CountDownLatch inside = new CountDownLatch(1);
    Log.setSink((level, text) -> {
      inside.countDown();
      try {
        Thread.sleep(50); // while the main thread changes the sink and waits
        wrong("a log sink cannot change the log", () -> Log.setSink(null, Log.Level.OFF));
        wrong("a log sink cannot change the log", () -> Log.setLevel(Log.Level.OFF));
      } catch (Throwable e) {
        failure.set(e);
      }
    }, Log.Level.INFO);
    Thread other = new Thread(() -> Program.open(counter().getPath()).close());
    other.start();
    inside.await();
    Log.setSink(null, Log.Level.OFF);
    other.join();
    if (failure.get() != null) throw new AssertionError(failure.get());
  }

  @Test
  public void manyThreadsWhileSinksChange() throws Exception {
    AtomicInteger late = new AtomicInteger();
    Thread[] threads = new Thread[3];
    boolean[] stop = new boolean[1];
    for (int i = 0; i < threads.length; ++i) {
      threads[i] = new Thread(() -> {
        while (true) {
          synchronized (stop) {
            if (stop[0]) return;
          }
          Program.open(counter().getPath()).close();
        }
      });
      threads[i].start();
    }
    for (int round = 0; round < 200; ++round) {
      boolean[] over = new boolean[1];
      Log.setSink((level, text) -> {
        if (over[0]) late.incrementAndGet();
      }, Log.Level.INFO);
      Thread.yield();
      Log.setSink(null, Log.Level.OFF);
      over[0] = true;
    }
    synchronized (stop) {
      stop[0] = true;
    }
    for (Thread thread : threads) thread.join();
    assertEquals(0, late.get());
  }

  @Test
  public void misuse() {
    wrong("the least level is null", () -> Log.setSink((level, text) -> {}, null));
    wrong("the least level is null", () -> Log.setSink(null, null));
    wrong("the least level is null", () -> Log.setLevel(null));
  }
}
