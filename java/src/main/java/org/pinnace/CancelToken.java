package org.pinnace;

/** A request that runs should stop, for any number of them, from any thread. Once cancelled it stays so. */
public final class CancelToken implements AutoCloseable {
  final Handle handle = new Handle(this, Handle.TOKEN, "token", Native.token());

  /** A token that is not cancelled. @throws PinnaceException.OutOfMemory there is no memory for it. */
  public CancelToken() {}

  /** Ends the runs that have it, and those that get it later. @throws PinnaceException.InvalidArgument it is closed. */
  public void cancel() {
    long pointer = handle.enter();
    try {
      Native.cancel(pointer);
    } finally {
      handle.leave();
    }
  }

  /** Whether it was cancelled. @throws PinnaceException.InvalidArgument it is closed. */
  public boolean isCancelled() {
    long pointer = handle.enter();
    try {
      return Native.cancelled(pointer);
    } finally {
      handle.leave();
    }
  }

  /** Frees it, after the runs that have it. */
  @Override
  public void close() {
    handle.close();
  }
}
