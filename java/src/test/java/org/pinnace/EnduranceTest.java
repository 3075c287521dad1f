package org.pinnace;

import static org.junit.Assert.assertArrayEquals;
import static org.junit.Assert.assertEquals;
import static org.junit.Assert.assertTrue;
import static org.junit.Assert.fail;

import java.io.File;
import java.io.FileInputStream;
import java.nio.ByteBuffer;
import java.nio.file.Files;
import java.util.Arrays;
import java.util.Collections;
import java.util.HashMap;
import java.util.Map;
import java.util.concurrent.CancellationException;
import java.util.concurrent.CompletableFuture;
import org.junit.Test;

/**
 * Many calls under a heap that is collected again and again: neither the process grows, nor what the C library has handed out,
 * of which a block a call is seen. Files as for {@link SessionTest} and {@link CustomOpTest}.
 */
public class EnduranceTest {
  private static final int RUNS = Integer.getInteger("pinnace.runs", 5000);

  private static String path(String name) {
    return new File(System.getProperty("pinnace.tests"), name).getPath();
  }

  @Test
  public void doesNotGrow() throws Exception {
    try (Program program = Program.open(path("counter.pnc"));
        Session session = Session.create(program, new Options().target("cpu").threads(1))) {
      Map<String, Tensor> inputs = Collections.singletonMap("x", Tensor.of(new float[24], 8, 3));
      long[] held = new long[1];
      HeldMemory.doesNotGrow("runs", RUNS, turn -> {
        float[] y = session.run(inputs).get("y").floats();
        assertEquals(turn + 1, y[23], 0);
        if (turn == RUNS / 5) held[0] = HeldMemory.bytes();
      });
      long grown = HeldMemory.bytes() - held[0];
      assertTrue("the process holds " + grown + " bytes more after " + RUNS + " runs", grown < 6 << 20);
    }
  }

  /** The measure itself: a token that nobody closes, the smallest of the C API's objects, once in each of the runs. */
  @Test
  public void aLeakOfTheSmallestObjectIsSeen() throws Exception {
    try (Program program = Program.open(path("counter.pnc"));
        Session session = Session.create(program, new Options().target("cpu").threads(1))) {
      Map<String, Tensor> inputs = Collections.singletonMap("x", Tensor.of(new float[24], 8, 3));
      int runs = 3000;
      long grown = HeldMemory.grown(runs, turn -> {
        session.run(inputs);
        Native.token();
      });
      assertTrue(grown + " bytes of a planted leak in " + runs + " runs", grown > HeldMemory.MOST);
    }
  }

