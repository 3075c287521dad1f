// dynamic_quantize_linear: bytes with a scale that a run finds.
#include "backends/gpu/lowering.h"
#include "backends/gpu/quantize/params.h"

namespace pinnace::gpu {
namespace {

/// Groups of 64 invocations that look for the least and the greatest element.
constexpr int64_t kMostParts = 64;

}  // namespace

Status lower_dynamic_quantize_linear(NodeLowering& n) {
  const int64_t count = n.in(0).elements();
  const int64_t groups = std::clamp<int64_t>((count + 63) / 64, 1, kMostParts);
  const TensorId x = n.dense(0), parts = n.all().add_tensor(DeviceTensor::Place::kActivation, 0, kMostParts * 8);
  const TensorId y = n.make_dense(0), scale = n.make_dense(1), zero = n.make_dense(2);
  const auto stage = [&](int32_t which, std::array<uint32_t, 3> grid, double work) {
    n.step(KernelId::dynamic_quantize, DynamicQuantizeConstants{.STAGE = which},
           DynamicQuantizeParams{.count = count, .parts = groups}, {x, parts, y, scale, zero}, grid, work);
  };
  n.loops((count + groups * 64 - 1) / (groups * 64) + 1 + kTreeTurns);
  stage(0, row_groups(groups), static_cast<double>(count));
  stage(1, row_groups(1), 64);
  if (count > 0) stage(2, line_groups(count, 64), static_cast<double>(count * 8));
  return {};
}

}  // namespace pinnace::gpu
