package org.pinnace;

import java.util.Map;
import java.util.concurrent.CompletableFuture;

/** A run under way: cancel() asks it to stop, which takes at most a few tens of milliseconds; the session is free then. */
final class RunFuture extends CompletableFuture<Map<String, Tensor>> {
  final CancelToken token = new CancelToken();

  @Override
  public boolean cancel(boolean mayInterrupt) {
    boolean cancelled = super.cancel(mayInterrupt);
    if (cancelled) {
      try {
        token.cancel();
      } catch (PinnaceException.InvalidArgument e) {
        // the run has ended meanwhile
      }
    }
    return cancelled;
  }
}
