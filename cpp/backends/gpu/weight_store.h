// Constants on the device. Those of the model are uploaded once for all executables of a program and stay with it.
// Tables that depend on the sizes or contents of a plan's inputs go with the last executable that uses them.
#pragma once

#include "backends/gpu/lowering.h"
#include "backends/packed_constants.h"
#include "base/threads/work_mutex.h"

namespace pinnace::gpu {

/// Thread-safe; kept by PackedConstants. What gives a Status fails as WorkMutex::lock() does.
class WeightStore {
 public:
  /// Buffers of tables (WeightRequest::of_sizes), which executables hold and the store only finds again.
  struct Tables {
    std::shared_ptr<Context> context;  // outlives the buffers
    std::vector<std::unique_ptr<DeviceBuffer>> buffers;
  };
  /// What lies on one device.
  struct OnDevice {
    std::shared_ptr<Context> context;  // outlives the buffers
    std::vector<std::unique_ptr<DeviceBuffer>> buffers;
    std::map<std::string, Binding> places;
    struct Table {
      std::weak_ptr<const Tables> group;
      Binding place;
    };
    std::map<std::string, Table> tables;
  };
  struct Placed {
    std::vector<Binding> bindings;  ///< per request
    /// The bindings are good as long as both are held.
    std::shared_ptr<const OnDevice> owner;
    std::set<std::shared_ptr<const Tables>> tables;
  };
  /// The one that executables of a program share.
  static Result<std::shared_ptr<WeightStore>> of(PackedConstants& packed, std::string_view backend) {
    return packed.shared<WeightStore>(str_cat("gpu weights ", backend));
  }
  /// Whether the device that was held last is lost: what stands above is to begin anew. So it is in a forked child that
  /// finds the store half changed.
  Result<bool> lost() {
    if (mutex_.left_behind()) return true;
    const WorkLock lock(mutex_, kWork);
    PINNACE_TRY(lock.status());
    return current_ && current_->context->lost();
  }
  /// Keeps the device open until another one is named here or by place().
  Status hold(const std::shared_ptr<Context>& context) {
    const WorkLock lock(mutex_, kWork);
    PINNACE_TRY(lock.status());
    on(context);
    return {};
  }
  /// Where each request's bytes are; those that are missing are made and uploaded, together. For another context than
  /// the last one (its device was lost and opened anew) all are; executables of the last one keep what they have.
  Result<Placed> place(const std::shared_ptr<Context>& context, std::span<const WeightRequest> requests);

  /// What lies on the device that was held last.
  struct Held {
    size_t constants = 0, constant_bytes = 0;
    size_t tables = 0, table_bytes = 0;  ///< those that executables still use
  };
  Result<Held> held();

 private:
  OnDevice& on(const std::shared_ptr<Context>& context);  // under mutex_
  static constexpr std::string_view kWork = "the upload of weights";
  WorkMutex mutex_;
  std::shared_ptr<OnDevice> current_;
};

}  // namespace pinnace::gpu
