package org.pinnace;

import static org.junit.Assert.assertArrayEquals;
import static org.junit.Assert.assertEquals;
import static org.junit.Assert.assertFalse;
import static org.junit.Assert.assertNotNull;
import static org.junit.Assert.assertNull;
import static org.junit.Assert.assertSame;
import static org.junit.Assert.assertTrue;
import static org.pinnace.Thrown.thrown;
import static org.pinnace.Thrown.wrong;

import java.io.File;
import java.io.FileInputStream;
import java.io.FileOutputStream;
import java.io.IOException;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.nio.file.Files;
import java.util.Arrays;
import java.util.Collections;
import java.util.HashMap;
import java.util.Map;
import java.util.concurrent.CancellationException;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.TimeUnit;
import org.junit.After;
import org.junit.Before;
import org.junit.Test;

/**
 * What each call gives, and misuse. {@code counter.pnc} of the folder {@code pinnace.tests} has y = 2 x + runs, of x
 * float32[n,3], n in 1..8, and the state runs, which counts from 0; {@code endless.pnc} runs until it is told to stop. Streams
 * of x float32[1,1,T]: {@code stream.pnc} has y[t] = x[t] + x[t + 2] and z = 2 x; {@code causal.pnc} has y = z = 2 x, and
 * {@code lying.pnc} the same with wrong metadata.
 */
public class SessionTest {
  private static File file(String name) {
    return new File(System.getProperty("pinnace.tests"), name);
  }

  private static Map<String, Tensor> x(float... elements) {
    return Collections.singletonMap("x", Tensor.of(elements, elements.length / 3, 3));
  }

  private Program program;
  private Session session;

  @Before
  public void open() {
    program = Program.open(file("counter.pnc").getPath());
    session = Session.create(program, new Options().target("cpu").threads(1));
  }

  @After
  public void close() {
    session.close();
    session.close();
    program.close();
    program.close();
  }

  @Test
  public void takesWishes() {
    Service service = new Service().preference("fast_single_answer").priority("low").deadline(1, TimeUnit.SECONDS)
        .loopTimeout(1, TimeUnit.SECONDS).cacheFolder("nowhere").device("none");
    Options options = new Options().target("cpu").service(service);
    service.priority("no word");  // the options have a copy
    try (Session wished = Session.create(program, options)) {
      assertEquals("cpu has no use of priority, deadline, cache_folder, device", wished.placement().get(0).notice);
    }
    wrong("priority is 'no word'", () -> Session.create(program, new Options().target("cpu").service(service)));
    wrong("processor -1", () -> Session.create(program, new Options().service(new Service().processors(-1))));
    wrong("deadline cannot be -1", () -> new Service().deadline(-1, TimeUnit.SECONDS));
    wrong("unit is null", () -> new Service().loopTimeout(1, null));
    wrong("preference is null", () -> new Service().preference(null));
    wrong("processors are null", () -> new Service().processors((int[]) null));
    wrong("service is null", () -> new Options().service(null));
  }

  @Test
  public void describesPrograms() {
    assertEquals(1, program.inputs().size());
    Spec input = program.inputs().get(0);
    assertEquals("x", input.name);
    assertEquals(DType.F32, input.dtype);
    assertArrayEquals(new long[] {-1, 3}, input.shape());
    Symbol symbol = input.symbol(0);
    assertNotNull(symbol);
    assertSame(program.symbols().get(0), symbol);
    assertEquals(1, symbol.min);
    assertEquals(8, symbol.max);
    assertEquals(1, symbol.multipleOf);
    assertNull(input.symbol(1));
    assertEquals("x: float32[" + symbol.name + ",3]", input.toString());
    assertEquals(0, input.scales().length);
    assertEquals(-1, input.axis());
    assertEquals(1, program.outputs().size());
    assertEquals("runs", program.states().get(0).name);
    assertTrue(program.metadata().containsKey("producer"));
    thrown(UnsupportedOperationException.class, "", () -> {
      try {
        program.inputs().clear();
      } catch (UnsupportedOperationException e) {
        throw new UnsupportedOperationException("");
      }
    });
    assertTrue(Device.libraryVersion().matches("\\d+\\.\\d+\\.\\d+"));
    boolean cpu = false;
    for (Device device : Device.all()) cpu |= device.target.equals("cpu") && device.available;
    assertTrue(cpu);
  }

