package org.pinnace;

import java.lang.ref.PhantomReference;
import java.lang.ref.ReferenceQueue;
import java.util.Collections;
import java.util.HashSet;
import java.util.Set;

/**
 * An object of the C API, freed once: when it is closed, or when its owner is collected, and in either case not before the
 * calls that have it returned.
 *
 * <p>Java 8 has no Cleaner, and Android only from level 33 on, so collected owners are noticed by a thread of ours.
 */
final class Handle {
  /** Which function frees it; the numbers are those of {@code pinnace_jni.c}. */
  static final int PROGRAM = 0;
  static final int SESSION = 1;
  static final int TOKEN = 2;
  static final int OP = 3;

  private static final ReferenceQueue<Object> COLLECTED = new ReferenceQueue<>();
  private static final Set<Owner> OWNERS = Collections.synchronizedSet(new HashSet<Owner>());

  static {
    Thread thread = new Thread("pinnace handles") {
      @Override
      public void run() {
        for (;;) {
          try {
            ((Owner) COLLECTED.remove()).handle.close();
          } catch (InterruptedException e) {
            // nobody has a reason to, and there is nothing to end
          }
        }
      }
    };
    thread.setDaemon(true);
    thread.start();
  }

  private static final class Owner extends PhantomReference<Object> {
    final Handle handle;

    Owner(Object owner, Handle handle) {
      super(owner, COLLECTED);
      this.handle = handle;
    }
  }

  private final int kind;
  private final String what;
  private final long pointer;
  private final Owner owner;
  private final Handle[] needed; // entered; they are left when this one is freed
  private int uses = 0;
  private boolean closed = false;

  Handle(Object owner, int kind, String what, long pointer, Handle... needed) {
    this.kind = kind;
    this.needed = needed;
    this.what = what;
    this.pointer = pointer;
    this.owner = new Owner(owner, this);
    OWNERS.add(this.owner);
  }

  /** For those who have entered it. */
  long pointer() {
    return pointer;
  }

  /** The pointer for a call, after which leave() follows. */
  synchronized long enter() {
    if (closed) throw new PinnaceException.InvalidArgument("the " + what + " is closed");
    ++uses;
    return pointer;
  }

  /** Those that this one needs, entered once more: for another object that needs them too. During a call alone. */
  synchronized Handle[] enterNeeded() {
    for (Handle one : needed) one.enterAgain();
    return needed;
  }

  /** What is entered already may be closed meanwhile. */
  private synchronized void enterAgain() {
    ++uses;
  }

  void leave() {
    boolean last;
    synchronized (this) {
      last = --uses == 0 && closed;
    }
    if (last) free();
  }

  void close() {
    boolean unused;
    synchronized (this) {
      if (closed) return;
      closed = true;
      unused = uses == 0;
    }
    if (unused) free();
  }

  private void free() {
    OWNERS.remove(owner);
    owner.clear();
    Native.free(kind, pointer);
    for (Handle one : needed) one.leave();
  }
}
