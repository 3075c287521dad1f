package org.pinnace;

import androidx.annotation.NonNull;
import java.util.ArrayList;
import java.util.Collections;
import java.util.List;

/**
 * A call that failed: what the caller can conclude is the class, which mirrors a code of the C API, and the message is one
 * sentence that names the place, the rule and the value.
 */
public class PinnaceException extends RuntimeException {
  private static final long serialVersionUID = 1;

  /** The call breaks a stated rule: a wrong type or shape, a closed object, a session that runs elsewhere. Nothing changed. */
  public static final class InvalidArgument extends PinnaceException {
    private static final long serialVersionUID = 1;

    InvalidArgument(String message) {
      super(message);
    }
  }

  /** Legal, but not in this build or on this device; the sentence names the rule. */
  public static final class Unsupported extends PinnaceException {
    private static final long serialVersionUID = 1;

    Unsupported(String message) {
      super(message);
    }
  }

  /** Bytes break the format; {@link #offset} and {@link #rule} say where and which. */
  public static final class CorruptFile extends PinnaceException {
    private static final long serialVersionUID = 1;

    CorruptFile(String message) {
      super(message);
    }
  }

  /** Native memory is not enough. Nothing was changed. */
  public static final class OutOfMemory extends PinnaceException {
    private static final long serialVersionUID = 1;

    OutOfMemory(String message) {
      super(message);
    }
  }

  /** The device is gone: make a new session. */
  public static final class DeviceLost extends PinnaceException {
    private static final long serialVersionUID = 1;

    DeviceLost(String message) {
      super(message);
    }
  }

  /** Ended early by a token or a timeout. Outputs are unspecified, states are as before, the session can run again. */
  public static final class Cancelled extends PinnaceException {
    private static final long serialVersionUID = 1;

    Cancelled(String message) {
      super(message);
    }
  }

  /** A file could not be opened, read or written; the sentence has the path and the system's reason. */
  public static final class FileFailure extends PinnaceException {
    private static final long serialVersionUID = 1;

    FileFailure(String message) {
      super(message);
    }
  }

  /** One node that a failure concerns. Texts are empty where there is nothing to say. */
  public static final class NodeProblem {
    /** The node's name. */
    @NonNull public final String node;
    /** Its operator. */
    @NonNull public final String op;
    /** {@code "net.py:41"}. */
    @NonNull public final String source;
    /** The rule that refuses it. */
    @NonNull public final String rule;
    /** The value that breaks the rule. */
    @NonNull public final String value;
    /** The submodule of the source model that it belongs to. */
    @NonNull public final String module;

    NodeProblem(Cells cells) {
      node = cells.text();
      op = cells.text();
      source = cells.text();
      rule = cells.text();
      value = cells.text();
      module = cells.text();
    }
  }

  private String rule = "";
  private long offset = -1;
  private transient List<NodeProblem> nodes = Collections.emptyList();

  PinnaceException(String message) {
    super(message);
  }

  /** The identifier of the broken rule, {@code "F-12"}; may be empty. */
  @NonNull
  public String rule() {
    return rule;
  }

  /** Of a damaged file the byte at which it is, else -1. */
  public long offset() {
    return offset;
  }

  /** Every node that the failure concerns; may be empty. */
  @NonNull
  public List<NodeProblem> nodes() {
    return nodes == null ? Collections.<NodeProblem>emptyList() : nodes;
  }

  /** What native code throws: {@code cells} are the sentence, the rule and six texts for each node. */
  static PinnaceException of(int code, long offset, byte[] cells) {
    Cells list = new Cells(cells);
    String message = list.text();
    PinnaceException made = of(code, message);
    made.offset = offset;
    made.rule = list.text();
    List<NodeProblem> nodes = new ArrayList<>();
    while (list.more()) nodes.add(new NodeProblem(list));
    made.nodes = Collections.unmodifiableList(nodes);
    return made;
  }

  private static PinnaceException of(int code, String message) {
    switch (code) {
      case 1:
        return new InvalidArgument(message);
      case 2:
        return new Unsupported(message);
      case 3:
        return new CorruptFile(message);
      case 4:
        return new OutOfMemory(message);
      case 5:
        return new DeviceLost(message);
      case 6:
        return new Cancelled(message);
      case 8:
        return new FileFailure(message);
      default: // of importers, which a device does not have
        return new PinnaceException(message);
    }
  }
}