  @Test
  public void opensPathsBuffersAndDescriptors() throws IOException {
    byte[] bytes = Files.readAllBytes(file("counter.pnc").toPath());
    ByteBuffer direct = ByteBuffer.allocateDirect(bytes.length + 7);
    direct.position(3);
    direct.put(bytes);
    direct.flip();
    direct.position(3);
    ByteBuffer heap = ByteBuffer.wrap(bytes);
    File inside = File.createTempFile("pinnace", ".apk");
    try {
      try (FileOutputStream out = new FileOutputStream(inside)) {
        out.write(new byte[100]);
        out.write(bytes);
        out.write(new byte[5]);
      }
      try (FileInputStream whole = new FileInputStream(file("counter.pnc"));
          FileInputStream part = new FileInputStream(inside)) {
        Program[] all = {
          Program.open(direct), Program.open(heap), Program.open(heap.asReadOnlyBuffer()), Program.open(whole.getFD()),
          Program.open(part.getFD(), 100, bytes.length), Program.open(file("counter.pnc").getPath(), Program.Verify.FULL)
        };
        wrong("are not inside", () -> Program.open(part.getFD(), 100, bytes.length + 6));
        for (Program one : all) {
          try (Session ran = Session.create(one)) {
            assertArrayEquals(new float[] {3, 5, 7}, ran.run(x(1, 2, 3)).get("y").floats(), 0);
          }
          one.close();
        }
      }
    } finally {
      inside.delete();
    }
    assertEquals(3, direct.position());
    assertEquals(0, heap.position());
    thrown(PinnaceException.FileFailure.class, "/nowhere.pnc", () -> Program.open("/nowhere.pnc"));
    bytes[bytes.length / 2] ^= 1;
    PinnaceException.CorruptFile damaged =
        thrown(PinnaceException.CorruptFile.class, "", () -> Program.open(ByteBuffer.wrap(bytes)));
    assertTrue(damaged.rule().startsWith("F-"));
    assertTrue(damaged.offset() >= 0);
    thrown(PinnaceException.CorruptFile.class, "", () -> Program.open(ByteBuffer.allocate(0)));
    wrong("null character", () -> Program.open("a\0b"));
  }

  @Test
  public void runsAndKeepsStates() {
    assertEquals(Collections.singletonList("y"), session.outputs());
    assertArrayEquals(new float[] {3, 5, 7}, session.run(x(1, 2, 3)).get("y").floats(), 0);
    Tensor y = session.run(x(1, 2, 3, 4, 5, 6)).get("y");
    assertArrayEquals(new long[] {2, 3}, y.shape());
    assertArrayEquals(new float[] {4, 6, 8, 10, 12, 14}, y.floats(), 0);
    assertArrayEquals(new float[] {2}, session.state("runs").floats(), 0);
    session.setState("runs", Tensor.of(new float[] {10}, 1));
    assertArrayEquals(new float[] {13, 15, 17}, session.run(x(1, 2, 3)).get("y").floats(), 0);
    session.resetState();
    assertArrayEquals(new float[] {0}, session.state("runs").floats(), 0);
    // The outputs of earlier runs are the caller's own.
    assertArrayEquals(new float[] {4, 6, 8, 10, 12, 14}, y.floats(), 0);
    wrong("no state 'walks'", () -> session.state("walks"));
    wrong("state 'runs'", () -> session.setState("runs", Tensor.of(new float[] {1, 2}, 2)));
    wrong("null", () -> session.setState("runs", null));
  }

  private static Map<String, Tensor> chunk(float... elements) {
    return Collections.singletonMap("x", Tensor.of(elements, 1, 1, elements.length));
  }

  private static void gives(Map<String, Tensor> outputs, String name, float... elements) {
    assertArrayEquals(new long[] {1, 1, elements.length}, outputs.get(name).shape());
    assertArrayEquals(elements, outputs.get(name).floats(), 0);
  }

