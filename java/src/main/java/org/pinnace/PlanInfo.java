package org.pinnace;

/** Sizes of the plan for the shapes of a session's last run that succeeded. */
public final class PlanInfo {
  /** What the session allocates for these shapes. */
  public final long peakBytes;
  /** Weights that were packed or copied beside the program; all its sessions share them. */
  public final long constantBytes;
  /** Parts of the graph that run on one back end each. */
  public final long segments;
  /** Nodes that a run executes. */
  public final long nodesRun;
  /** Nodes whose results were computed when the plan was made. */
  public final long nodesComputedAhead;

  PlanInfo(long[] numbers) {
    peakBytes = numbers[0];
    constantBytes = numbers[1];
    segments = numbers[2];
    nodesRun = numbers[3];
    nodesComputedAhead = numbers[4];
  }
}
