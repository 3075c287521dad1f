// The back end `softmetal`: Metal's kernels executed on this processor below what all GPU back ends share.
#include "backends/gpu/backend.h"
#include "backends/softmetal/device.h"

namespace pinnace {

const Backend& softmetal_backend() {
  static const Backend* const backend = gpu::make_backend(softmetal::kDriver);  // never destroyed
  return *backend;
}

}  // namespace pinnace
