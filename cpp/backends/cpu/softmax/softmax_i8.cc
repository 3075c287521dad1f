// softmax on 8-bit quantised types along any dimension. The kernels of softmax_i8.h settle nearly every row; one with a
// result too near the middle of two numbers is done as the reference code has it, in double.
#include "backends/cpu/softmax/softmax_i8.h"

#include <algorithm>
#include <cmath>
#include <cstring>

#include "backends/cpu/kernel.h"
#include "backends/cpu/move/strided_copy.h"
#include "backends/cpu/pace.h"
#include "ops/lines.h"

namespace pinnace::cpu {
namespace {

constexpr int64_t kTogether = 64;            // rows that do not lie in a row, and are brought there and back
constexpr int64_t kLeastTask = 8192;         // elements
constexpr int64_t kMost = int64_t{1} << 20;  // of a row

Slices slices_of(const KernelNode& node) {
  return Slices(node.input(0).shape, *node.axis(node.attr_int("axis"), node.input(0).rank()));
}

bool takes(const KernelNode& node) {
  const TensorType& x = node.input(0);
  const auto y = node.output_quantization(0);
  if (!fits_nhwc_i8(x) || x.elements() == 0 || !y || !node.axis(node.attr_int("axis"), x.rank()).ok()) return false;
  // Where powers and quotients are ordinary numbers, and the bound of their error holds.
  const float from = x.quantization->scales[0], to = y->scales[0];
  return from <= 100 && to >= 1e-6f && to <= 1e6f && slices_of(node).size <= kMost;
}

int64_t packed_bytes(const KernelNode&) {
  return sizeof(SoftmaxPowersI8);
}

Status pack(const KernelNode& node, std::byte* to) {
  auto& powers = *new (to) SoftmaxPowersI8;
  const auto scale = static_cast<double>(scale_zero(node.input(0)).scale);
  for (int k = 0; k < 256; ++k) powers.each[k] = static_cast<float>(std::exp((k - 255) * scale));
  for (int k = 0; k < 16; ++k) {
    powers.low[k] = static_cast<float>(std::exp((k - 15) * scale));
    powers.high[k] = static_cast<float>(std::exp((k - 15) * 16 * scale));
  }
  return {};
}

/// A bound of what a quotient is off, as a part of it: the reference rounds the numbers whose difference is an exponent
/// to float32; here powers (3 roundings), their sum, the factor (3) and the product are rounded.
float error_of(const TensorType& x, int64_t n) {
  const double exponents = 2 * 255 * static_cast<double>(scale_zero(x).scale) * 0x1p-24;
  return static_cast<float>(1.25 * (2 * exponents + (static_cast<double>(n) / 16 + 20) * 0x1p-24));
}

/// A thread's memory: a row in double and in float32, and rows side by side, of which there may be none.
struct RowScratch {
  int64_t doubles, floats, bytes;
  explicit RowScratch(const Slices& slices)
      : doubles(8 * slices.size),
        floats(4 * ((slices.size + 63) / 64 * 64)),
        bytes(slices.inner > 1 ? kTogether * slices.size : 0) {}
  int64_t all() const { return (doubles + floats + bytes + 63) / 64 * 64; }
};

int64_t scratch_bytes(const KernelNode& node, int threads) {
  return threads * RowScratch(slices_of(node)).all();
}

/// softmax_reference() of one row.
void exact_row(const TensorType& x_type, const TensorType& y_type, const uint8_t* x, uint8_t* y, int64_t n,
               double* slice) {
  const TensorView from{&x_type, reinterpret_cast<std::byte*>(const_cast<uint8_t*>(x))};
  const TensorView to{&y_type, reinterpret_cast<std::byte*>(y)};
  load_line(from, 0, 1, n, slice);
  const double largest = *std::max_element(slice, slice + n);
  double sum = 0;
  for (int64_t i = 0; i < n; ++i) sum += slice[i] = std::exp(slice[i] - largest);
  for (int64_t i = 0; i < n; ++i) slice[i] /= sum;
  store_line(to, 0, 1, n, slice);
}

template <SoftmaxI8& kernel>
Status run(const KernelNode& node, const KernelContext& context, std::span<const TensorView> in,
           std::span<const TensorView> out) {
  const Slices slices = slices_of(node);
  const int64_t n = slices.size, blocks = (slices.inner + kTogether - 1) / kTogether;
  const TensorType &x_type = *in[0].type, &y_type = *out[0].type;
  const SoftmaxRowI8 s{reinterpret_cast<const SoftmaxPowersI8*>(context.packed), 1 / scale_zero(y_type).scale,
                       error_of(x_type, n), scale_zero(y_type).zero + nhwc_offset(y_type.dtype),
                       static_cast<uint8_t>(nhwc_offset(x_type.dtype))};
  const int64_t units = slices.outer * blocks;
  const int64_t tasks = std::min({units, int64_t{context.threads}, in[0].elements() / kLeastTask + 1});
  const RowScratch scratch(slices);
  context.parallel(tasks, [&](int64_t t) {
    std::byte* const own = context.scratch + t * scratch.all();
    auto* line = reinterpret_cast<float*>(own);
    auto* slice = reinterpret_cast<double*>(own + scratch.floats);
    auto* rows = reinterpret_cast<uint8_t*>(own + scratch.floats + scratch.doubles);
    const auto row = [&](const uint8_t* x, uint8_t* y) {
      if (!kernel(s, x, y, n, line)) exact_row(x_type, y_type, x, y, n, slice);
    };
    Pace pace(n * std::min(kTogether, slices.inner));
    for (int64_t u = units * t / tasks; u < units * (t + 1) / tasks && !pace.stops(); ++u) {
      const int64_t first = u % blocks * kTogether, at = u / blocks * n * slices.inner + first;
      const uint8_t* x = in[0].data<uint8_t>() + at;
      uint8_t* y = out[0].data<uint8_t>() + at;
      if (slices.inner == 1) {
        row(x, y);
        continue;
      }
      const int64_t count = std::min(kTogether, slices.inner - first);
      transpose_bytes(x, slices.inner, rows, n, n, count);
      for (int64_t l = 0; l < count; ++l) row(rows + l * n, rows + l * n);
      transpose_bytes(rows, n, y, slices.inner, count, n);
    }
  });
  return {};
}

template <SoftmaxI8& kernel>
constexpr CpuKernel make_softmax() {
  return {
      .takes = takes, .packed_bytes = packed_bytes, .pack = pack, .scratch_bytes = scratch_bytes, .run = run<kernel>};
}

}  // namespace

extern const CpuKernel softmax_i8_generic;
const CpuKernel softmax_i8_generic = make_softmax<softmax_row_i8_generic>();
#if defined(__x86_64__)
extern const CpuKernel softmax_i8_avx2, softmax_i8_avx512;
const CpuKernel softmax_i8_avx2 = make_softmax<softmax_row_i8_avx2>();
const CpuKernel softmax_i8_avx512 = make_softmax<softmax_row_i8_avx512>();
#endif

}  // namespace pinnace::cpu
