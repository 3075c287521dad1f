// adaptive_max_pool: y has the wanted spatial sizes; y[n, c, o] = the largest x[n, c, i] over i in
// [floor(o * in / out), ceil((o + 1) * in / out)) of each spatial dimension.
//   x        [N, C, spatial...]   1 to 3 spatial dimensions; floats, i8, u8; quantised per tensor
//   output_size ints, required: one per spatial dimension, 0 or more
//   y        [N, C, output_size]  as x, quantisation included
//   indices  [N, C, output_size]  optional, i64: where y was found, counted in row-major order through one plane of x;
//                                 the first of equals
// NaN wins, the last one's index is given. The largest of nothing is the least value of the type (-inf), its index -1.
// Exact. Source: PyTorch's adaptive_max_pool1d, 2d, 3d.
#include <cmath>
#include <cstring>
#include <limits>

#include "ops/adaptive_pool.h"
#include "ops/lines.h"

namespace pinnace {
namespace {
Status adaptive_max_pool_types(const NodeView& node, std::span<TensorType> out) {
  const TensorType& x = node.input(0);
  const auto declared = node.output_quantization(0);
  if (declared && (!x.quantized() || !(*declared == *x.quantization))) {
    return node.error("the output's declared quantisation differs from that of x ", x, ", which is kept");
  }
  if (x.quantized()) PINNACE_TRY(check_per_tensor(node, *x.quantization, x.dtype, "x"));
  PINNACE_ASSIGN(Shape shape, adaptive_pool_shape(node));
  out[0] = {x.dtype, shape, x.quantization};
  if (out.size() > 1) out[1] = {DType::kI64, std::move(shape), nullptr};
  return {};
}

/// Elements in double, integers as they are stored: what differs stays different.
void load_stored(const TensorView& x, int64_t first, int64_t count, double* to) {
  if (x.dtype() == DType::kI8) {
    std::copy_n(x.data<int8_t>() + first, count, to);
  } else if (x.dtype() == DType::kU8) {
    std::copy_n(x.data<uint8_t>() + first, count, to);
  } else {
    load_line(x, first, 1, count, to);
  }
}

/// The largest of nothing: -inf, or the least integer that can be stored.
void store_least(const TensorView& y, int64_t at) {
  if (y.dtype() == DType::kI8 || y.dtype() == DType::kU8) {
    y.data<uint8_t>()[at] = y.dtype() == DType::kI8 ? 0x80 : 0;
  } else {
    constexpr double kLeast = -std::numeric_limits<double>::infinity();
    store_line(y, at, 1, 1, &kLeast);
  }
}

Status adaptive_max_pool_reference(const NodeView& node, std::span<const TensorView> in,
                                   std::span<const TensorView> out) {
  const TensorView &x = in[0], &y = out[0];
  if (y.elements() == 0) return {};  // of any number of planes
  const AdaptiveBins bins(x, y);
  using Bin = AdaptiveBins::Bin;
  int64_t* indices = out.size() > 1 ? out[1].data<int64_t>() : nullptr;
  const auto element = static_cast<size_t>(dtype_bits(x.dtype()) / 8);
  const auto* stored = x.data<std::byte>();
  auto* to_stored = y.data<std::byte>();
  return node.threads().ranges(x.dim(0) * x.dim(1), bins.nanoseconds(), [&](int64_t first, int64_t last) -> Status {
    PINNACE_ASSIGN(auto plane, Scratch<double>::allocate(bins.in_size, node.label()));
    int64_t at = first * bins.out_size;
    for (int64_t p = first; p < last; ++p) {
      load_stored(x, p * bins.in_size, bins.in_size, plane.data());
      bins.for_each([&](const Bin& bz, const Bin& by, const Bin& bx) {
        int64_t place = -1;
        bins.for_each_element(bz, by, bx, [&](int64_t i) {
          if (place < 0 || plane[i] > plane[place] || std::isnan(plane[i])) place = i;
        });
        if (place < 0) {
          store_least(y, at);
        } else {
          std::memcpy(to_stored + static_cast<size_t>(at) * element,
                      stored + static_cast<size_t>(p * bins.in_size + place) * element, element);
        }
        if (indices) indices[at] = place;
        ++at;
      });
    }
    return {};
  });
}
}  // namespace

PINNACE_OP(adaptive_max_pool){
    .name = "adaptive_max_pool",
    .inputs = {{"x", kFloats | kI8 | kU8}},
    .attrs = {required_attr("output_size", AttrKind::kInts)},
    .max_outputs = 2,
    .types = adaptive_max_pool_types,
    .reference = adaptive_max_pool_reference,
    .traits = Trait::kCompares | Trait::kFoldsQuantization,
    .work = Work::kPair,
};
}  // namespace pinnace