  @Test
  public void streams() {
    try (Program wave = Program.open(file("stream.pnc").getPath());
        Session one = Session.create(wave, new Options().target("cpu").threads(1))) {
      assertEquals("[x: axis 2, latency 2, multiple 1, tail 2]", wave.streamedInputs().toString());
      assertEquals("[y: axis 2, rate 1/1, more 0, z: axis 2, rate 1/1, more 0]", wave.streamedOutputs().toString());
      gives(one.run(chunk(1, 2, 3)), "y", 0, 0, 4);
      byte[] saved = one.saveState();
      try (Session two = one.fork()) {
        Map<String, Tensor> more = two.run(chunk(4, 5, 6));
        gives(more, "y", 6, 8, 10);
        gives(more, "z", 4, 6, 8);
        Map<String, Tensor> rest = two.finish();
        gives(rest, "y", 5, 6);
        gives(rest, "z", 10, 12);
        gives(two.run(chunk(7, 8, 9)), "y", 0, 0, 16); // another stream
      }
      gives(one.run(chunk(7)), "y", 9);
      one.restoreState(saved);
      gives(one.run(chunk(4, 5, 6)), "y", 6, 8, 10);
      wrong("'x' is a stream", () -> one.finish(chunk(1), new RunOptions()));
      wrong("no input 'w'", () -> one.finish(Collections.singletonMap("w", Tensor.allocate(DType.F32, 1)), new RunOptions()));
      wrong("null", () -> one.finish(null, new RunOptions()));
      wrong("null", () -> one.finish(Collections.<String, Tensor>emptyMap(), null));
      thrown(PinnaceException.Cancelled.class, "timed out", () ->
          one.finish(Collections.<String, Tensor>emptyMap(), new RunOptions().timeout(1, TimeUnit.NANOSECONDS)));
      gives(one.finish(), "y", 5, 6); // the failures took nothing
      wrong("null", () -> one.restoreState(null));
      wrong("another", () -> session.restoreState(saved));
      saved[saved.length / 2] ^= 1;
      thrown(PinnaceException.CorruptFile.class, "", () -> one.restoreState(saved));
      thrown(PinnaceException.CorruptFile.class, "", () -> one.restoreState(new byte[0]));
    }
    try (Program causal = Program.open(file("causal.pnc").getPath()); Session one = Session.create(causal)) {
      gives(one.run(chunk(1, 2)), "z", 2, 4);
      gives(one.finish(), "z");
    }
    try (Program lying = Program.open(file("lying.pnc").getPath()); Session one = Session.create(lying)) {
      thrown(PinnaceException.CorruptFile.class, "'stream.x' is 'nothing'", () -> lying.streamedInputs());
      thrown(PinnaceException.CorruptFile.class, "'stream.x' is 'nothing'", () -> one.finish());
      gives(one.run(chunk(1, 2)), "z", 2, 4);
    }
    assertTrue(program.streamedInputs().isEmpty());
    assertTrue(program.streamedOutputs().isEmpty());
    wrong("takes the whole", () -> session.finish());
    // Sessions with states of any kind are saved and forked.
    session.run(x(1, 2, 3));
    try (Session other = session.fork()) {
      session.resetState();
      assertArrayEquals(new float[] {4, 6, 8}, other.run(x(1, 2, 3)).get("y").floats(), 0);
      session.restoreState(other.saveState());
      assertArrayEquals(new float[] {2}, session.state("runs").floats(), 0);
    }
  }

