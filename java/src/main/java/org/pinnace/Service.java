package org.pinnace;

import androidx.annotation.NonNull;
import java.util.concurrent.TimeUnit;

/**
 * What an application wishes of its sessions beside right results, for {@link Options#service}. What is not set is left to
 * the back end; no member changes a result. What a back end has no use of, the notice of its first node in
 * {@link Session#placement} says. Values are checked when a session is created: {@link PinnaceException.InvalidArgument}
 * names the member. Every setter gives the object itself. Not safe for several threads while it is changed.
 */
public final class Service {
  String preference = "";
  String priority = "";
  String cacheFolder = "";
  String device = "";
  long deadlineNs = 0;
  long loopTimeoutNs = 0;
  int[] processors = {};

  /** No wishes. */
  public Service() {}

  /**
   * {@code "low_power"}, {@code "fast_single_answer"} or {@code "sustained_speed"}. NNAPI hands it to the driver. On the CPU
   * {@code "low_power"} lets workers sleep between the loops of a run and keeps runs on the processors of the slowest kind.
   */
  @NonNull
  public Service preference(@NonNull String preference) {
    this.preference = text(preference, "the preference");
    return this;
  }

  /** {@code "low"}, {@code "medium"} or {@code "high"}, beside other applications. NNAPI from feature level 4 on. */
  @NonNull
  public Service priority(@NonNull String priority) {
    this.priority = text(priority, "the priority");
    return this;
  }

  /**
   * For a compilation, and for each run of a compiled part, on a device; a part that misses it goes to the next target. 0: none.
   * NNAPI from feature level 4 on. {@link RunOptions#timeout} ends runs on every back end.
   */
  @NonNull
  public Service deadline(long time, @NonNull TimeUnit unit) {
    deadlineNs = nanoseconds(time, unit, "a deadline");
    return this;
  }

  /** For each loop whose turns are not counted: one that takes longer ends its run as cancelled. 0: none. */
  @NonNull
  public Service loopTimeout(long time, @NonNull TimeUnit unit) {
    loopTimeoutNs = nanoseconds(time, unit, "a time for loops");
    return this;
  }

  /** Where the driver keeps what it compiled, {@code Context.getCodeCacheDir()} for instance. NNAPI from feature level 3 on. */
  @NonNull
  public Service cacheFolder(@NonNull String folder) {
    this.cacheFolder = text(folder, "the cache folder");
    return this;
  }

  /** The device by its name. NNAPI from feature level 3 on. */
  @NonNull
  public Service device(@NonNull String name) {
    this.device = text(name, "the device");
    return this;
  }

  /** The processors, by the system's numbers, that runs stay on, the calling thread's part included. None: any. */
  @NonNull
  public Service processors(@NonNull int... numbers) {
    if (numbers == null) throw new PinnaceException.InvalidArgument("the processors are null");
    this.processors = numbers.clone();
    return this;
  }

  Service copy() {
    Service made = new Service();
    made.preference = preference;
    made.priority = priority;
    made.cacheFolder = cacheFolder;
    made.device = device;
    made.deadlineNs = deadlineNs;
    made.loopTimeoutNs = loopTimeoutNs;
    made.processors = processors;
    return made;
  }

  private static String text(String value, String what) {
    if (value == null) throw new PinnaceException.InvalidArgument(what + " is null");
    return value;
  }

  private static long nanoseconds(long time, TimeUnit unit, String what) {
    if (unit == null) throw new PinnaceException.InvalidArgument("the unit is null");
    if (time < 0) throw new PinnaceException.InvalidArgument(what + " cannot be " + time + " " + unit);
    return unit.toNanos(time);
  }
}
