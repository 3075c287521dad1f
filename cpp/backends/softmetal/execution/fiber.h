// Fibers: stacks with a guard page below each, and the switch between them, in assembly for x86-64 and AArch64.
#pragma once

#include <cstddef>
#include <cstdint>

namespace softmetal {

/// Memory for the stacks of one threadgroup. A kernel that overflows its stack runs into a page that nobody may touch,
/// which ends the process as any overflow does.
class Stacks {
 public:
  static constexpr size_t kBytes = 64 << 10;  ///< of one stack; a kernel that spills all its tiles takes a few KiB
  Stacks() = default;
  Stacks(const Stacks&) = delete;
  Stacks& operator=(const Stacks&) = delete;
  ~Stacks();
  /// At least `count` stacks from now on; false: no memory, and those there were are kept.
  bool reserve(uint32_t count);
  char* bottom(uint32_t index) const { return base_ + index * (kBytes + kGuard) + kGuard; }

 private:
  static constexpr size_t kGuard = 16 << 10;  // a page on every processor that has 4 or 16 KiB ones
  char* base_ = nullptr;
  uint32_t count_ = 0;
};

/// A stack that, switched to, calls `entry`, which must not return.
void* first_frame(char* bottom, void (*entry)());

/// Saves what a call preserves on the present stack, whose pointer goes to *from, and goes on where `to` was saved.
extern "C" void pinnace_softmetal_switch(void** from, void* to);

}  // namespace softmetal
