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

#include "ops/lines.h"
#include "ops/pool.h"

namespace pinnace {
namespace {
Status adaptive_max_pool_types(const NodeView& node, std::span<TensorType> out) {
  const TensorType& x = node.input(0);
  const auto declared = node.output_quantization(0);
  if (declared && (!x.quantized() || !(*declared == *x.quantization))) {
    return node.error("the output's declared quantisation differs from that of x ", x, ", which is kept");
  }
  if (x.quantized()) PINNACE_TRY(check_per_tensor(node, *x.quantization, x.dtype, "x"));
  const auto sizes = node.attr_ints("output_size");
  if (x.rank() < 3 || x.rank() > 5) return node.error("x is ", x, ", must have rank 3 to 5");
  if (sizes.size() + 2 != x.shape.size()) {
    return node.error("output_size ", list_text(sizes), " must have ", x.rank() - 2, " entries for x ", x);
  }
  Shape shape = {x.shape[0], x.shape[1]};
  for (size_t i = 0; i < sizes.size(); ++i) {
    if (sizes[i] < 0 || sizes[i] > INT32_MAX || x.shape[2 + i].size > INT32_MAX) {
      return node.error("output_size ", list_text(sizes), " or a size of x ", x, " is outside [0, 2^31)");
    }
    shape.push_back(sizes[i]);
  }
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
  std::array<int64_t, 3> from{1, 1, 1}, to{1, 1, 1};
  for (int i = 2; i < x.rank(); ++i) {
    from[static_cast<size_t>(i + 3 - x.rank())] = x.dim(i);
    to[static_cast<size_t>(i + 3 - x.rank())] = y.dim(i);
  }
  struct Bin {
    int64_t begin, end;
  };
  const int64_t planes = x.dim(0) * x.dim(1), in_size = from[0] * from[1] * from[2];
  const int64_t out_size = to[0] * to[1] * to[2];
  if (in_size == 0) from = {};  // bins of nothing: no loop over the other sizes
  const auto bin = [&](size_t d, int64_t o) {
    return Bin{o * from[d] / to[d], ((o + 1) * from[d] + to[d] - 1) / to[d]};
  };
  int64_t* indices = out.size() > 1 ? out[1].data<int64_t>() : nullptr;
  const auto element = static_cast<size_t>(dtype_bits(x.dtype()) / 8);
  const auto* stored = x.data<std::byte>();
  auto* to_stored = y.data<std::byte>();
  const double cost = 3 * static_cast<double>(in_size + out_size);
  return node.threads().ranges(planes, cost, [&](int64_t first, int64_t last) -> Status {
    PINNACE_ASSIGN(auto values, Scratch<double>::allocate(in_size, node.label()));
    const double* plane = values.data();
    int64_t at = first * out_size;
    for (int64_t p = first; p < last; ++p) {
      load_stored(x, p * in_size, in_size, values.data());
      for (int64_t oz = 0; oz < to[0]; ++oz) {
        const Bin bz = bin(0, oz);
        for (int64_t oy = 0; oy < to[1]; ++oy) {
          const Bin by = bin(1, oy);
          for (int64_t ox = 0; ox < to[2]; ++ox, ++at) {
            const Bin bx = bin(2, ox);
            int64_t place = -1;
            for (int64_t z = bz.begin; z < bz.end; ++z) {
              for (int64_t i = by.begin; i < by.end; ++i) {
                const int64_t row = (z * from[1] + i) * from[2];
                for (int64_t k = row + bx.begin; k < row + bx.end; ++k) {
                  if (place < 0 || plane[k] > plane[place] || std::isnan(plane[k])) place = k;
                }
              }
            }
            if (place < 0) {
              store_least(y, at);
            } else {
              std::memcpy(to_stored + static_cast<size_t>(at) * element,
                          stored + static_cast<size_t>(p * in_size + place) * element, element);
            }
            if (indices) indices[at] = place;
          }
        }
      }
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
