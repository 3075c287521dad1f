package org.pinnace;

import androidx.annotation.NonNull;
import androidx.annotation.Nullable;
import java.util.concurrent.TimeUnit;

/** When a run is to end before it is done. Every setter gives the object itself. */
public final class RunOptions {
  long timeoutNs = 0;
  CancelToken token = null;

  /** A run that ends when it is done. */
  public RunOptions() {}

  /** From the call on; 0, the default: as long as it takes. */
  @NonNull
  public RunOptions timeout(long time, @NonNull TimeUnit unit) {
    if (unit == null) throw new PinnaceException.InvalidArgument("the unit is null");
    if (time < 0) throw new PinnaceException.InvalidArgument("a run cannot be given " + time + " " + unit);
    timeoutNs = unit.toNanos(time);
    return this;
  }

  /** The token that ends it; null: none. */
  @NonNull
  public RunOptions cancel(@Nullable CancelToken token) {
    this.token = token;
    return this;
  }
}
