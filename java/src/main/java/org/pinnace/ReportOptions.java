package org.pinnace;

import androidx.annotation.NonNull;
import java.util.ArrayList;
import java.util.List;

/** What {@link Report} tests, and for how long. Every setter gives the object itself. */
public final class ReportOptions {
  private final List<byte[]> targets = new ArrayList<>();
  double seconds = 60;

  /** All targets of the build, for at most 60 seconds. */
  public ReportOptions() {}

  /** One target to test, {@code "cpu"} or {@code "nnapi:29"}; with others that were given. Without any: all of the build. */
  @NonNull
  public ReportOptions target(@NonNull String target) {
    targets.add(Cells.of(target, "the target"));
    return this;
  }

  /** In which the whole ends; what is left out then is listed in the page. */
  @NonNull
  public ReportOptions seconds(double seconds) {
    this.seconds = seconds;
    return this;
  }

  byte[][] targets() {
    return targets.toArray(new byte[0][]);
  }
}
