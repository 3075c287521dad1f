package org.pinnace;

import androidx.annotation.NonNull;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Collections;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;

/**
 * An operator of the application, beside the built-in ones, for {@link Options#ops}.
 *
 * <pre>{@code
 * CustomOp scale = new CustomOp("mylib.scale", 1, (inputs, attributes) -> inputs, (inputs, attributes, outputs) -> {
 *   FloatBuffer x = inputs.get(0).buffer().asFloatBuffer(), y = outputs.get(0).buffer().asFloatBuffer();
 *   float factor = Float.parseFloat(attributes.get("factor"));
 *   while (x.hasRemaining()) y.put(x.get() * factor);
 * });
 * Session session = Session.create(program, new Options().ops(Collections.singletonList(scale)));
 * }</pre>
 *
 * <p>Both functions must be pure. They may be called on any thread, on several at once, and must not use a session that waits for
 * them. What they throw ends the run, or the making of the session, with a {@link PinnaceException} whose sentence names the node
 * and has the exception's class and message: {@link PinnaceException.Unsupported} of an {@link UnsupportedOperationException},
 * {@link PinnaceException.OutOfMemory} of an {@link OutOfMemoryError}, else {@link PinnaceException.InvalidArgument}.
 *
 * <p>Sessions keep what they need of it: it may be closed before them. One that is not closed is freed when it is collected.
 */
public final class CustomOp implements AutoCloseable {
  /** Gives the types of the outputs. */
  public interface Shape {
    /**
     * One type for each output.
     *
     * @param inputs the inputs' types, in order; sizes may be unknown.
     * @param attributes of the node; numbers and lists as the text form of graphs writes them.
     */
    @NonNull
    List<TensorType> types(@NonNull List<TensorType> inputs, @NonNull Map<String, String> attributes);
  }

  /** Computes the outputs. */
  public interface Reference {
    /**
     * Fills the outputs.
     *
     * @param inputs in order; copies, which are the function's own.
     * @param attributes as {@link Shape} gets them.
     * @param outputs of the types that {@link Shape} gave, filled with zeros; what is in them on return is the result.
     */
    void compute(
        @NonNull List<Tensor> inputs, @NonNull Map<String, String> attributes, @NonNull List<Tensor> outputs);
  }

  /** What native code has. It must not have the operator itself, which would never be collected. */
  static final class Functions {
    final Shape shape;
    final Reference reference;

    Functions(Shape shape, Reference reference) {
      this.shape = shape;
      this.reference = reference;
    }
  }

  private static final int LONGEST_MESSAGE = 255; // in bytes

  final Handle handle;

  /**
   * An operator that the source model calls {@code name}: {@code "mylib.scale"} for PyTorch's {@code torch.ops.mylib.scale}.
   *
   * @throws PinnaceException.InvalidArgument an argument is null, the name is empty, or there are fewer than 1 outputs. That the
   *     name is a built-in one's, {@link Session#create} says.
   */
  public CustomOp(@NonNull String name, int outputs, @NonNull Shape shape, @NonNull Reference reference) {
    byte[] text = Cells.of(name, "the name");
    if (name.isEmpty()) throw new PinnaceException.InvalidArgument("the name is empty");
    if (outputs < 1) {
      throw new PinnaceException.InvalidArgument("operator '" + name + "' has " + outputs + " outputs, needs 1 or more");
    }
    if (shape == null) throw new PinnaceException.InvalidArgument("the shape function is null");
    if (reference == null) throw new PinnaceException.InvalidArgument("the reference function is null");
    handle = new Handle(this, Handle.OP, "operator", Native.customOp(text, outputs, new Functions(shape, reference)));
  }

  /** Frees it, after the sessions that have it. Again: nothing happens. */
  @Override
  public void close() {
    handle.close();
  }

  // ---- what native code calls ---------------------------------------------------------------------------------------

