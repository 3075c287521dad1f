package org.pinnace;

import androidx.annotation.NonNull;
import java.util.ArrayList;
import java.util.Collections;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.Executor;
import java.util.concurrent.Executors;
import java.util.concurrent.ThreadFactory;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicBoolean;

/**
 * A program made ready for a target, with memory and states of its own; sessions of one program share its weights.
 *
 * <p>One thread at a time runs it, or reads or writes its states: a second one gets {@link PinnaceException.InvalidArgument}.
 * What describes it (outputs, placement, plan, precision) may be called from any thread at any time. Every method of a
 * closed session but {@link #outputs} throws {@link PinnaceException.InvalidArgument}. One that is not closed is freed when it is collected.
 */
public final class Session implements AutoCloseable {
  private static final Executor THREADS =
      Executors.newCachedThreadPool(
          new ThreadFactory() {
            @Override
            public Thread newThread(Runnable work) {
              Thread thread = new Thread(work, "pinnace run");
              thread.setDaemon(true);
              return thread;
            }
          });

  private final Handle handle;
  private final List<Spec> inputs;
  private final List<Spec> states;
  private final List<Spec> outputSpecs; // without those that were kept
  private final Streams streams;
  private final List<String> outputNames;
  private final AtomicBoolean busy = new AtomicBoolean();

  private Session(Program program, long programPointer, Options options) {
    Handle[] ops = options.enterOps();
    long pointer = 0;
    try {
      pointer = options.create(programPointer, ops);
    } finally {
      if (pointer == 0) {
        for (Handle op : ops) op.leave();
      }
    }
    handle = new Handle(this, Handle.SESSION, "session", pointer, ops);
    inputs = program.inputs();
    outputSpecs = program.outputs();
    states = program.states();
    streams = program.streams;
    List<String> names = new ArrayList<>();
    Cells cells = new Cells(Native.outputs(pointer));
    while (cells.more()) names.add(cells.text());
    outputNames = Collections.unmodifiableList(names);
  }

  private Session(Session of, long pointer) {
    handle = new Handle(this, Handle.SESSION, "session", pointer, of.handle.enterNeeded());
    inputs = of.inputs;
    outputSpecs = of.outputSpecs;
    states = of.states;
    streams = of.streams;
    outputNames = of.outputNames;
  }

  /** A session with all options at their defaults. Errors as below. */
  @NonNull
  public static Session create(@NonNull Program program) {
    return create(program, new Options());
  }

  /**
   * Makes a program ready.
   *
   * @throws PinnaceException.InvalidArgument an option is unknown, or the program is closed.
   * @throws PinnaceException.Unsupported a target is not there, or a node cannot run as asked; nodes() has every one.
   * @throws PinnaceException.CorruptFile a weight that is needed is damaged.
   */
  @NonNull
  public static Session create(@NonNull Program program, @NonNull Options options) {
    if (program == null) throw new PinnaceException.InvalidArgument("the program is null");
    if (options == null) throw new PinnaceException.InvalidArgument("the options are null");
    long pointer = program.handle.enter();
    try {
      return new Session(program, pointer, options);
    } finally {
      program.handle.leave();
    }
  }

  /** Names of the program's outputs, then of those that {@link Options#keep} added. */
  @NonNull
  public List<String> outputs() {
    return outputNames;
  }

  /**
   * Runs the program once and waits for it.
   *
   * @param inputs one tensor for each input, by name; borrowed until return.
   * @return the outputs by name, in order, in memory of their own.
   * @throws PinnaceException.InvalidArgument a name, type, shape or declared range is violated, or the session runs on
   *     another thread; outputs and states are untouched.
   * @throws PinnaceException.DeviceLost make a new session.
   */
  @NonNull
  public Map<String, Tensor> run(@NonNull Map<String, Tensor> inputs) {
    return run(inputs, new RunOptions());
  }

  /** The same, for as long as {@code options} allow: else {@link PinnaceException.Cancelled}. */
  @NonNull
  public Map<String, Tensor> run(@NonNull Map<String, Tensor> inputs, @NonNull RunOptions options) {
    Call call = new Call(inputs, null, options);
    claim();
    try {
      return call.run(false).outputs;
    } finally {
      busy.set(false);
    }
  }

  /**
   * The same into memory of the caller, without a copy.
   *
   * @param outputs one tensor for each output, by name, of the type that this run gives; written in full. They may not
   *     overlap inputs or each other.
   */
  public void run(@NonNull Map<String, Tensor> inputs, @NonNull Map<String, Tensor> outputs, @NonNull RunOptions options) {
    if (outputs == null) throw new PinnaceException.InvalidArgument("the outputs are null");
    Call call = new Call(inputs, outputs, options);
    claim();
    try {
      call.run(false);
    } finally {
      busy.set(false);
    }
  }