  /**
   * What a run does not call, the calls that fail among it. Not Device.all: it loads a software driver of Vulkan anew, of which
   * the C library keeps 144 bytes a call.
   */
  @Test
  public void otherCallsDoNotGrow() throws Exception {
    int turns = Math.max(400, RUNS / 25);
    byte[] bytes = Files.readAllBytes(new File(path("counter.pnc")).toPath());
    byte[] damaged = bytes.clone();
    damaged[bytes.length / 2] ^= 1;
    Map<String, Tensor> x = Collections.singletonMap("x", Tensor.of(new float[] {1, 2, 3}, 1, 3));
    Map<String, Tensor> y = Collections.singletonMap("y", Tensor.allocate(DType.F32, 1, 3));
    Map<String, Tensor> wrong = Collections.singletonMap("x", Tensor.of(new float[27], 9, 3));
    Map<String, Tensor> endless = new HashMap<>();
    endless.put("go", Tensor.of(DType.BOOL, new byte[] {1}));
    endless.put("x", Tensor.of(new float[1000], 1000));
    Options one = new Options().target("cpu").threads(1);

    HeldMemory.doesNotGrow("opening", turns, turn -> {
      Program.open(path("counter.pnc"), Program.Verify.FULL).close();
      Program.open(ByteBuffer.wrap(bytes)).close();
      try (FileInputStream in = new FileInputStream(path("stream.pnc"));
          Program program = Program.open(in.getFD())) {
        assertEquals(1, program.streamedInputs().size());
        assertTrue(program.metadata().size() > 1);
      }
      fails(PinnaceException.CorruptFile.class, () -> Program.open(ByteBuffer.wrap(damaged)));
      fails(PinnaceException.FileFailure.class, () -> Program.open("/nowhere.pnc"));
    });
    try (Program program = Program.open(path("counter.pnc"));
        Program never = Program.open(path("endless.pnc"));
        Program stream = Program.open(path("stream.pnc"));
        Session session = Session.create(program, one);
        Session loops = Session.create(never, one);
        Session chunks = Session.create(stream, one)) {
      HeldMemory.doesNotGrow("creating", turns, turn -> {
        Options all = new Options().target("cpu").threads(1).planCache(2).service(new Service().preference("low_power"));
        try (Session other = Session.create(program, all); Session forked = other.fork()) {
          forked.run(x);
        }
        fails(PinnaceException.InvalidArgument.class, () -> Session.create(program, new Options().target("cube")));
        fails(PinnaceException.InvalidArgument.class, () ->
            Session.create(program, new Options().keep(Arrays.asList("a", "b", "c"))));
      });
      HeldMemory.doesNotGrow("describing", turns, turn -> {
        session.placement();
        session.plan();
        session.precision();
        session.profile(x);
      });
      HeldMemory.doesNotGrow("states", turns, turn -> {
        session.setState("runs", session.state("runs"));
        session.restoreState(session.saveState());
        session.resetState();
        fails(PinnaceException.CorruptFile.class, () -> session.restoreState(new byte[7]));
      });
      HeldMemory.doesNotGrow("runs into memory of the caller, and those that fail", turns, turn -> {
        session.run(x, y, new RunOptions());
        fails(PinnaceException.InvalidArgument.class, () -> session.run(wrong));
        try (CancelToken token = new CancelToken()) {
          token.cancel();
          fails(PinnaceException.Cancelled.class, () -> session.run(x, new RunOptions().cancel(token)));
        }
      });
      HeldMemory.doesNotGrow("runs on other threads", turns, turn -> {
        session.runAsync(x).get();
        fails(java.util.concurrent.ExecutionException.class, () -> session.runAsync(wrong).get());
        if (turn % 20 == 0) {
          CompletableFuture<Map<String, Tensor>> run = loops.runAsync(endless);
          run.cancel(true);
          fails(CancellationException.class, run::get);
          SessionTest.isFreeSoon(loops);
        }
      });
      HeldMemory.doesNotGrow("streams", turns, turn -> {
        chunks.run(Collections.singletonMap("x", Tensor.of(new float[] {1, 2, 3}, 1, 1, 3)));
        chunks.finish();
      });
    }
    try (Program program = Program.open(path("scaled.pnc"))) {
      HeldMemory.doesNotGrow("operators of the application", turns, turn -> {
        try (CustomOp op = CustomOpTest.scale(new CustomOpTest.Counts());
            Session session = Session.create(program, new Options().target("cpu").threads(1).ops(Arrays.asList(op)))) {
          for (int i = 0; i < 20; ++i) {
            assertArrayEquals(new float[] {15, 30, 45}, session.run(x).get("y").floats(), 0);
          }
        }
        CustomOp thrower = new CustomOp("mylib.scale", 1, (inputs, attributes) -> inputs, (inputs, attributes, outputs) -> {
          throw new IllegalStateException("no");
        });
        try (Session session = Session.create(program, new Options().target("cpu").threads(1).ops(Arrays.asList(thrower)))) {
          fails(PinnaceException.InvalidArgument.class, () -> session.run(x));
        }
      });
    }
  }

  private interface Failing {
    void call() throws Exception;
  }

  private static void fails(Class<? extends Exception> kind, Failing calls) {
    try {
      calls.call();
    } catch (Exception failure) {
      assertTrue(failure.toString(), kind.isInstance(failure));
      return;
    }
    fail(kind + " was expected");
  }
}