  @Test
  public void sharesMemoryWithoutACopy() {
    ByteBuffer in = ByteBuffer.allocateDirect(24).order(ByteOrder.nativeOrder());
    ByteBuffer out = ByteBuffer.allocateDirect(12).order(ByteOrder.nativeOrder());
    in.position(12);
    Map<String, Tensor> inputs = Collections.singletonMap("x", Tensor.of(DType.F32, new long[] {1, 3}, in));
    Map<String, Tensor> outputs = Collections.singletonMap("y", Tensor.of(DType.F32, new long[] {1, 3}, out));
    for (int run = 1; run <= 3; ++run) {
      for (int i = 0; i < 3; ++i) in.putFloat(12 + 4 * i, run * 10 + i);
      session.run(inputs, outputs, new RunOptions());
      for (int i = 0; i < 3; ++i) assertEquals(2 * (run * 10 + i) + run, out.getFloat(4 * i), 0);
    }
    ByteBuffer odd = ByteBuffer.allocateDirect(32);
    for (int at = 0; at < 8; ++at) {
      odd.position(at);
      if (at % 4 == 0) Tensor.of(DType.F32, new long[] {1, 3}, odd);
      else wrong("no multiple of 4, the bytes of one float32", () -> Tensor.of(DType.F32, new long[] {1, 3}, odd));
      assertEquals(3, Tensor.of(DType.U8, new long[] {3}, odd).elements());
      assertEquals(0, Tensor.of(DType.F32, new long[] {0, 3}, odd).elements());
    }
    // The order of the buffer says how its own methods read, not how the bytes lie.
    in.order(ByteOrder.BIG_ENDIAN).position(12);
    Map<String, Tensor> same = Collections.singletonMap("x", Tensor.of(DType.F32, new long[] {1, 3}, in));
    assertArrayEquals(new float[] {64, 66, 68}, session.run(same).get("y").floats(), 0);
    assertEquals(ByteOrder.nativeOrder(), same.get("x").buffer().order());
    Map<String, Tensor> constant = Collections.singletonMap("x", Tensor.of(DType.F32, new long[] {1, 3}, in.asReadOnlyBuffer()));
    assertArrayEquals(new float[] {65, 67, 69}, session.run(constant).get("y").floats(), 0);
    wrong("cannot be written to", () -> session.run(inputs,
        Collections.singletonMap("y", Tensor.of(DType.F32, new long[] {1, 3}, out.asReadOnlyBuffer())), new RunOptions()));
    wrong("overlap", () -> session.run(inputs, Collections.singletonMap("y", inputs.get("x")), new RunOptions()));
    wrong("'y'", () -> session.run(inputs,
        Collections.singletonMap("y", Tensor.allocate(DType.F32, 2, 3)), new RunOptions()));
  }

  @Test
  public void describesSessions() {
    Profile profile = session.profile(x(1, 2, 3));
    assertArrayEquals(new float[] {3, 5, 7}, profile.outputs.get("y").floats(), 0);
    assertFalse(profile.events.isEmpty());
    assertEquals("cpu", profile.events.get(0).backend);
    assertTrue(profile.events.get(0).durationNs >= 0);
    assertFalse(session.placement().isEmpty());
    boolean onCpu = false;
    for (Placement row : session.placement()) onCpu |= row.backend.equals("cpu") && !row.kernel.isEmpty();
    assertTrue(onCpu);
    assertTrue(session.plan().peakBytes > 0);
    assertTrue(session.plan().nodesRun > 0);
    assertEquals("fp32", session.precision());
    session.limitLoops(1, TimeUnit.SECONDS);
    wrong("", () -> session.limitLoops(-1, TimeUnit.SECONDS));
  }

  @Test
  public void takesOptions() {
    String inner = null;
    for (Placement row : session.placement()) inner = inner == null ? row.node : inner;
    wrong("nowhere", () -> Session.create(program, new Options().keep(Arrays.asList("nowhere"))));
    wrong("cube", () -> Session.create(program, new Options().target("cube")));
    wrong("fp7", () -> Session.create(program, new Options().precision("fp7")));
    wrong("null", () -> Session.create(program, new Options().target(null)));
    Options invariant = new Options().shapeInvariant(true);
    wrong("needs the precision fp32", () -> Session.create(program, new Options().shapeInvariant(true).precision("bf16")));
    try (Session one = Session.create(program, invariant)) {
      assertArrayEquals(new float[] {3, 5, 7}, one.run(x(1, 2, 3)).get("y").floats(), 0);
    }
    wrong("plan cache", () -> Session.create(program, new Options().planCache(0)));
    wrong("null", () -> Session.create(program, null));
    wrong("null", () -> Session.create(null));
    try (Session one = Session.create(program, new Options().planCache(1).fallback(false).target("cpu"))) {
      for (int n = 1; n <= 8; ++n) assertEquals(3 * n, one.run(x(new float[3 * n])).get("y").elements());
    }
  }