  /**
   * One call.
   *
   * @param packed of each input and then of each output: dtype, rank and sizes.
   * @param memory their direct buffers, which end with the call; null where one has none. Null: the types are asked for.
   * @param given where the types go: of each output dtype, rank and room for 32 sizes.
   * @return null: done. Else the code of a failure, and the sentence in UTF-8.
   */
  static byte[] called(
      Object functions, int inputCount, int outputCount, long[] packed, Object[] memory, byte[] attributes, long[] given) {
    try {
      Functions ours = (Functions) functions;
      Map<String, String> texts = new LinkedHashMap<>();
      for (Cells cells = new Cells(attributes); cells.more(); ) {
        String key = cells.text();
        texts.put(key, cells.text());
      }
      texts = Collections.unmodifiableMap(texts);
      if (memory == null) shape(ours, inputCount, outputCount, packed, texts, given);
      else compute(ours, inputCount, outputCount, packed, memory, texts);
      return null;
    } catch (Throwable failure) { // nothing is thrown through native code
      return message(failure);
    }
  }

  private static void shape(
      Functions ours, int inputCount, int outputCount, long[] packed, Map<String, String> attributes, long[] given) {
    List<TensorType> inputs = new ArrayList<>();
    for (int i = 0, at = 0; i < inputCount; ++i, at = next(packed, at)) {
      inputs.add(new TensorType(DType.of((int) packed[at]), sizes(packed, at)));
    }
    List<TensorType> types = ours.shape.types(inputs, attributes);
    if (types == null) throw new PinnaceException.InvalidArgument("the types are null");
    if (types.size() != outputCount) {
      throw new PinnaceException.InvalidArgument("gave " + types.size() + " outputs, must give " + outputCount);
    }
    int at = 0;
    for (TensorType type : types) {
      if (type == null) throw new PinnaceException.InvalidArgument("the type of an output is null");
      long[] shape = type.shape();
      given[at] = type.dtype.ordinal();
      given[at + 1] = shape.length;
      System.arraycopy(shape, 0, given, at + 2, shape.length);
      at += 2 + Tensor.MAX_RANK;
    }
  }

  private static void compute(
      Functions ours, int inputCount, int outputCount, long[] packed, Object[] memory, Map<String, String> attributes) {
    List<Tensor> tensors = new ArrayList<>();
    for (int i = 0, at = 0; i < inputCount + outputCount; ++i, at = next(packed, at)) {
      Tensor copy = Tensor.allocate(DType.of((int) packed[at]), sizes(packed, at));
      if (i < inputCount && memory[i] != null) copy.buffer().put(view(memory[i]));
      tensors.add(copy);
    }
    List<Tensor> outputs = tensors.subList(inputCount, inputCount + outputCount);
    ours.reference.compute(
        Collections.unmodifiableList(tensors.subList(0, inputCount)), attributes, Collections.unmodifiableList(outputs));
    for (int i = 0; i < outputCount; ++i) {
      if (memory[inputCount + i] != null) view(memory[inputCount + i]).put(outputs.get(i).buffer());
    }
  }

  private static ByteBuffer view(Object memory) {
    return ((ByteBuffer) memory).order(ByteOrder.nativeOrder());
  }

  private static long[] sizes(long[] packed, int at) {
    return Arrays.copyOfRange(packed, at + 2, at + 2 + (int) packed[at + 1]);
  }

  private static int next(long[] packed, int at) {
    return at + 2 + (int) packed[at + 1];
  }

  /** One byte for the code, then the sentence, cut between two characters where it is too long. */
  private static byte[] message(Throwable failure) {
    int code = 1;
    if (failure instanceof OutOfMemoryError || failure instanceof PinnaceException.OutOfMemory) code = 4;
    if (failure instanceof UnsupportedOperationException || failure instanceof PinnaceException.Unsupported) code = 2;
    String said;
    try {
      said = failure instanceof PinnaceException ? failure.getMessage() : failure.toString();
      if (said == null) said = failure.getClass().getName();
    } catch (Throwable another) { // of a getMessage() that throws itself
      said = failure.getClass().getName();
    }
    byte[] text = said.replace('\0', ' ').getBytes(StandardCharsets.UTF_8);
    int end = Math.min(text.length, LONGEST_MESSAGE);
    while (end < text.length && end > 0 && (text[end] & 0xc0) == 0x80) --end;
    byte[] all = new byte[1 + end];
    all[0] = (byte) code;
    System.arraycopy(text, 0, all, 1, end);
    return all;
  }
}
