// The splits of a step, by the line of its kernel.
#include "backends/gpu/splitting/splitter.h"

namespace pinnace::gpu {

std::vector<Split> splits_of(const Step& step) {
  static constexpr splitting::SplitFunction kFunctions[] = {
#define KERNEL(name, file, storage, defines, params, split) &splitting::split,
#include "backends/gpu/kernels.inc"
#undef KERNEL
  };
  splitting::Splitter splitter(step);
  kFunctions[static_cast<size_t>(step.kernel.id)](splitter);
  return std::move(splitter.all);
}

namespace splitting {

void run_whole(Splitter&) {}

}  // namespace splitting
}  // namespace pinnace::gpu
