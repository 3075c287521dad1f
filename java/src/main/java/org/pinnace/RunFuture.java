package org.pinnace;

import java.util.Map;
import java.util.concurrent.CompletableFuture;

/**
 * A run under way. Whatever completes it before the run does, such as cancel(), asks the run to stop, which takes at most a few
 * tens of milliseconds; the session is free then.
 */
final class RunFuture extends CompletableFuture<Map<String, Tensor>> {
  final CancelToken token = new CancelToken();

  RunFuture() {
    whenComplete((outputs, failure) -> {
      try {
        token.cancel();
      } catch (PinnaceException.InvalidArgument e) {
        // it is closed: the run has ended
      }
    });
  }
}
