package org.pinnace;

import androidx.annotation.NonNull;
import java.io.FileDescriptor;
import java.nio.ByteBuffer;
import java.util.ArrayList;
import java.util.Collections;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;

/**
 * What a {@code .pnc} file holds: verified and immutable. Any number of threads may use it at once.
 *
 * <p>Sessions keep what they need of it: it may be closed before them. One that is not closed is freed when it is collected.
 */
public final class Program implements AutoCloseable {
  /** When the hashes of weights are checked; everything else always is when a program is opened. */
  public enum Verify {
    /** All at once. */
    FULL,
    /** Each before its first use: a session that meets a damaged one is not created. */
    ON_USE,
    /** Not at all. */
    STRUCTURE
  }

  final Handle handle;
  private final List<Symbol> symbols;
  private final List<Spec> inputs;
  private final List<Spec> outputs;
  private final List<Spec> states;
  final Streams streams;

  private Program(long pointer) {
    handle = new Handle(this, Handle.PROGRAM, "program", pointer);
    Cells cells = new Cells(Native.specs(pointer));
    List<Symbol> named = new ArrayList<>();
    for (int count = cells.integer(); count > 0; --count) named.add(new Symbol(cells));
    symbols = Collections.unmodifiableList(named);
    inputs = specs(cells);
    outputs = specs(cells);
    states = specs(cells);
    streams = new Streams(pointer);
  }

  private List<Spec> specs(Cells cells) {
    List<Spec> list = new ArrayList<>();
    for (int count = cells.integer(); count > 0; --count) list.add(new Spec(cells, symbols));
    return Collections.unmodifiableList(list);
  }

  /**
   * Maps a file, whose weights stay there: memory grows with nodes. Do not change the file while the program is in use.
   *
   * @throws PinnaceException.FileFailure it cannot be read.
   * @throws PinnaceException.CorruptFile its bytes break the format.
   * @throws PinnaceException.Unsupported the format, or an operator, is newer than this library.
   */
  @NonNull
  public static Program open(@NonNull String path) {
    return open(path, Verify.ON_USE);
  }

  /** The same with the choice of what is verified when. */
  @NonNull
  public static Program open(@NonNull String path, @NonNull Verify verify) {
    return new Program(Native.openPath(Cells.of(path, "the path"), number(verify)));
  }

  /**
   * The program that lies between a buffer's position and its limit; it is copied. Any buffer will do. Errors as above.
   */
  @NonNull
  public static Program open(@NonNull ByteBuffer bytes) {
    if (bytes == null) throw new PinnaceException.InvalidArgument("the buffer is null");
    ByteBuffer from = bytes;
    if (!bytes.isDirect()) {
      from = ByteBuffer.allocateDirect(Math.max(1, bytes.remaining()));
      from.put(bytes.duplicate());
      from.flip();
    }
    return new Program(Native.openBytes(from, from.position(), from.remaining(), number(Verify.FULL)));
  }

  /** The same of a whole file that is open for reading. The descriptor may be closed afterwards. Errors as above. */
  @NonNull
  public static Program open(@NonNull FileDescriptor descriptor) {
    return open(descriptor, 0, -1);
  }

  /**
   * The program that is a part of a file, such as an asset of an Android package: {@code length} bytes from {@code offset}
   * on; -1: to the file's end. It is mapped where it begins at a multiple of 64 bytes, else copied.
   *
   * @throws PinnaceException.InvalidArgument the part is not inside the file. Other errors as above.
   */
  @NonNull
  public static Program open(@NonNull FileDescriptor descriptor, long offset, long length) {
    if (descriptor == null) throw new PinnaceException.InvalidArgument("the descriptor is null");
    return new Program(Native.openDescriptor(descriptor, offset, length, number(Verify.ON_USE)));
  }

  private static int number(Verify verify) {
    if (verify == null) throw new PinnaceException.InvalidArgument("verify is null");
    return verify.ordinal();
  }

  /** The inputs in order. */
  @NonNull
  public List<Spec> inputs() {
    return inputs;
  }

  /** The outputs in order. */
  @NonNull
  public List<Spec> outputs() {
    return outputs;
  }

  /** Values that a session keeps from one run to the next. */
  @NonNull
  public List<Spec> states() {
    return states;
  }

  /** Named dimensions. */
  @NonNull
  public List<Symbol> symbols() {
    return symbols;
  }

  /**
   * Inputs that runs take in chunks, of a program that was loaded as a stream; empty: a run takes the whole.
   *
   * @throws PinnaceException.CorruptFile the metadata have them in another form than they are written in.
   */
  @NonNull
  public List<StreamedInput> streamedInputs() {
    return streams.inputs();
  }

  /** The outputs of such a program. Errors as above. */
  @NonNull
  public List<StreamedOutput> streamedOutputs() {
    return streams.outputs();
  }

  /** Facts that were recorded at conversion, sorted by key. @throws PinnaceException.InvalidArgument it is closed. */
  @NonNull
  public Map<String, String> metadata() {
    long pointer = handle.enter();
    try {
      Cells cells = new Cells(Native.metadata(pointer));
      Map<String, String> facts = new LinkedHashMap<>();
      while (cells.more()) {
        String key = cells.text();
        facts.put(key, cells.text());
      }
      return Collections.unmodifiableMap(facts);
    } finally {
      handle.leave();
    }
  }

  /** Frees it, after the calls that have it. Again: nothing happens. */
  @Override
  public void close() {
    handle.close();
  }
}