  /** Runs on a thread of pinnace's. See below. */
  @NonNull
  public CompletableFuture<Map<String, Tensor>> runAsync(@NonNull Map<String, Tensor> inputs) {
    return runAsync(inputs, new RunOptions(), THREADS);
  }

  /**
   * Runs on a thread of {@code executor}. From this call on the session is busy; the inputs are borrowed until the future
   * completes, and must not be written to before.
   *
   * <p>cancel() of the future asks the run to stop, as does whatever else completes it early, such as orTimeout(). The session is
   * free when the run has stopped, a few tens of milliseconds later at most.
   *
   * @return completes with what {@link #run} gives, or with the exception that it throws.
   * @throws PinnaceException.InvalidArgument at once: a name or an argument is wrong, or the session runs already.
   */
  @NonNull
  public CompletableFuture<Map<String, Tensor>> runAsync(
      @NonNull Map<String, Tensor> inputs, @NonNull RunOptions options, @NonNull Executor executor) {
    if (executor == null) throw new PinnaceException.InvalidArgument("the executor is null");
    if (options == null) throw new PinnaceException.InvalidArgument("the options are null");
    if (options.token != null) {
      throw new PinnaceException.InvalidArgument("a run of runAsync is cancelled by its future, not by a token");
    }
    handle.enter(); // closed: at once
    handle.leave();
    final RunFuture future = new RunFuture();
    final Call call = new Call(inputs, null, new RunOptions().timeout(options.timeoutNs, TimeUnit.NANOSECONDS).cancel(future.token));
    claim();
    boolean started = false;
    try {
      executor.execute(
          new Runnable() {
            @Override
            public void run() {
              Map<String, Tensor> outputs = null;
              Throwable failure = null;
              try {
                outputs = call.run(false).outputs;
              } catch (Throwable thrown) {
                failure = thrown;
              }
              busy.set(false); // before those who wait go on
              future.token.close();
              if (failure == null) future.complete(outputs);
              else future.completeExceptionally(failure);
            }
          });
      started = true;
    } finally {
      if (!started) {
        busy.set(false);
        future.token.close();
      }
    }
    return future;
  }

  /** Runs once and records what each node took. Errors as {@link #run}. */
  @NonNull
  public Profile profile(@NonNull Map<String, Tensor> inputs) {
    Call call = new Call(inputs, null, new RunOptions());
    claim();
    try {
      return call.run(true);
    } finally {
      busy.set(false);
    }
  }

  /** One run's arguments, checked as far as names go. */
  private final class Call {
    private final Tensor[] tensors;
    private final long[] packedInputs;
    private final int outputCount;
    private final long[] packedOutputs;
    private final RunOptions options;

    Call(Map<String, Tensor> given, Map<String, Tensor> wanted, RunOptions options) {
      if (given == null) throw new PinnaceException.InvalidArgument("the inputs are null");
      if (options == null) throw new PinnaceException.InvalidArgument("the options are null");
      this.options = options;
      List<String> inputNames = new ArrayList<>();
      for (Spec input : inputs) inputNames.add(input.name);
      outputCount = wanted == null ? 0 : outputNames.size();
      tensors = new Tensor[inputNames.size() + outputCount];
      packedInputs = pack(given, inputNames, "input", 0);
      packedOutputs = wanted == null ? new long[0] : pack(wanted, outputNames, "output", inputNames.size());
    }

    private long[] pack(Map<String, Tensor> given, List<String> names, String what, int first) {
      int length = 0;
      for (int i = 0; i < names.size(); ++i) {
        Tensor tensor = given.get(names.get(i));
        if (tensor == null) throw new PinnaceException.InvalidArgument(what + " '" + names.get(i) + "' is missing");
        if (first > 0 && tensor.readOnly()) {
          throw new PinnaceException.InvalidArgument(what + " '" + names.get(i) + "' is in a buffer that cannot be written to");
        }
        tensors[first + i] = tensor;
        length += tensor.packedLength();
      }
      if (given.size() != names.size()) {
        for (String name : given.keySet()) {
          if (!names.contains(name)) throw new PinnaceException.InvalidArgument("there is no " + what + " '" + name + "'");
        }
      }
      long[] packed = new long[length];
      int at = 0;
      for (int i = 0; i < names.size(); ++i) at = tensors[first + i].pack(packed, at);
      return packed;
    }

