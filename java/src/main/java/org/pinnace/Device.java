package org.pinnace;

import androidx.annotation.NonNull;
import java.util.ArrayList;
import java.util.Collections;
import java.util.List;

/** One target that this build knows on this machine. */
public final class Device {
  /** {@code "cpu"}, as {@link Options#target} takes it. */
  @NonNull public final String target;
  /** Processor and instruction set, or the reason why it is not available. */
  @NonNull public final String description;
  /** Whether sessions can use it. */
  public final boolean available;

  private Device(Cells cells) {
    target = cells.text();
    description = cells.text();
    available = cells.number() != 0;
  }

  /** All targets. @throws PinnaceException.OutOfMemory there is no memory for them. */
  @NonNull
  public static List<Device> all() {
    Cells cells = new Cells(Native.devices());
    List<Device> devices = new ArrayList<>();
    while (cells.more()) devices.add(new Device(cells));
    return Collections.unmodifiableList(devices);
  }

  /** The native library's version, {@code "0.1.0"}. */
  @NonNull
  public static String libraryVersion() {
    return new Cells(Native.version()).text();
  }
}
