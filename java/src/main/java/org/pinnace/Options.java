package org.pinnace;

import androidx.annotation.NonNull;
import java.util.ArrayList;
import java.util.Collections;
import java.util.List;

/** How a program is to be run. Every setter gives the object itself. Not safe for several threads while it is changed. */
public final class Options {
  private String target = "auto";
  private String precision = "fp32";
  private int threads = 0;
  private boolean fallback = true;
  private int planCache = 8;
  private boolean requirePayload = false;
  private boolean shapeInvariant = false;
  private List<String> keep = Collections.emptyList();
  private List<CustomOp> ops = Collections.emptyList();
  private Service service = new Service();

  /** Options that are all at their defaults. */
  public Options() {}

  /**
   * {@code "auto"} (the default), one target ({@code "cpu"}, {@code "nnapi"}), or several in order of preference, separated
   * by commas. Nodes that these do not take go to the CPU, each with a reason in {@link Session#placement}.
   */
  @NonNull
  public Options target(@NonNull String target) {
    this.target = target;
    return this;
  }

  /** The smallest floats that products read: {@code "fp32"} (the default), {@code "fp16"}, {@code "bf16"} or {@code "auto"}. */
  @NonNull
  public Options precision(@NonNull String precision) {
    this.precision = precision;
    return this;
  }

  /** Threads that one run may use, the caller's included; 0, the default: as many as the process may use processors. */
  @NonNull
  public Options threads(int threads) {
    this.threads = threads;
    return this;
  }

  /** False: {@link PinnaceException.Unsupported} rather than run a node elsewhere than asked. The default is true. */
  @NonNull
  public Options fallback(boolean fallback) {
    this.fallback = fallback;
    return this;
  }

  /** How many sets of input shapes keep their plan and memory; 8 unless set. */
  @NonNull
  public Options planCache(int sets) {
    this.planCache = sets;
    return this;
  }

  /** True: {@link PinnaceException.Unsupported} rather than pack weights that the file does not hold packed. */
  @NonNull
  public Options requirePayload(boolean require) {
    this.requirePayload = require;
    return this;
  }

  /**
   * True: an element of a result is computed by the same steps whatever else the run computes, so that chunks of a stream
   * give the bits of the full sequence, and parts of a batch those of the batch, with the exceptions of docs/streaming.md.
   * It is slower. The target "auto" then means the CPU and the precision "auto" fp32: {@link Session#create} throws
   * {@link PinnaceException.Unsupported} for another target and InvalidArgument for "fp16" and "bf16".
   */
  @NonNull
  public Options shapeInvariant(boolean invariant) {
    this.shapeInvariant = invariant;
    return this;
  }

  /** Names of inner values that become outputs, after the program's, in this order. */
  @NonNull
  public Options keep(@NonNull List<String> names) {
    if (names == null) throw new PinnaceException.InvalidArgument("the names are null");
    this.keep = new ArrayList<>(names);
    return this;
  }

  /** The application's own operators that the program's nodes may be. */
  @NonNull
  public Options ops(@NonNull List<CustomOp> ops) {
    if (ops == null) throw new PinnaceException.InvalidArgument("the operators are null");
    for (CustomOp op : ops) {
      if (op == null) throw new PinnaceException.InvalidArgument("an operator is null");
    }
    this.ops = new ArrayList<>(ops);
    return this;
  }

  /** Wishes about power, priority, time, folders, devices and processors, as they are now. */
  @NonNull
  public Options service(@NonNull Service service) {
    if (service == null) throw new PinnaceException.InvalidArgument("the service is null");
    this.service = service.copy();
    return this;
  }

  /** The operators, entered. @throws PinnaceException.InvalidArgument one is closed; none is entered then. */
  Handle[] enterOps() {
    Handle[] handles = new Handle[ops.size()];
    int entered = 0;
    try {
      for (; entered < handles.length; ++entered) {
        handles[entered] = ops.get(entered).handle;
        handles[entered].enter();
      }
    } finally {
      if (entered < handles.length) {
        while (entered > 0) handles[--entered].leave();
      }
    }
    return handles;
  }

  /** {@code ops}: what enterOps() gave. */
  long create(long program, Handle[] ops) {
    long[] pointers = new long[ops.length];
    for (int i = 0; i < ops.length; ++i) pointers[i] = ops[i].pointer();
    byte[][] names = new byte[keep.size()][];
    for (int i = 0; i < names.length; ++i) names[i] = Cells.of(keep.get(i), "a name to keep");
    int[] numbers = {threads, fallback ? 0 : 1, planCache, requirePayload ? 1 : 0, shapeInvariant ? 1 : 0};
    if (planCache < 1) throw new PinnaceException.InvalidArgument("a plan cache of " + planCache + " sets, needs 1 or more");
    byte[][] words = {
      Cells.of(target, "the target"),
      Cells.of(precision, "the precision"),
      Cells.of(service.preference, "the preference"),
      Cells.of(service.priority, "the priority"),
      Cells.of(service.cacheFolder, "the cache folder"),
      Cells.of(service.device, "the device")
    };
    long[] times = {service.deadlineNs, service.loopTimeoutNs};
    return Native.create(program, words, numbers, times, service.processors, names, pointers);
  }
}
