package org.pinnace;

import static org.junit.Assert.assertEquals;
import static org.junit.Assert.assertTrue;

import java.io.File;
import java.io.IOException;
import java.util.Collections;
import java.util.Map;
import org.junit.Test;

/** Many runs under a heap that is collected again and again: neither the heap nor the process grows. */
public class EnduranceTest {
  @Test
  public void doesNotGrow() throws IOException {
    int runs = Integer.getInteger("pinnace.runs", 5000);
    File file = new File(System.getProperty("pinnace.tests"), "counter.pnc");
    try (Program program = Program.open(file.getPath());
        Session session = Session.create(program, new Options().target("cpu").threads(1))) {
      Map<String, Tensor> inputs = Collections.singletonMap("x", Tensor.of(new float[24], 8, 3));
      long before = 0;
      int collections = runs / 20;
      for (int i = 0; i < runs; ++i) {
        float[] y = session.run(inputs).get("y").floats();
        assertEquals(i + 1, y[23], 0);
        if (i % collections == 0) System.gc();
        if (i == runs / 5) before = HeldMemory.bytes();
      }
      System.gc();
      long grown = HeldMemory.bytes() - before;
      assertTrue("the process holds " + grown + " bytes more after " + runs + " runs", grown < 6 << 20);
    }
  }
}