  @Test
  public void refusesWrongInputs() {
    Tensor good = x(1, 2, 3).get("x");
    wrong("'x' is missing", () -> session.run(Collections.<String, Tensor>emptyMap()));
    wrong("'x' is missing", () -> session.run(Collections.<String, Tensor>singletonMap("x", null)));
    Map<String, Tensor> more = new HashMap<>();
    more.put("x", good);
    more.put("z", good);
    wrong("no input 'z'", () -> session.run(more));
    wrong("null", () -> session.run(null));
    wrong("null", () -> session.run(x(1, 2, 3), null));
    wrong("'x'", () -> session.run(Collections.singletonMap("x", Tensor.of(new int[] {1, 2, 3}, 1, 3))));
    wrong("'x'", () -> session.run(Collections.singletonMap("x", Tensor.of(new float[4], 1, 4))));
    wrong("9", () -> session.run(x(new float[27])));
    wrong("'x'", () -> session.run(Collections.singletonMap("x", Tensor.allocate(DType.F32, 0, 3))));
    wrong("not direct", () -> Tensor.of(DType.F32, new long[] {1}, ByteBuffer.allocate(4)));
    wrong("has 12 bytes, the buffer has 11", () -> Tensor.of(DType.F32, new long[] {3}, ByteBuffer.allocateDirect(11)));
    wrong("null", () -> Tensor.of(DType.F32, new long[] {1}, null));
    wrong("null", () -> Tensor.of(DType.F32, null, ByteBuffer.allocateDirect(4)));
    wrong("null", () -> Tensor.of(null, new long[] {1}, ByteBuffer.allocateDirect(4)));
    wrong("null", () -> Tensor.of((float[]) null, 1));
    wrong("negative", () -> Tensor.allocate(DType.F32, -1));
    wrong("more bytes", () -> Tensor.allocate(DType.F32, 1L << 40));
    wrong("2^63", () -> Tensor.allocate(DType.F32, 1L << 40, 1L << 40));
    for (DType dtype : DType.values()) { // 2^61 - 1 elements of 4 bits are 8 bits short of what a long can count
      ByteBuffer some = ByteBuffer.allocateDirect(64);
      wrong("", () -> Tensor.of(dtype, new long[] {(1L << 61) - 1}, some));
      wrong("", () -> Tensor.of(dtype, new long[] {Long.MAX_VALUE}, some));
      wrong("", () -> Tensor.of(dtype, new long[] {Long.MAX_VALUE / 6}, some));
    }
    wrong("rank 33", () -> Tensor.allocate(DType.F32, new long[33]));
    wrong("elements, was given 2", () -> Tensor.of(new float[2], 3));
    wrong("not int32", () -> good.ints());
    assertArrayEquals(new float[] {3, 5, 7}, session.run(x(1, 2, 3)).get("y").floats(), 0);
    assertEquals(2, Tensor.allocate(DType.I4, 3).toBytes().length);
    assertEquals(0, Tensor.allocate(DType.F32, 0, 1L << 62, 8).elements());
  }

  @Test
  public void refusesWhatIsClosed() throws Exception {
    session.close();
    wrong("the session is closed", () -> session.run(x(1, 2, 3)));
    wrong("the session is closed", () -> session.runAsync(x(1, 2, 3)));
    wrong("the session is closed", () -> session.state("runs"));
    wrong("the session is closed", () -> session.resetState());
    wrong("the session is closed", () -> session.saveState());
    wrong("the session is closed", () -> session.restoreState(new byte[1]));
    wrong("the session is closed", () -> session.fork());
    wrong("the session is closed", () -> session.placement());
    wrong("the session is closed", () -> session.profile(x(1, 2, 3)));
    program.close();
    wrong("the program is closed", () -> Session.create(program));
    wrong("the program is closed", () -> program.metadata());
    assertEquals(1, program.inputs().size());
    CancelToken token = new CancelToken();
    token.close();
    wrong("the token is closed", () -> token.cancel());
    // A program may be closed before its sessions, and a session while it runs.
    try (Program endless = Program.open(file("endless.pnc").getPath())) {
      Session runs = Session.create(endless);
      CompletableFuture<Map<String, Tensor>> run = runs.runAsync(endlessInputs());
      runs.close();
      wrong("the session is closed", () -> runs.placement());
      run.cancel(true);
    }
  }

  private static Map<String, Tensor> endlessInputs() {
    Map<String, Tensor> inputs = new HashMap<>();
    inputs.put("go", Tensor.of(DType.BOOL, new byte[] {1}));
    inputs.put("x", Tensor.of(new float[1000], 1000));
    return inputs;
  }

