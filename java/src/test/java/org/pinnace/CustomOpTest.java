package org.pinnace;

import static org.junit.Assert.assertArrayEquals;
import static org.junit.Assert.assertEquals;
import static org.junit.Assert.assertNull;
import static org.junit.Assert.assertTrue;
import static org.pinnace.Thrown.thrown;
import static org.pinnace.Thrown.wrong;

import java.io.File;
import java.nio.FloatBuffer;
import java.util.Arrays;
import java.util.Collections;
import java.util.List;
import java.util.Map;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.concurrent.atomic.AtomicReference;
import org.junit.Test;

/**
 * Operators whose functions are Java's. {@code scaled.pnc} of the folder {@code pinnace.tests} takes x float32[n,3], n in 1..8, and
 * has y = mylib.scale(mylib.scale(x) {factor=3, sizes=[1,2], label="a b"}) {factor=5}, and {@code joined.pnc} of the same x has p, q
 * = mylib.join(x, 2).
 */
public class CustomOpTest {
  static final class Counts {
    final AtomicInteger shapes = new AtomicInteger();
    final AtomicInteger runs = new AtomicInteger();
    volatile Map<String, String> attributes;
  }

  static CustomOp scale(Counts counts) {
    return new CustomOp("mylib.scale", 1, (inputs, attributes) -> {
      counts.shapes.incrementAndGet();
      return inputs;
    }, (inputs, attributes, outputs) -> {
      counts.runs.incrementAndGet();
      if (attributes.size() > 1) counts.attributes = attributes;
      float factor = Float.parseFloat(attributes.get("factor"));
      FloatBuffer x = inputs.get(0).buffer().asFloatBuffer();
      FloatBuffer y = outputs.get(0).buffer().asFloatBuffer();
      while (x.hasRemaining()) y.put(x.get() * factor);
    });
  }

  private static final CustomOp.Reference NOTHING = (inputs, attributes, outputs) -> {};

  private static Program open(String name) {
    return Program.open(new File(System.getProperty("pinnace.tests"), name).getPath());
  }

  private static Options with(CustomOp... ops) {
    return new Options().target("cpu").threads(2).ops(Arrays.asList(ops));
  }

  private static Map<String, Tensor> x(float... elements) {
    return Collections.singletonMap("x", Tensor.of(elements, elements.length / 3, 3));
  }

  @Test
  public void computes() {
    Counts counts = new Counts();
    try (CustomOp op = scale(counts); Program program = open("scaled.pnc"); Session session = Session.create(program, with(op))) {
      assertArrayEquals(new float[] {15, 30, 45}, session.run(x(1, 2, 3)).get("y").floats(), 0);
      assertArrayEquals(new float[] {15, 0, 0, 0, 0, -15}, session.run(x(1, 0, 0, 0, 0, -1)).get("y").floats(), 0);
      assertEquals(4, counts.runs.get());
      assertTrue(counts.shapes.get() > 0);
      assertEquals("3", counts.attributes.get("factor"));
      assertEquals("[1,2]", counts.attributes.get("sizes").replace(" ", ""));
      assertEquals("a b", counts.attributes.get("label"));
      assertEquals("reference", session.placement().get(0).kernel);
      assertEquals(2, session.profile(x(1, 2, 3)).events.size());
    }
  }

  @Test
  public void outlivesItsOwner() {
    Counts counts = new Counts();
    CustomOp op = scale(counts);
    try (Program program = open("scaled.pnc")) {
      Session session = Session.create(program, with(op));
      op.close();
      op.close();
      wrong("the operator is closed", () -> Session.create(program, with(op)));
      assertArrayEquals(new float[] {15, 30, 45}, session.run(x(1, 2, 3)).get("y").floats(), 0);
      Session forked = session.fork();
      session.close();
      assertArrayEquals(new float[] {15, 30, 45}, forked.run(x(1, 2, 3)).get("y").floats(), 0);
      forked.close();
      // One that nobody holds or closes is collected with its sessions, not before.
      Session kept = Session.create(program, with(scale(counts)));
      for (int i = 0; i < 5; ++i) {
        System.gc();
        kept.run(x(1, 2, 3));
      }
      kept.close();
    }
  }

