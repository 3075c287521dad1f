package org.pinnace;

import static org.junit.Assert.assertEquals;
import static org.junit.Assert.assertFalse;
import static org.junit.Assert.assertTrue;
import static org.pinnace.Thrown.thrown;

import java.io.File;
import java.io.IOException;
import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import org.junit.Test;

/**
 * Reports of {@code kit.pnk} of the folder {@code pinnace.tests}, and misuse. The page of the first one is left there, {@code
 * report.json}, for Python to read.
 */
public class ReportTest {
  private static File file(String name) {
    return new File(System.getProperty("pinnace.tests"), name);
  }

  private static ByteBuffer direct(byte[] bytes) {
    ByteBuffer buffer = ByteBuffer.allocateDirect(bytes.length + 7);
    buffer.position(7); // at no particular alignment
    buffer.put(bytes);
    buffer.position(7);
    return buffer;
  }

  private static ReportOptions cpu() {
    return new ReportOptions().target("cpu");
  }

  @Test
  public void aFileGivesAPage() throws IOException {
    String page = Report.run(file("kit.pnk").getPath(), cpu().seconds(60));
    assertTrue(page, page.startsWith("{\n \"format\": \"pinnace device report\""));
    assertTrue(page.contains("\"result\": \"equal\""));
    assertFalse(page.contains("\"result\": \"failed\""));
    Files.write(file("report.json").toPath(), page.getBytes(StandardCharsets.UTF_8));
  }

  @Test
  public void aBufferGivesAPage() throws IOException {
    ByteBuffer kit = direct(Files.readAllBytes(file("kit.pnk").toPath()));
    String page = Report.run(kit, cpu().seconds(1e-6));
    assertTrue(page, page.contains("\"why\": \"the time is used up\""));
    assertEquals(7, kit.position());
  }

  @Test
  public void misuse() throws IOException {
    byte[] kit = Files.readAllBytes(file("kit.pnk").toPath());
    String path = file("kit.pnk").getPath();
    thrown(PinnaceException.InvalidArgument.class, "this build has", () -> Report.run(path, cpu().target("tpu")));
    thrown(PinnaceException.InvalidArgument.class, "seconds", () -> Report.run(path, cpu().seconds(0)));
    thrown(PinnaceException.InvalidArgument.class, "seconds", () -> Report.run(path, cpu().seconds(Double.NaN)));
    thrown(PinnaceException.InvalidArgument.class, "null", () -> Report.run((String) null, cpu()));
    thrown(PinnaceException.InvalidArgument.class, "null", () -> Report.run((ByteBuffer) null, cpu()));
    thrown(PinnaceException.InvalidArgument.class, "null", () -> Report.run(path, null));
    thrown(PinnaceException.InvalidArgument.class, "null", () -> new ReportOptions().target(null));
    thrown(PinnaceException.InvalidArgument.class, "not direct", () -> Report.run(ByteBuffer.wrap(kit), cpu()));
    thrown(PinnaceException.FileFailure.class, "cannot be read", () -> Report.run(path + ".missing", cpu()));
    thrown(PinnaceException.CorruptFile.class, "kit at 0x0", () -> Report.run(direct(new byte[0]), cpu()));
    ByteBuffer cut = direct(kit);
    cut.limit(cut.limit() - 8);
    PinnaceException.CorruptFile damage =
        thrown(PinnaceException.CorruptFile.class, "is said to have", () -> Report.run(cut, cpu()));
    assertEquals(16, damage.offset());
  }
}