  @Test
  public void endsRunsEarly() throws Exception {
    try (Program endless = Program.open(file("endless.pnc").getPath());
        Session runs = Session.create(endless)) {
      thrown(PinnaceException.Cancelled.class, "timed out", () ->
          runs.run(endlessInputs(), new RunOptions().timeout(50, TimeUnit.MILLISECONDS)));
      try (CancelToken token = new CancelToken()) {
        Thread other = new Thread(() -> {
          try {
            Thread.sleep(50);
          } catch (InterruptedException e) {
            return;
          }
          token.cancel();
        });
        other.start();
        thrown(PinnaceException.Cancelled.class, "", () -> runs.run(endlessInputs(), new RunOptions().cancel(token)));
        other.join();
        assertTrue(token.isCancelled());
        thrown(PinnaceException.Cancelled.class, "", () -> runs.run(endlessInputs(), new RunOptions().cancel(token)));
      }
      runs.limitLoops(30, TimeUnit.MILLISECONDS);
      thrown(PinnaceException.Cancelled.class, "", () -> runs.run(endlessInputs()));
      runs.limitLoops(0, TimeUnit.SECONDS);

      CompletableFuture<Map<String, Tensor>> run = runs.runAsync(endlessInputs());
      wrong("running on another thread", () -> runs.run(endlessInputs()));
      wrong("running on another thread", () -> runs.runAsync(endlessInputs()));
      wrong("running on another thread", () -> runs.resetState());
      wrong("running on another thread", () -> runs.saveState());
      wrong("running on another thread", () -> runs.fork());
      runs.placement();
      assertFalse(run.isDone());
      assertTrue(run.cancel(true));
      thrown(CancellationException.class, "", () -> {
        try {
          run.get();
        } catch (CancellationException e) {
          throw new CancellationException("");
        }
      });
      run.cancel(true);
      isFreeSoon(runs);
      // As orTimeout() of later versions of Java does.
      CompletableFuture<Map<String, Tensor>> late = runs.runAsync(endlessInputs());
      assertTrue(late.completeExceptionally(new java.util.concurrent.TimeoutException()));
      isFreeSoon(runs);
    }
  }

  /** Of a session of {@code endless.pnc} whose run was told to stop. */
  static void isFreeSoon(Session runs) throws InterruptedException {
    for (int tries = 0; ; ++tries) {
      try {
        thrown(PinnaceException.Cancelled.class, "timed out", () ->
            runs.run(endlessInputs(), new RunOptions().timeout(1, TimeUnit.NANOSECONDS)));
        return;
      } catch (AssertionError stillRunning) {
        if (tries == 200) throw stillRunning;
        Thread.sleep(20);
      }
    }
  }

  @Test
  public void runsAsync() throws Exception {
    assertArrayEquals(new float[] {3, 5, 7}, session.runAsync(x(1, 2, 3)).get().get("y").floats(), 0);
    assertEquals(3, (int) session.runAsync(x(1, 2, 3)).thenApply(outputs -> (int) outputs.get("y").elements()).get());
    ExecutionException failed =
        thrown(ExecutionException.class, "", () -> session.runAsync(x(new float[27])).get());
    assertTrue(failed.getCause() instanceof PinnaceException.InvalidArgument);
    thrown(java.util.concurrent.RejectedExecutionException.class, "no", () ->
        session.runAsync(x(1, 2, 3), new RunOptions(), work -> {
          throw new java.util.concurrent.RejectedExecutionException("no");
        }));
    wrong("not by a token", () -> {
      try (CancelToken token = new CancelToken()) {
        session.runAsync(x(1, 2, 3), new RunOptions().cancel(token), Runnable::run);
      }
    });
    assertArrayEquals(new float[] {5, 7, 9}, session.runAsync(x(1, 2, 3), new RunOptions(), Runnable::run).get().get("y").floats(), 0);
  }

  @Test
  public void givesBackWhatIsNotClosed() throws Exception {
    // Objects that nobody closes, collected: the process would hold some 2 GB of them otherwise.
    byte[] bytes = Files.readAllBytes(file("counter.pnc").toPath());
    long before = HeldMemory.bytes();
    for (int i = 0; i < 2000; ++i) {
      Session one = Session.create(Program.open(ByteBuffer.wrap(bytes)), new Options().target("cpu").threads(1));
      one.run(x(new float[24]));
      new CancelToken();
      if (i % 200 == 0) {
        System.gc();
        Thread.sleep(10);
      }
    }
    System.gc();
    Thread.sleep(100);
    long grown = HeldMemory.bytes() - before;
    assertTrue("the process holds " + grown + " bytes more", grown < 64 << 20);
  }
}
