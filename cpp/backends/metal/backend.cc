// The back end `metal`: the Metal driver below what all GPU back ends share.
#include "backends/gpu/backend.h"
#include "backends/metal/device.h"

namespace pinnace {

const Backend& metal_backend() {
  static const Backend* const backend = gpu::make_backend(metal::kDriver);  // never destroyed
  return *backend;
}

}  // namespace pinnace
