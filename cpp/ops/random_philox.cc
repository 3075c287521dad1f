// random_philox: words of the counter-based generator Philox4x32-10. Block k is a function of the key and of the number
// counter + k, which is taken modulo 2^128; element e of y, counted in row-major order, is word e mod 4 of block
// floor(e / 4).
//   counter  [2]  i64: the lower and the upper half of the number of the first block
//   sizes    [rank]  i64, none negative
//   key      int, default 0
//   y        [sizes...]  i64 in [0, 2^32)
// A pure function: equal counters and keys give equal words on every machine. The 32-bit words of counter and key are
// taken from the lowest on, as the authors' test vectors have them. Exact. Source: Salmon, Moraes, Dror and Shaw,
// "Parallel random numbers: as easy as 1, 2, 3" (2011).
#include <algorithm>
#include <array>

#include "ops/move.h"

namespace pinnace {
namespace {
Result<TensorType> random_philox_type(const NodeView& node) {
  const TensorType& counter = node.input(0);
  if (counter.rank() != 1 || !dim_merge(counter.shape[0], 2)) return node.error("counter must be [2], is ", counter);
  PINNACE_ASSIGN(const Dim length, vector_length(node, 1, true));
  TensorType y{DType::kI64, Shape(static_cast<size_t>(length.size)), nullptr};
  if (const auto sizes = node.input_known(1)) {
    for (size_t i = 0; i < sizes->size(); ++i) {
      const KnownInt& k = (*sizes)[i];
      if (k.known && k.value < 0) return node.error("size ", k.value, " at place ", i, " is negative");
      y.shape[i] = k.dim();
    }
  }
  return y;
}

/// Ten rounds: two products of 32 bits each, whose upper halves are combined with the other words and the key.
std::array<uint32_t, 4> philox(uint64_t low, uint64_t high, uint64_t key) {
  const auto lower = [](uint64_t x) { return static_cast<uint32_t>(x); };
  const auto upper = [](uint64_t x) { return static_cast<uint32_t>(x >> 32); };
  std::array<uint32_t, 4> c = {lower(low), upper(low), lower(high), upper(high)};
  uint32_t k0 = lower(key), k1 = upper(key);
  for (int round = 0; round < 10; ++round) {
    const uint64_t a = uint64_t{0xd2511f53} * c[0], b = uint64_t{0xcd9e8d57} * c[2];
    c = {upper(b) ^ c[1] ^ k0, lower(b), upper(a) ^ c[3] ^ k1, lower(a)};
    k0 += 0x9e3779b9;
    k1 += 0xbb67ae85;
  }
  return c;
}

Status random_philox_reference(const NodeView& node, std::span<const TensorView> in, std::span<const TensorView> out) {
  const auto low = static_cast<uint64_t>(in[0].data<int64_t>()[0]);
  const auto high = static_cast<uint64_t>(in[0].data<int64_t>()[1]);
  const auto key = static_cast<uint64_t>(node.attr_int("key"));
  const int64_t count = out[0].elements();
  auto* y = out[0].data<int64_t>();
  return node.threads().ranges((count + 3) / 4, 20, [&](int64_t begin, int64_t end) -> Status {
    for (int64_t block = begin; block < end; ++block) {
      const uint64_t at = low + static_cast<uint64_t>(block);
      const std::array<uint32_t, 4> words = philox(at, high + (at < low ? 1 : 0), key);
      for (int64_t e = 4 * block; e < std::min(4 * block + 4, count); ++e) y[e] = words[static_cast<size_t>(e % 4)];
    }
    return {};
  });
}
}  // namespace

PINNACE_OP(random_philox){
    .name = "random_philox",
    .inputs = {{"counter", kI64}, {"sizes", kI64}},
    .attrs = {int_attr("key", 0)},
    .type = random_philox_type,
    .reference = random_philox_reference,
};
}  // namespace pinnace
