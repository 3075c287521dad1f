package org.pytorch;

/** Where a {@link Module} runs. */
public enum Device {
  /** pinnace's target {@code cpu}. */
  CPU("cpu"),
  /**
   * pinnace's target {@code vulkan}. Where there is no such device, loading fails with {@code PinnaceException.Unsupported}.
   * Nodes that Vulkan does not take run on the CPU, as {@code org.pinnace.Session.placement()} reports for the same file.
   */
  VULKAN("vulkan");

  final String target;

  Device(String target) {
    this.target = target;
  }
}