  @Test
  public void severalInputsAndOutputs() {
    AtomicReference<List<TensorType>> types = new AtomicReference<>();
    AtomicReference<List<Tensor>> given = new AtomicReference<>();
    AtomicReference<List<Tensor>> taken = new AtomicReference<>();
    CustomOp join = new CustomOp("mylib.join", 2, (inputs, attributes) -> {
      types.set(inputs);
      long n = inputs.get(0).shape()[0];
      return Arrays.asList(new TensorType(DType.I64, n), new TensorType(DType.F32, n, 0));
    }, (inputs, attributes, outputs) -> {
      given.set(inputs);
      taken.set(outputs);
      for (int i = 0; i < outputs.get(0).elements(); ++i) outputs.get(0).buffer().putLong(8 * i, i + inputs.get(1).longs()[0]);
      inputs.get(0).buffer().putFloat(0, 99); // its own
    });
    try (Program program = open("joined.pnc"); Session session = Session.create(program, with(join))) {
      Map<String, Tensor> input = x(1, 2, 3, 4, 5, 6);
      Map<String, Tensor> outputs = session.run(input);
      assertArrayEquals(new long[] {2, 3}, outputs.get("p").longs());
      assertArrayEquals(new long[] {2, 0}, outputs.get("q").shape());
      assertEquals(1, input.get("x").floats()[0], 0);
      assertEquals("float32[2, 3]", given.get().get(0).toString());
      assertEquals("int64[]", given.get().get(1).toString());
      assertEquals(2, types.get().size());
      // What the function keeps is its own too: the session's memory is another.
      session.run(x(7, 8, 9));
      taken.get().get(0).buffer().putLong(0, 12);
    }
    join.close();
  }

  /** On threads that are not the JVM's, such as workers, and on several of the JVM's at once. */
  @Test
  public void severalSessionsAtOnce() throws Exception {
    Counts counts = new Counts();
    AtomicReference<Throwable> failed = new AtomicReference<>();
    try (CustomOp op = scale(counts); Program program = open("scaled.pnc")) {
      Thread[] threads = new Thread[4];
      for (int t = 0; t < threads.length; ++t) {
        threads[t] = new Thread(() -> {
          try (Session session = Session.create(program, with(op))) {
            for (int i = 0; i < 50; ++i) {
              assertArrayEquals(new float[] {15 * i, 30, 45}, session.run(x(i, 2, 3)).get("y").floats(), 0);
            }
          } catch (Throwable failure) {
            failed.set(failure);
          }
        });
        threads[t].start();
      }
      for (Thread thread : threads) thread.join();
    }
    assertNull(String.valueOf(failed.get()), failed.get());
    assertEquals(400, counts.runs.get());
  }

  private static void runs(CustomOp op) {
    try (Program program = open("scaled.pnc"); Session session = Session.create(program, with(op))) {
      session.run(x(1, 2, 3));
    } finally {
      op.close();
    }
  }

  private static CustomOp shaped(CustomOp.Shape shape) {
    return new CustomOp("mylib.scale", 1, shape, NOTHING);
  }

  private static CustomOp computed(CustomOp.Reference reference) {
    return new CustomOp("mylib.scale", 1, (inputs, attributes) -> inputs, reference);
  }

  private static final class Mute extends RuntimeException {
    private static final long serialVersionUID = 1;

    @Override
    public String getMessage() {
      throw new IllegalStateException("no message");
    }
  }

