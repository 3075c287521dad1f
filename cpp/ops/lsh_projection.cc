// lsh_projection: rows to bits that are likely equal where rows are: the signs of sums of hashes (locality-sensitive
// hashing).
//   hash    [N, b]  f32, b <= 32: seeds, one per bit
//   x       [m, ...]  any type: what is hashed are the bytes of its m rows
//   weight  [m]  f32, optional: 1 where left out
//   dense   int, default 0
//   apart   int, default 0
//   y       i32; dense = 1: [N * b]  the bits; else [N]  the bits of each row of seeds as a number, the first the
//   highest,
//           with apart = 1 plus i * 2^b for row i, modulo 2^32
// A bit is 1 where sum(weight[k] * int64(fingerprint(seed, row k))) is above 0, summed in double; the fingerprint is
// FarmHash's Fingerprint64 of the seed's four bytes and the row's. NaN sums are no 1. Source: NNAPI LSH_PROJECTION.
#include "ops/fingerprint.h"
#include "ops/move.h"

namespace pinnace {
namespace {
enum Input { kHash, kX, kWeight };
constexpr int64_t kMostBits = 32;

Result<TensorType> lsh_projection_type(const NodeView& node) {
  PINNACE_TRY(refuse_quantized(node));
  const TensorType &hash = node.input(kHash), &x = node.input(kX);
  if (hash.rank() != 2) return node.error("hash must be [N,b], is ", hash);
  if (hash.shape[1].known() && hash.shape[1].size > kMostBits)
    return node.error(hash.shape[1].size, " bits are more than ", kMostBits);
  if (x.rank() < 1) return node.error("x has no rows, is ", x);
  if (node.has_input(kWeight)) {
    const TensorType& weight = node.input(kWeight);
    if (weight.rank() != 1 || !dim_merge(weight.shape[0], x.shape[0])) {
      return node.error("weight ", weight, " is not one per row of ", x);
    }
  }
  const bool dense = node.attr_int("dense") != 0;
  return TensorType{DType::kI32, {dense ? dim_mul(hash.shape[0], hash.shape[1]) : hash.shape[0]}, nullptr};
}

/// The sums for seeds [first, last).
Status project(const NodeView& node, std::span<const TensorView> in, int64_t first, int64_t last, double* sums) {
  constexpr size_t kSeed = sizeof(float);
  const TensorView &hash = in[kHash], &x = in[kX];
  const bool weighted = in.size() > kWeight && in[kWeight].present();
  const size_t bytes = x.dim(0) ? static_cast<size_t>(x.type->bytes() / x.dim(0)) : 0;
  // Rows without bytes have one fingerprint, and only the sign of its sum counts.
  const int64_t rows = bytes || weighted ? x.dim(0) : std::min<int64_t>(x.dim(0), 1);
  PINNACE_ASSIGN(auto key, Scratch<std::byte>::allocate(static_cast<int64_t>(kSeed + bytes), node.label()));
  std::fill(sums + first, sums + last, 0.0);
  for (int64_t k = 0; k < rows; ++k) {
    if (k % 256 == 255 && loop_stops()) return {};
    copy_run(key.data() + kSeed, x.bytes + static_cast<size_t>(k) * bytes, static_cast<int64_t>(bytes), 1);
    const double weight = weighted ? static_cast<double>(in[kWeight].data<float>()[k]) : 1;
    for (int64_t i = first; i < last; ++i) {
      std::memcpy(key.data(), hash.data<float>() + i, kSeed);
      sums[i] += weight * static_cast<double>(static_cast<int64_t>(Fingerprint::of(key.data(), kSeed + bytes)));
    }
  }
  return {};
}

Status lsh_projection_reference(const NodeView& node, std::span<const TensorView> in, std::span<const TensorView> out) {
  const int64_t rows = in[kHash].dim(0), bits = in[kHash].dim(1), count = rows * bits;
  PINNACE_ASSIGN(auto sums, Scratch<double>::allocate(count, node.label()));
  const double cost = 10 * static_cast<double>(in[kX].dim(0)) + static_cast<double>(in[kX].type->bytes());
  PINNACE_TRY(node.threads().ranges(
      count, cost, [&](int64_t first, int64_t last) { return project(node, in, first, last, sums.data()); }));
  auto* y = out[0].data<int32_t>();
  if (node.attr_int("dense")) {
    for (int64_t i = 0; i < count; ++i) y[i] = sums[i] > 0;
    return {};
  }
  const bool apart = node.attr_int("apart") != 0;
  for (int64_t i = 0; i < rows; ++i) {
    uint64_t signature = 0;
    for (int64_t j = 0; j < bits; ++j) signature = signature << 1 | (sums[i * bits + j] > 0);
    if (apart) signature += static_cast<uint64_t>(i) << static_cast<uint64_t>(bits);
    y[i] = static_cast<int32_t>(static_cast<uint32_t>(signature));
  }
  return {};
}
}  // namespace

PINNACE_OP(lsh_projection){
    .name = "lsh_projection",
    .inputs = {{"hash", kF32}, {"x", kAny}, {"weight", kF32, 0, Arity::kOptional}},
    .attrs = {int_attr("dense", 0), int_attr("apart", 0)},
    .type = lsh_projection_type,
    .reference = lsh_projection_reference,
    .work = Work::kSquared,
};
}  // namespace pinnace
