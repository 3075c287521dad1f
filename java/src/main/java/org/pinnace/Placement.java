package org.pinnace;

import androidx.annotation.NonNull;
import java.util.Arrays;
import java.util.Collections;
import java.util.List;

/** Where one node runs, and why not elsewhere. Texts are empty where there is nothing to say. */
public final class Placement {
  /** The node's name. */
  @NonNull public final String node;
  /** Its operator. */
  @NonNull public final String op;
  /** {@code "net.py:41"}. */
  @NonNull public final String source;
  /** {@code "cpu"}; {@code "runtime"}: control flow; {@code "none"}: computed ahead. */
  @NonNull public final String backend;
  /** What runs it there; {@code "reference"}: no kernel takes it. */
  @NonNull public final String kernel;
  /** One sentence for each preferred target that was passed over. */
  @NonNull public final List<String> why;
  /** What else there is to know. */
  @NonNull public final String notice;
  /** The submodule of the source model that it belongs to. */
  @NonNull public final String module;
  /** The control flow around it, {@code "loop1.body"}. */
  @NonNull public final String path;
  /** Bytes of its inputs that come from another back end. */
  public final long bytesCopied;

  Placement(Cells cells) {
    node = cells.text();
    op = cells.text();
    source = cells.text();
    backend = cells.text();
    kernel = cells.text();
    String lines = cells.text();
    why = lines.isEmpty() ? Collections.<String>emptyList() : Collections.unmodifiableList(Arrays.asList(lines.split("\n")));
    notice = cells.text();
    module = cells.text();
    path = cells.text();
    bytesCopied = cells.number();
  }

  @NonNull
  @Override
  public String toString() {
    return node + "  " + op + "  " + backend + "  " + kernel;
  }
}
