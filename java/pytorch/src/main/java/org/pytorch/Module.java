package org.pytorch;

import java.nio.ByteBuffer;
import java.util.LinkedHashMap;
import java.util.Map;
import org.pinnace.Options;
import org.pinnace.PinnaceException;
import org.pinnace.Program;
import org.pinnace.Session;
import org.pinnace.Spec;

/**
 * A model of a {@code .pnc} file, ready to run.
 *
 * <p>Any thread may call it; calls take turns. Values that the model keeps from one call to the next (buffers that it writes to)
 * belong to the object: each module that is loaded has its own.
 */
public class Module {
  private final Program program;
  private final String target;
  private final Arguments arguments;
  private Session session;
  private int threads; // of the session
  private boolean destroyed = false;

  /** {@code bytes}: the whole file, on the heap; null: it is at the path. */
  Module(String path, ByteBuffer bytes, Device device) {
    if (path == null) throw new IllegalArgumentException("the path is null");
    if (device == null) throw new IllegalArgumentException("the device is null");
    try {
      program = bytes == null ? Program.open(path) : Program.open(bytes);
    } catch (PinnaceException.CorruptFile e) {
      throw Conversion.refusal(path, bytes, e);
    }
    target = device.target;
    arguments = new Arguments(program.inputs());
    boolean made = false;
    try {
      for (Spec output : program.outputs()) check(output);
      threads = PyTorchAndroid.threads();
      session = create(threads);
      made = true;
    } finally {
      if (!made) program.close();
    }
  }

  /**
   * Opens a {@code .pnc} file and makes it ready on a device.
   *
   * @param extraFiles null or empty: a {@code .pnc} has no extra files.
   * @param device where it runs: see {@link Device}.
   * @throws IllegalArgumentException an argument is null; extra files are asked for; or it is another file than a {@code .pnc},
   *     such as a {@code .ptl}, in which case the sentence has the command that converts it; or an output has an element type
   *     that {@link DType} does not have, such as bool.
   */
  public static Module load(String modelPath, Map<String, String> extraFiles, Device device) {
    if (extraFiles != null && !extraFiles.isEmpty()) {
      throw new IllegalArgumentException(
          "a .pnc has no extra files, asked for " + extraFiles.keySet() + ": ship them beside it and read them yourself");
    }
    return new Module(modelPath, null, device);
  }

  /** The same on the CPU, without extra files. */
  public static Module load(String modelPath) {
    return load(modelPath, null, Device.CPU);
  }

  /**
   * Runs the model once.
   *
   * @param inputs the arguments of the model's {@code forward}, in order, as far as they are tensors. In a tuple, a list or a map
   *     the tensors follow each other, those of a map by key. Numbers, texts and nulls that the model was converted with are part
   *     of it: leave these arguments out. Nulls at the end are left out for you; a number is taken for an input without
   *     dimensions of its type.
   * @return a tensor of one output, a tuple of several; {@link IValue} says how to get at maps and lists.
   * @throws IllegalArgumentException there are more or fewer tensors than inputs; dtype or shape of one is not the input's; or an
   *     argument is null or of a type that a {@code .pnc} does not take.
   * @throws IllegalStateException the module is destroyed.
   */
  public synchronized IValue forward(IValue... inputs) {
    if (destroyed) throw new IllegalStateException("the module is destroyed");
    int wanted = PyTorchAndroid.threads();
    if (threads != wanted) takeUp(wanted);
    Map<String, org.pinnace.Tensor> given = arguments.bind(inputs);
    Map<String, Tensor> outputs = new LinkedHashMap<>();
    try {
      for (Map.Entry<String, org.pinnace.Tensor> output : session.run(given).entrySet()) {
        outputs.put(output.getKey(), Tensor.of(output.getValue()));
      }
    } catch (PinnaceException.InvalidArgument e) {
      throw new IllegalArgumentException(e.getMessage(), e);
    }
    return IValue.ofOutputs(outputs);
  }

  /**
   * Runs {@code forward}, the only method that a {@code .pnc} has.
   *
   * @throws IllegalArgumentException it is the name of another method, or null. Other errors as {@link #forward}.
   */
  public IValue runMethod(String methodName, IValue... inputs) {
    if ("forward".equals(methodName)) return forward(inputs);
    throw new IllegalArgumentException("a .pnc has the method 'forward' alone, not '" + methodName
        + "': convert a module whose forward calls that method into a file of its own");
  }

  /** Frees it, after the calls that have it. Again: nothing happens. Without it, it is freed when it is collected. */
  public synchronized void destroy() {
    destroyed = true;
    session.close();
    program.close();
  }

  private static void check(Spec output) {
    if (DType.of(output.dtype) != null) return;
    throw new IllegalArgumentException("output '" + output.name + "' is " + output.dtype
        + ", of which org.pytorch has no tensors: let the model give another type, or use org.pinnace");
  }

  private Session create(int threads) {
    return Session.create(program, new Options().target(target).threads(threads));
  }

  /** A session has its number of threads for life; the next one shares its weights and takes its states over. */
  private void takeUp(int wanted) {
    Session next = create(wanted);
    boolean ready = false;
    try {
      for (Spec state : program.states()) next.setState(state.name, session.state(state.name));
      ready = true;
    } finally {
      (ready ? session : next).close();
    }
    session = next;
    threads = wanted;
  }
}
