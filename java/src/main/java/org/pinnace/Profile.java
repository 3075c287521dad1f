package org.pinnace;

import androidx.annotation.NonNull;
import java.util.ArrayList;
import java.util.Collections;
import java.util.List;
import java.util.Map;

/** One run with what each node took. */
public final class Profile {
  /** One timed node. */
  public static final class Event {
    /** Its name. */
    @NonNull public final String node;
    /** Its operator. */
    @NonNull public final String op;
    /** Where it ran. */
    @NonNull public final String backend;
    /** What ran it there. */
    @NonNull public final String kernel;
    /** The submodule of the source model that it belongs to; may be empty. */
    @NonNull public final String module;
    /** When it began, in nanoseconds since the run's start. */
    public final long startNs;
    /** How long it took, in nanoseconds. */
    public final long durationNs;

    Event(Cells cells) {
      node = cells.text();
      op = cells.text();
      backend = cells.text();
      kernel = cells.text();
      module = cells.text();
      startNs = cells.number();
      durationNs = cells.number();
    }
  }

  /** The nodes in order of start. */
  @NonNull public final List<Event> events;
  /** What {@link Session#run} would have given. */
  @NonNull public final Map<String, Tensor> outputs;

  Profile(byte[] cells, Map<String, Tensor> outputs) {
    Cells list = new Cells(cells);
    List<Event> all = new ArrayList<>();
    while (list.more()) all.add(new Event(list));
    events = Collections.unmodifiableList(all);
    this.outputs = outputs;
  }
}