    Map<String, Tensor> finish() {
      for (int i = 0, at = 0; i < inputs.size(); at += tensors[i++].packedLength()) {
        if (streams.has(inputs.get(i).name)) packedInputs[at] = 0; // no address: what it reads is the session's
      }
      long session = handle.enter();
      try {
        long token = options.token == null ? 0 : options.token.handle.enter();
        try {
          long[] rest = Native.finish(session, tensors, packedInputs, inputs.size(), token, options.timeoutNs);
          if (streams.inputs().get(0).tail == 0) return nothing();
          Map<String, Tensor> outputs = copyOutputs(session);
          for (int i = 0; i < outputSpecs.size(); ++i) {
            String name = outputSpecs.get(i).name;
            outputs.put(name, outputs.get(name).first(streams.axis(name), rest[i]));
          }
          return outputs;
        } finally {
          if (options.token != null) options.token.handle.leave();
        }
      } finally {
        handle.leave();
      }
    }

    Profile run(boolean profiled) {
      long session = handle.enter();
      try {
        long token = options.token == null ? 0 : options.token.handle.enter();
        try {
          byte[] events = new byte[0];
          if (profiled) {
            events = Native.profile(session, tensors, packedInputs, inputs.size(), packedOutputs, outputCount, token,
                options.timeoutNs);
          } else {
            Native.run(session, tensors, packedInputs, inputs.size(), packedOutputs, outputCount, token, options.timeoutNs);
          }
          return new Profile(events, outputCount > 0 ? Collections.<String, Tensor>emptyMap() : copyOutputs(session));
        } finally {
          if (options.token != null) options.token.handle.leave();
        }
      } finally {
        handle.leave();
      }
    }
  }

  private Map<String, Tensor> copyOutputs(long session) {
    Map<String, Tensor> outputs = new LinkedHashMap<>();
    for (int i = 0; i < outputNames.size(); ++i) {
      long[] type = Native.outputType(session, i);
      long[] shape = new long[type.length - 1];
      System.arraycopy(type, 1, shape, 0, shape.length);
      Tensor copy = Tensor.allocate(DType.of((int) type[0]), shape);
      Native.copyOutput(session, i, copy.buffer());
      outputs.put(outputNames.get(i), copy);
    }
    return outputs;
  }

  private void claim() {
    if (!busy.compareAndSet(false, true)) {
      throw new PinnaceException.InvalidArgument(
          "the session is running on another thread: make one session per thread, they share weights");
    }
  }

  /** The session for the calling thread alone, for calls of the library other than runs. */
  private final class Alone implements AutoCloseable {
    final long session;

    Alone() {
      claim();
      boolean entered = false;
      try {
        session = handle.enter();
        entered = true;
      } finally {
        if (!entered) busy.set(false);
      }
    }

    @Override
    public void close() {
      handle.leave();
      busy.set(false);
    }
  }

  /** Where each node runs, of the last run that succeeded or, before it, for the declared shapes. */
  @NonNull
  public List<Placement> placement() {
    long pointer = handle.enter();
    try {
      Cells cells = new Cells(Native.placement(pointer));
      List<Placement> rows = new ArrayList<>();
      while (cells.more()) rows.add(new Placement(cells));
      return Collections.unmodifiableList(rows);
    } finally {
      handle.leave();
    }
  }

  /** Sizes of the plan of the last run that succeeded. */
  @NonNull
  public PlanInfo plan() {
    long pointer = handle.enter();
    try {
      return new PlanInfo(Native.plan(pointer));
    } finally {
      handle.leave();
    }
  }

  /** {@code "fp32"}, {@code "fp16"} or {@code "bf16"}: what {@code "auto"} became on the CPU. */
  @NonNull
  public String precision() {
    long pointer = handle.enter();
    try {
      return new Cells(Native.precision(pointer)).text();
    } finally {
      handle.leave();
    }
  }

  /** A loop without a count of iterations that goes on for longer ends its run with Cancelled; 0, as at first: none does. */
  public void limitLoops(long time, @NonNull TimeUnit unit) {
    if (unit == null) throw new PinnaceException.InvalidArgument("the unit is null");
    try (Alone held = new Alone()) {
      Native.limitLoops(held.session, unit.toNanos(time));
    }
  }

  private int stateIndex(String name) {
    for (int i = 0; i < states.size(); ++i) {
      if (states.get(i).name.equals(name)) return i;
    }
    throw new PinnaceException.InvalidArgument("there is no state '" + name + "'");
  }

  /** A copy of a state after the last run that succeeded. @throws PinnaceException.InvalidArgument there is none of the name. */
  @NonNull
  public Tensor state(@NonNull String name) {
    int index = stateIndex(name);
    Tensor copy = Tensor.allocate(states.get(index).dtype, states.get(index).shape());
    withState(index, copy, false);
    return copy;
  }

