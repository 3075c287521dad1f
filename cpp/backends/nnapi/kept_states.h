// States of one session that stay with the device: each in two memories, of which a run reads one and writes the other.
#pragma once

#include <optional>

#include "backends/nnapi/executable.h"

namespace pinnace::nnapi_client {

class NnapiKeptStates final : public KeptStates {
 public:
  /// Null if no form is there. survives: in shared memory of ours, which is there whatever becomes of the device; else
  /// in memories of the device's own choice (feature level 4), or in shared memory where it makes none. `stages` is
  /// one, and outlives this, as `forms` do.
  static Result<std::unique_ptr<KeptStates>> create(const std::vector<std::optional<KeptForm>>& forms,
                                                    const std::vector<Stage>& stages, bool survives);

  bool keeps(size_t i) const override { return i < all_.size() && all_[i].form; }
  Status write(size_t i, const std::byte* from) override;
  Status read(size_t i, std::byte* to) override;
  void commit() override { now_ = 1 - now_; }

  /// What a run reads of a state that is kept, and where it leaves the next value.
  Bytes now(size_t i) const { return all_[i].at(now_); }
  Bytes next(size_t i) const { return all_[i].at(1 - now_); }
  /// Executions that are bound to these places, in this direction.
  std::unique_ptr<DriverModel::Slot>& slot() { return slots_[now_]; }

 private:
  struct One {
    const KeptForm* form = nullptr;  // null: not kept
    std::shared_ptr<SharedMemory> memory[2];
    size_t offset[2] = {0, 0};
    std::unique_ptr<SharedMemory> passage;  // through which bytes come from and go to memories of the device
    Bytes at(int which) const;
  };

  const DriverModel* model_ = nullptr;
  std::vector<One> all_;  // per state of the segment
  int now_ = 0;
  std::unique_ptr<DriverModel::Slot> slots_[2];  // after the memories that they are bound to
};

}  // namespace pinnace::nnapi_client
