package org.pinnace;

import java.io.File;
import java.util.Collections;
import java.util.Map;

/**
 * A process that ends while runs of the library call Java: {@code operator} computes an operator of the application, {@code sink}
 * takes messages. {@code scaled.pnc} is as {@link CustomOpTest} says.
 */
public final class Exits {
  private Exits() {}

  public static void main(String[] arguments) throws Exception {
    boolean sink = arguments[0].equals("sink");
    File file = new File(System.getProperty("pinnace.tests"), "scaled.pnc");
    CustomOp op = new CustomOp("mylib.scale", 1, (inputs, attributes) -> inputs, (inputs, attributes, outputs) -> {
      if (!sink) pause();
    });
    if (sink) Log.setSink((level, text) -> pause(), Log.Level.TRACE);
    Program program = Program.open(file.getPath());
    Map<String, Tensor> x = Collections.singletonMap("x", Tensor.of(new float[24], 8, 3));
    for (int i = 0; i < 3; ++i) {
      Options options = new Options().target("cpu").threads(2).ops(Collections.singletonList(op));
      Session session = Session.create(program, options);
      Thread runs = new Thread(() -> {
        for (;;) session.runAsync(x).join();
      });
      runs.setDaemon(true);
      runs.start();
    }
    Thread.sleep(100);
    if (arguments[1].equals("exit")) System.exit(7);
  }

  private static void pause() {
    try {
      Thread.sleep(1);
    } catch (InterruptedException e) {
      throw new IllegalStateException(e);
    }
  }
}
