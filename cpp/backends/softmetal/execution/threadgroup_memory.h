// Threadgroup memory of the group that runs: its variables, filled with 0xff (NaN, -1) before each group, and who touched
// which element since the last barrier, so that a barrier that is missing is named instead of being hoped to show.
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

  /// An access: by whom, and how many memory barriers its simdgroup has passed since the last one of the group.
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

  /// Notes an access. False: it races with an earlier one by `other`, which wrote it unless `wrote` is false.
  bool note(const void* address, bool write, const Access& by, Access* other, bool* wrote);
  /// The variable that holds an address, else null.
  const Variable* find(const void* address) const;
  const char* data() const { return memory_.get(); }

 private:
  // Of the element that starts at a byte: its last writer and two of its readers, if the epoch is the present one.
  struct Cell {
    uint32_t write_epoch, read_epoch;
    Access writer, readers[2];
    uint32_t reader_count;
  };
  std::unique_ptr<char[]> memory_;  // aligned by prepare() to 64
  std::unique_ptr<Cell[]> cells_;
  std::vector<Variable> variables_;
  int16_t by_key_[64];
  uint32_t used_ = 0, epoch_ = 1;
};

}  // namespace softmetal
