// Threadgroup memory of the group that runs: its variables, filled with 0xff (NaN, -1) before each group, and who
// touched which element since the last barrier, so that a barrier that is missing is named instead of being hoped to
// show.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "backends/softmetal/execution/engine.h"

namespace softmetal {

class ThreadgroupMemory {
 public:
  static constexpr uint32_t kLimit = 32 << 10;  ///< of Metal, on every device

  enum Kind : uint8_t { kRead, kWrite, kAtomic };
  /// By whom, and how many memory barriers its simdgroup has passed since the last one of the group.
  struct Access {
    uint16_t invocation = 0, simdgroup = 0;
    uint32_t simd_syncs = 0;
  };
  struct Variable {
    const char* name;
    uint32_t begin, bytes;
  };

  /// False: no memory.
  bool prepare(bool races);
  /// Forgets all variables: another kernel runs.
  void clear();
  /// What a variable lies at; null: they are more than kLimit together, or no key of 0 to 63.
  void* variable(uint32_t key, uint32_t bytes, const char* name);
  uint32_t used() const { return used_; }
  /// Fills all variables with 0xff.
  void poison();
  /// All accesses before are ordered against all that follow.
  void barrier() { ++epoch_; }

  /// Notes an access. False: it races with an earlier one, *other of kind *other_kind. Reads do not race with reads,
  /// nor atomics with atomics.
  bool note(const void* address, Kind kind, const Access& by, Access* other, Kind* other_kind);
  /// The variable that holds an address, else null.
  const Variable* find(const void* address) const;
  const char* data() const { return memory_.get(); }

 private:
  // Of the element that starts at a byte, by kind: accesses of two invocations, if the epoch is the present one. One of
  // the two may be whom the next access is by; of more, two tell as much.
  struct Cell {
    struct {
      uint32_t epoch, count;
      Access by[2];
    } kinds[3];
  };
  std::unique_ptr<char[]> memory_;  // aligned by prepare() to 64
  std::unique_ptr<Cell[]> cells_;
  std::vector<Variable> variables_;
  int16_t by_key_[64];
  uint32_t used_ = 0, epoch_ = 1;
};

}  // namespace softmetal
