// random_multinomial: classes drawn with the probabilities softmax(logits) of each row.
//   logits   [B, C]  f32
//   seeds    [2]  i32
//   samples  int, required: S
//   y        [B, S]  i32 in [0, C)
// A pure function: the same seeds draw the same classes, on every machine. Logits that are not finite are not drawn; a
// row that has no others is an error where samples are drawn from it. Draw i of all rows takes place i of the sequence
// of SplitMix64 that the seeds start, as a number u in [0, 1), and gives the first class whose summed weight exceeds u
// times the sum of all. Source: NNAPI RANDOM_MULTINOMIAL, of which the random numbers are free.
#include <algorithm>
#include <cmath>

#include "ops/move.h"

namespace pinnace {
namespace {
Result<TensorType> random_multinomial_type(const NodeView& node) {
  PINNACE_TRY(refuse_quantized(node));
  const TensorType &logits = node.input(0), &seeds = node.input(1);
  const int64_t samples = node.attr_int("samples");
  if (logits.rank() != 2) return node.error("logits must be [B,C], are ", logits);
  if (seeds.rank() != 1 || !dim_merge(seeds.shape[0], 2)) return node.error("seeds must be [2], are ", seeds);
  if (samples < 0) return node.error("samples ", samples, " is negative");
  return TensorType{DType::kI32, {logits.shape[0], samples}, nullptr};
}

uint64_t scrambled(uint64_t x) {
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9;
  x = (x ^ (x >> 27)) * 0x94d049bb133111eb;
  return x ^ (x >> 31);
}
/// Number `place` of the sequence, in [0, 1).
double uniform(uint64_t start, uint64_t place) {
  return static_cast<double>(scrambled(start + (place + 1) * 0x9e3779b97f4a7c15) >> 11) * 0x1p-53;
}

/// sums[c] = the weights of classes 0 to c together; 0 for all if none is finite.
void sum_weights(const float* logits, int64_t classes, double* sums) {
  float most = -std::numeric_limits<float>::infinity();
  for (int64_t c = 0; c < classes; ++c) {
    if (std::isfinite(logits[c])) most = std::max(most, logits[c]);
  }
  double sum = 0;
  for (int64_t c = 0; c < classes; ++c) {
    if (std::isfinite(logits[c])) sum += std::exp(static_cast<double>(logits[c]) - static_cast<double>(most));
    sums[c] = sum;
  }
}

Status random_multinomial_reference(const NodeView& node, std::span<const TensorView> in,
                                    std::span<const TensorView> out) {
  const int64_t classes = in[0].dim(1), samples = out[0].dim(1);
  const auto* seeds = in[1].data<int32_t>();
  const uint64_t start =
      scrambled(static_cast<uint64_t>(static_cast<uint32_t>(seeds[0])) << 32 | static_cast<uint32_t>(seeds[1]));
  const double cost = 20 * static_cast<double>(classes) + 50 * static_cast<double>(samples);
  return node.threads().ranges(samples ? in[0].dim(0) : 0, cost, [&](int64_t first, int64_t last) -> Status {
    PINNACE_ASSIGN(auto sums, Scratch<double>::allocate(classes, node.label()));
    const std::span<const double> all = sums.span();
    for (int64_t row = first; row < last; ++row) {
      sum_weights(in[0].data<float>() + row * classes, classes, sums.data());
      const double total = classes ? all.back() : 0;
      if (!(total > 0)) return node.error("row ", row, " has no finite logit");
      for (int64_t i = row * samples; i < (row + 1) * samples; ++i) {
        if (i % 8192 == 8191 && loop_stops()) return {};
        const double target = uniform(start, static_cast<uint64_t>(i)) * total;
        auto drawn = std::upper_bound(all.begin(), all.end(), target);
        if (drawn == all.end()) drawn = std::lower_bound(all.begin(), all.end(), total);  // rounded up to the total
        out[0].data<int32_t>()[i] = static_cast<int32_t>(drawn - all.begin());
      }
    }
    return {};
  });
}
}  // namespace

PINNACE_OP(random_multinomial){
    .name = "random_multinomial",
    .inputs = {{"logits", kF32}, {"seeds", kI32}},
    .attrs = {required_attr("samples", AttrKind::kInt)},
    .type = random_multinomial_type,
    .reference = random_multinomial_reference,
    .work = Work::kSorted,
};
}  // namespace pinnace
