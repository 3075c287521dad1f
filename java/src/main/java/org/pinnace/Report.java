package org.pinnace;

import androidx.annotation.NonNull;
import java.nio.ByteBuffer;

/**
 * The report of a device: known-answer tests and times of every target, as one page of JSON.
 *
 * <p>The kit that it takes is made on a desktop, {@code pinnace report-device --make-kit kit.pnk}, where {@code pinnace devices
 * --import report.json} shows the page. Both are described in {@code docs/device_report.md}. A call takes as long as its options
 * say: not on the main thread of an app.
 */
public final class Report {
  private Report() {}

  /**
   * Tests and times this device by the kit in a file.
   *
   * @return the page. What fails in a test stands there.
   * @throws PinnaceException.FileFailure the file cannot be read.
   * @throws PinnaceException.CorruptFile its bytes break the format.
   * @throws PinnaceException.Unsupported the format is newer than this library.
   * @throws PinnaceException.InvalidArgument a target that this build does not have, or a time that is not above 0.
   */
  @NonNull
  public static String run(@NonNull String kit, @NonNull ReportOptions options) {
    return run(Cells.of(kit, "the path"), null, 0, 0, options);
  }

  /** The same of the kit between a direct buffer's position and its limit, which must not change meanwhile. */
  @NonNull
  public static String run(@NonNull ByteBuffer kit, @NonNull ReportOptions options) {
    if (kit == null) throw new PinnaceException.InvalidArgument("the buffer is null");
    if (!kit.isDirect()) throw new PinnaceException.InvalidArgument("the buffer is not direct");
    return run(new byte[1], kit, kit.position(), kit.remaining(), options);
  }

  private static String run(byte[] path, ByteBuffer kit, long offset, long bytes, ReportOptions options) {
    if (options == null) throw new PinnaceException.InvalidArgument("the options are null");
    return new Cells(Native.report(path, kit, offset, bytes, options.targets(), options.seconds)).text();
  }
}
