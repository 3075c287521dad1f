package org.pinnace;

import java.util.ArrayList;
import java.util.Collections;
import java.util.List;

/** What a program's metadata say of its streams; what is wrong with them is thrown to whoever asks. */
final class Streams {
  private final List<StreamedInput> inputs = new ArrayList<>();
  private final List<StreamedOutput> outputs = new ArrayList<>();
  private String wrong; // the sentence; null: nothing is

  Streams(long program) {
    try {
      Cells cells = new Cells(Native.streams(program));
      for (int count = cells.integer(); count > 0; --count) inputs.add(new StreamedInput(cells));
      while (cells.more()) outputs.add(new StreamedOutput(cells));
    } catch (PinnaceException.CorruptFile failure) {
      wrong = failure.getMessage();
    }
  }

  List<StreamedInput> inputs() {
    if (wrong != null) throw new PinnaceException.CorruptFile(wrong);
    return Collections.unmodifiableList(inputs);
  }

  List<StreamedOutput> outputs() {
    if (wrong != null) throw new PinnaceException.CorruptFile(wrong);
    return Collections.unmodifiableList(outputs);
  }

  /** Whether an input comes in chunks. */
  boolean has(String input) {
    for (StreamedInput one : inputs()) {
      if (one.name.equals(input)) return true;
    }
    return false;
  }

  /** The axis of time of an output; -1: it has none. */
  int axis(String output) {
    for (StreamedOutput one : outputs()) {
      if (one.name.equals(output)) return one.axis;
    }
    return -1;
  }
}