  /** Copies a tensor of exactly the state's type in. @throws PinnaceException.InvalidArgument name or type differ. */
  public void setState(@NonNull String name, @NonNull Tensor value) {
    if (value == null) throw new PinnaceException.InvalidArgument("the value is null");
    withState(stateIndex(name), value, true);
  }

  private void withState(int index, Tensor tensor, boolean set) {
    long[] packed = new long[tensor.packedLength()];
    tensor.pack(packed, 0);
    try (Alone held = new Alone()) {
      if (set) Native.setState(held.session, index, tensor, packed);
      else Native.copyState(held.session, index, tensor, packed);
    }
  }

  /**
   * All states as bytes, from which {@link #restoreState} goes on: in any session of the same program, on any target, in
   * another process or on another machine too. They hold their hash and that of the program.
   *
   * @throws PinnaceException.DeviceLost a state lay in the memory of a device that was lost.
   */
  @NonNull
  public byte[] saveState() {
    try (Alone held = new Alone()) {
      return Native.saveState(held.session);
    }
  }

  /**
   * Goes on where {@link #saveState} was called. Nothing was changed where it throws.
   *
   * @throws PinnaceException.CorruptFile the bytes are damaged, or nothing that saveState gave.
   * @throws PinnaceException.InvalidArgument they are of a program with another graph or other weights.
   * @throws PinnaceException.Unsupported a newer version of pinnace saved them.
   */
  public void restoreState(@NonNull byte[] saved) {
    if (saved == null) throw new PinnaceException.InvalidArgument("the saved states are null");
    try (Alone held = new Alone()) {
      Native.restoreState(held.session, saved);
    }
  }

  /**
   * A second session with the same states, to be closed on its own. It shares weights and what was prepared; what either
   * runs from now on leaves the other alone.
   *
   * @throws PinnaceException.DeviceLost as {@link #saveState}.
   */
  @NonNull
  public Session fork() {
    try (Alone held = new Alone()) {
      return new Session(this, Native.fork(held.session));
    }
  }

  /** The same for a program whose inputs are all streams. See below. */
  @NonNull
  public Map<String, Tensor> finish() {
    return finish(Collections.<String, Tensor>emptyMap(), new RunOptions());
  }

  /**
   * Ends a stream: gives what is left of the outputs, which may be empty along time, and puts the states back to their
   * initial values, so that the next chunk begins another stream. Where it throws, the states are as before, but for an
   * OutOfMemoryError of Java's while the results are copied: the stream has ended then.
   *
   * @param others the inputs that are no streams, by name; borrowed until return.
   * @return the outputs by name, in order, in memory of their own.
   * @throws PinnaceException.InvalidArgument the program takes the whole at once, or as {@link #run} does.
   * @throws PinnaceException.CorruptFile the metadata of its streams are wrong.
   * @throws PinnaceException.Unsupported an output has elements of fewer than 8 bits.
   */
  @NonNull
  public Map<String, Tensor> finish(@NonNull Map<String, Tensor> others, @NonNull RunOptions options) {
    if (streams.inputs().isEmpty()) {
      throw new PinnaceException.InvalidArgument("the program takes the whole at once: there is no stream to end");
    }
    if (others == null) throw new PinnaceException.InvalidArgument("the inputs are null");
    Map<String, Tensor> given = new LinkedHashMap<>(others);
    for (StreamedInput one : streams.inputs()) {
      if (others.containsKey(one.name)) {
        throw new PinnaceException.InvalidArgument("input '" + one.name + "' is a stream: run() takes what is left of it");
      }
      given.put(one.name, Tensor.allocate(DType.U8, 0));
    }
    for (Spec spec : outputSpecs) {
      if (spec.dtype.bits() < 8) {
        throw new PinnaceException.Unsupported("output '" + spec.name + "' is " + spec.dtype + ", of which finish() takes no part");
      }
    }
    Call call = new Call(given, null, options);
    claim();
    try {
      return call.finish();
    } finally {
      busy.set(false);
    }
  }

  /** What a run on no elements would give. */
  private Map<String, Tensor> nothing() {
    Map<String, Tensor> outputs = new LinkedHashMap<>();
    for (Spec spec : outputSpecs) {
      long[] shape = spec.shape();
      for (int d = 0; d < shape.length; ++d) {
        if (shape[d] < 0 || d == streams.axis(spec.name)) shape[d] = 0;
      }
      outputs.put(spec.name, Tensor.allocate(spec.dtype, shape));
    }
    return outputs;
  }

  /** Puts every state back to its initial value. */
  public void resetState() {
    try (Alone held = new Alone()) {
      Native.resetState(held.session);
    }
  }

  /** Frees it, after the calls that have it. Again: nothing happens. */
  @Override
  public void close() {
    handle.close();
  }
}
