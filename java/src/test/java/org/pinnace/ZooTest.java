package org.pinnace;

import static org.junit.Assert.assertArrayEquals;
import static org.junit.Assert.assertEquals;
import static org.junit.Assert.assertTrue;

import java.io.File;
import java.io.IOException;
import java.nio.file.Files;
import java.util.Arrays;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import org.junit.Test;

/**
 * Programs that Python has run, with its inputs and outputs as bytes: the folder that the property {@code pinnace.tests}
 * names has a folder for each, with {@code net.pnc}, {@code tensors.txt} (kind, name, dtype and sizes in a line) and a file
 * for each of its lines.
 */
public class ZooTest {
  private static Tensor tensor(String[] words, byte[] bytes) {
    long[] shape = new long[words.length - 3];
    for (int d = 0; d < shape.length; ++d) shape[d] = Long.parseLong(words[3 + d]);
    for (DType dtype : DType.values()) {
      if (!dtype.toString().equals(words[2])) continue;
      Tensor made = Tensor.allocate(dtype, shape);
      made.buffer().put(bytes);
      return made;
    }
    throw new AssertionError("no dtype " + words[2]);
  }

  static int check(File folder) throws IOException {
    Map<String, Tensor> inputs = new LinkedHashMap<>();
    Map<String, Tensor> wanted = new LinkedHashMap<>();
    List<String> lines = Files.readAllLines(new File(folder, "tensors.txt").toPath());
    for (int i = 0; i < lines.size(); ++i) {
      String[] words = lines.get(i).split(" ");
      Tensor made = tensor(words, Files.readAllBytes(new File(folder, i + ".bin").toPath()));
      (words[0].equals("input") ? inputs : wanted).put(words[1], made);
    }
    try (Program program = Program.open(new File(folder, "net.pnc").getPath());
        Session session = Session.create(program, new Options().target("cpu").threads(2))) {
      Map<String, Tensor> outputs = session.run(inputs);
      assertEquals(wanted.keySet(), outputs.keySet());
      for (String name : wanted.keySet()) {
        String where = folder.getName() + ", output " + name;
        assertEquals(where, wanted.get(name).toString(), outputs.get(name).toString());
        assertArrayEquals(where, wanted.get(name).toBytes(), outputs.get(name).toBytes());
      }
      // Into memory of the caller.
      Map<String, Tensor> own = new LinkedHashMap<>();
      for (Map.Entry<String, Tensor> output : wanted.entrySet()) {
        own.put(output.getKey(), Tensor.allocate(output.getValue().dtype(), output.getValue().shape()));
      }
      for (Spec state : program.states()) session.setState(state.name, initial(program, state));
      session.run(inputs, own, new RunOptions());
      for (String name : wanted.keySet()) assertArrayEquals(wanted.get(name).toBytes(), own.get(name).toBytes());
    }
    return wanted.size();
  }

  private static Tensor initial(Program program, Spec state) {
    try (Session fresh = Session.create(program)) {
      return fresh.state(state.name);
    }
  }

  @Test
  public void givesTheBitsOfPython() throws IOException {
    File[] folders = new File(System.getProperty("pinnace.tests"), "zoo").listFiles();
    assertTrue("there are no programs", folders != null && folders.length > 0);
    Arrays.sort(folders);
    for (File folder : folders) assertTrue(check(folder) > 0);
  }
}
