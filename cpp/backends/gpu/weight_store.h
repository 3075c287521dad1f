// Constants on the device, uploaded once for all executables of a program.
#pragma once

#include "backends/gpu/lowering.h"

namespace pinnace::gpu {

/// Thread-safe; kept by PackedConstants.
class WeightStore {
 public:
  /// Where each request's bytes are; those that are missing are made and uploaded, together.
  Result<std::vector<Binding>> place(const std::shared_ptr<Context>& context, std::span<const WeightRequest> requests);

 private:
  std::mutex mutex_;
  std::shared_ptr<Context> context_;  // outlives the buffers
  std::vector<std::unique_ptr<DeviceBuffer>> buffers_;
  std::map<std::string, Binding> places_;
};

}  // namespace pinnace::gpu