  @Test
  public void whatTheFunctionsThrow() {
    wrong("shape function: java.lang.IllegalStateException: boom", () -> runs(shaped((inputs, attributes) -> {
      throw new IllegalStateException("boom");
    })));
    wrong("reference function: java.lang.IllegalStateException: boom", () -> runs(computed((inputs, attributes, outputs) -> {
      throw new IllegalStateException("boom");
    })));
    thrown(PinnaceException.Unsupported.class, "not today", () -> runs(computed((inputs, attributes, outputs) -> {
      throw new UnsupportedOperationException("not today");
    })));
    thrown(PinnaceException.OutOfMemory.class, "reference function", () -> runs(computed((inputs, attributes, outputs) -> {
      throw new OutOfMemoryError("none left");
    })));
    wrong("StackOverflowError", () -> runs(computed(new CustomOp.Reference() {
      @Override
      public void compute(List<Tensor> inputs, Map<String, String> attributes, List<Tensor> outputs) {
        compute(inputs, attributes, outputs);
      }
    })));
    wrong("AssertionError", () -> runs(computed((inputs, attributes, outputs) -> {
      throw new AssertionError();
    })));
    wrong("Mute", () -> runs(computed((inputs, attributes, outputs) -> {
      throw new Mute();
    })));
    char[] long_text = new char[400];
    Arrays.fill(long_text, '\u00e9');
    wrong("\u00e9\u00e9", () -> runs(computed((inputs, attributes, outputs) -> {
      throw new RuntimeException("x" + new String(long_text));
    })));
    wrong("there is no place 7", () -> runs(computed((inputs, attributes, outputs) -> {
      throw new PinnaceException.InvalidArgument("there is no place 7");
    })));
    // The session goes on.
    boolean[] good = {false};
    CustomOp op = computed((inputs, attributes, outputs) -> {
      if (!good[0]) throw new IllegalStateException("boom");
      outputs.get(0).buffer().put(inputs.get(0).buffer());
    });
    try (Program program = open("scaled.pnc"); Session session = Session.create(program, with(op))) {
      wrong("boom", () -> session.run(x(1, 2, 3)));
      good[0] = true;
      assertArrayEquals(new float[] {1, 2, 3}, session.run(x(1, 2, 3)).get("y").floats(), 0);
      thrown(java.util.concurrent.ExecutionException.class, "boom", () -> {
        good[0] = false;
        session.runAsync(x(1, 2, 3)).get();
      });
    }
    op.close();
  }

  @Test
  public void misuse() {
    CustomOp.Shape same = (inputs, attributes) -> inputs;
    wrong("the name is null", () -> new CustomOp(null, 1, same, NOTHING));
    wrong("the name is empty", () -> new CustomOp("", 1, same, NOTHING));
    wrong("null character", () -> new CustomOp("a\0b", 1, same, NOTHING));
    wrong("'a.b' has 0 outputs", () -> new CustomOp("a.b", 0, same, NOTHING));
    wrong("shape function is null", () -> new CustomOp("a.b", 1, null, NOTHING));
    wrong("reference function is null", () -> new CustomOp("a.b", 1, same, null));
    wrong("operators are null", () -> new Options().ops(null));
    wrong("an operator is null", () -> new Options().ops(Collections.<CustomOp>singletonList(null)));
    wrong("dtype is null", () -> new TensorType(null, 1));
    wrong("shape is null", () -> new TensorType(DType.F32, (long[]) null));
    wrong("below -1", () -> new TensorType(DType.F32, -2));
    wrong("rank 33", () -> new TensorType(DType.F32, new long[33]));
    wrong("types are null", () -> runs(shaped((inputs, attributes) -> null)));
    wrong("must give 1", () -> runs(shaped((inputs, attributes) -> Collections.<TensorType>emptyList())));
    wrong("type of an output is null", () -> runs(shaped((inputs, attributes) -> Collections.<TensorType>singletonList(null))));
    wrong("mylib.scale", () ->
        runs(shaped((inputs, attributes) -> Arrays.asList(new TensorType(DType.F32, 1L << 40, 1L << 40)))));
    wrong("output 'y' would be int64[1,3], the program says float32[?,3]", () ->
        runs(shaped((inputs, attributes) -> Arrays.asList(new TensorType(DType.I64, inputs.get(0).shape())))));
    wrong("IndexOutOfBounds", () -> runs(computed((inputs, attributes, outputs) -> outputs.get(7))));
    try (Program program = open("scaled.pnc")) {
      thrown(PinnaceException.class, "mylib.scale", () -> Session.create(program));
      CustomOp relu = new CustomOp("relu", 1, same, NOTHING);
      wrong("'relu' has the name of a built-in one", () -> Session.create(program, with(relu)));
      Counts counts = new Counts();
      CustomOp op = scale(counts);
      wrong("is given twice", () -> Session.create(program, with(op, op)));
      relu.close();
      wrong("the operator is closed", () -> Session.create(program, with(op, relu)));
      op.close();
    }
  }
}
