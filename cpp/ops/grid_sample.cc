// grid_sample: x sampled at places that a second tensor holds.
//   x     [N, C, D1, ..., Dk]  floats, k >= 1
//   grid  [N, E1, ..., Ek, k]  floats: place in [-1, 1] along Dk, ..., D1 (the last dimension first)
//   y     [N, C, E1, ..., Ek]  as x
//   align_corners  int, default 0: -1 and 1 are the outer edges of the first and last element; 1: their centres
//   mode           "linear" (default), "nearest" (half to even), "cubic" (a = -0.75)
//   padding_mode   "zeros" (default): elements beyond the edge are 0; "border": they repeat the edge; "reflection":
//   they
//                  mirror the inside, about the edges or centres that -1 and 1 stand for
// A place beyond the edges is first moved inside by border and reflection, then the elements around it are read. Places
// are computed in float32 (f64 grids: double), sums in double, rounded once. NaN places are outside, or 0 with border
// and reflection. Source: ONNX GridSample, opset 22.
#include <algorithm>
#include <cmath>

#include "ops/move.h"

namespace pinnace {
namespace {
enum class Mode : uint8_t { kNearest, kLinear, kCubic };
enum class Padding : uint8_t { kZeros, kBorder, kReflection };
struct Spec {
  Mode mode;
  Padding padding;
  bool align;
};

Result<Spec> grid_sample_spec(const NodeView& node) {
  const std::string_view mode = node.attr_string("mode"), padding = node.attr_string("padding_mode");
  if (mode != "linear" && mode != "nearest" && mode != "cubic") {
    return node.error("mode is '", mode, "', must be linear, nearest or cubic");
  }
  if (padding != "zeros" && padding != "border" && padding != "reflection") {
    return node.error("padding_mode is '", padding, "', must be zeros, border or reflection");
  }
  return Spec{mode == "nearest"  ? Mode::kNearest
              : mode == "linear" ? Mode::kLinear
                                 : Mode::kCubic,
              padding == "zeros"    ? Padding::kZeros
              : padding == "border" ? Padding::kBorder
                                    : Padding::kReflection,
              node.attr_int("align_corners") != 0};
}

Result<TensorType> grid_sample_type(const NodeView& node) {
  const TensorType &x = node.input(0), &grid = node.input(1);
  PINNACE_TRY(grid_sample_spec(node).status());
  if (x.rank() < 3 || grid.rank() != x.rank()) {
    return node.error("x ", x, " and grid ", grid, " must have one rank of 3 or more");
  }
  const auto batch = dim_merge(x.shape[0], grid.shape[0]);
  if (!batch) return node.error("x ", x, " and grid ", grid, " differ in their first size");
  if (grid.shape.back().known() && grid.shape.back().size != x.rank() - 2) {
    return node.error("the last size of grid ", grid, " must be ", x.rank() - 2, " for ", x);
  }
  TensorType y{x.dtype, {*batch, x.shape[1]}, nullptr};
  y.shape.insert(y.shape.end(), grid.shape.begin() + 1, grid.shape.end() - 1);
  for (int d = 2; d < x.rank(); ++d) {
    if (x.shape[static_cast<size_t>(d)] == Dim(0)) return node.error("x ", x, " has nothing to sample");
  }
  return y;
}

/// x mirrored at low and high as often as it takes.
template <class F>
F reflect(F x, F low, F high) {
  const F span = high - low;
  if (!(span > 0)) return low;
  const F distance = std::abs(x - low), rest = std::fmod(distance, span);
  return std::fmod(std::floor(distance / span), F(2)) == 0 ? low + rest : high - rest;
}

/// The elements along one dimension that make up a sample, with their weights; outside ones have weight 0.
struct Taps {
  int count = 0;
  int64_t index[4] = {};
  double weight[4] = {};
};

void cubic_weights(double t, double* w) {
  constexpr double a = -0.75;
  const auto inner = [](double d) { return ((a + 2) * d - (a + 3)) * d * d + 1; };
  const auto outer = [](double d) { return ((a * d - 5 * a) * d + 8 * a) * d - 4 * a; };
  w[0] = outer(t + 1);
  w[1] = inner(t);
  w[2] = inner(1 - t);
  w[3] = outer(2 - t);
}

template <class F>
Taps find_taps(const Spec& spec, F place, int64_t size) {
  const F n = static_cast<F>(size);
  F x = spec.align ? (place + 1) / 2 * (n - 1) : ((place + 1) * n - 1) / 2;
  if (spec.mode == Mode::kNearest) x = std::nearbyint(x);  // the default mode is half to even
  const F low = spec.align ? F(0) : F(-0.5), high = spec.align ? n - 1 : n - F(0.5);
  if (spec.padding != Padding::kZeros) {
    // Cubic samples near the edge mix it with the inside, so only what is so far out that all of it is edge moves.
    const F margin = spec.mode == Mode::kCubic ? F(2) : F(0);
    if (x < low || x > high) {
      x = spec.padding == Padding::kBorder ? std::clamp(x, -margin, n - 1 + margin) : reflect(x, low, high);
    }
    if (std::isnan(x)) x = 0;
  }
  Taps taps;
  taps.count = spec.mode == Mode::kNearest ? 1 : spec.mode == Mode::kLinear ? 2 : 4;
  if (!(x > -4 && x < n + 4)) return taps;  // far outside, or NaN: only zeros
  const F floor = spec.mode == Mode::kNearest ? std::nearbyint(x) : std::floor(x);
  const double t = static_cast<double>(x) - static_cast<double>(floor);
  if (spec.mode == Mode::kNearest) taps.weight[0] = 1;
  if (spec.mode == Mode::kLinear) {
    taps.weight[0] = 1 - t;
    taps.weight[1] = t;
  }
  if (spec.mode == Mode::kCubic) cubic_weights(t, taps.weight);
  const auto first = static_cast<int64_t>(floor) - (spec.mode == Mode::kCubic ? 1 : 0);
  for (int k = 0; k < taps.count; ++k) {
    const int64_t at = first + k;
    taps.index[k] = std::clamp<int64_t>(at, 0, size - 1);
    if (at == taps.index[k] || spec.padding == Padding::kBorder) continue;
    if (spec.padding == Padding::kZeros) {
      taps.weight[k] = 0;
    } else {
      const F mirrored = reflect(static_cast<F>(at), low, high);
      taps.index[k] = std::clamp<int64_t>(static_cast<int64_t>(mirrored), 0, size - 1);
    }
  }
  return taps;
}

template <class T, class G>
void sample(const Threads& threads, const Spec& spec, const TensorView& x, const TensorView& grid,
            const TensorView& y) {
  using F = std::conditional_t<std::is_same_v<G, double>, double, float>;
  const std::vector<int64_t> strides = row_major_strides(x.type->shape);
  const auto dims = static_cast<size_t>(x.rank() - 2);
  const int64_t channels = x.dim(1), places = y.elements() / (x.dim(0) * channels);
  const double all_taps = std::pow(spec.mode == Mode::kCubic ? 4 : spec.mode == Mode::kLinear ? 2 : 1, dims);
  const double cost = 50 + 6 * static_cast<double>(channels) * all_taps;
  threads.ranges(x.dim(0) * places, cost, [&](int64_t begin, int64_t end) {
    std::vector<Taps> taps(dims);
    std::vector<int> at(dims);
    for (int64_t p = begin; p < end; ++p) {
      for (size_t d = 0; d < dims; ++d) {
        const F place =
            static_cast<F>(widen(grid.data<G>()[p * static_cast<int64_t>(dims) + static_cast<int64_t>(dims - 1 - d)]));
        taps[d] = find_taps(spec, place, x.type->shape[2 + d].size);
      }
      for (int64_t c = 0; c < channels; ++c) {
        const int64_t n = p / places;
        const T* from = x.data<T>() + n * strides[0] + c * strides[1];
        double sum = 0;
        std::fill(at.begin(), at.end(), 0);
        for (bool more = true; more;) {  // all combinations of taps, the last dimension first
          double weight = 1;
          int64_t offset = 0;
          for (size_t d = 0; d < dims; ++d) {
            weight *= taps[d].weight[at[d]];
            offset += taps[d].index[at[d]] * strides[2 + d];
          }
          if (weight != 0) sum += weight * static_cast<double>(widen(from[offset]));
          more = false;
          for (size_t d = dims; d-- > 0 && !more;) {
            more = ++at[d] < taps[d].count;
            if (!more) at[d] = 0;
          }
        }
        y.data<T>()[(n * channels + c) * places + p % places] = narrow<T>(sum);
      }
    }
  });
}

Status grid_sample_reference(const NodeView& node, std::span<const TensorView> in, std::span<const TensorView> out) {
  PINNACE_ASSIGN(const Spec spec, grid_sample_spec(node));
  if (out[0].elements() == 0) return {};
  return visit_float(in[0].dtype(), [&](auto x) {
    return visit_float(in[1].dtype(), [&](auto g) {
      sample<decltype(x), decltype(g)>(node.threads(), spec, in[0], in[1], out[0]);
      return Status();
    });
  });
}
}  // namespace

PINNACE_OP(grid_sample){
    .name = "grid_sample",
    .inputs = {{"x", kFloats}, {"grid", kFloats}},
    .attrs = {int_attr("align_corners", 0), string_attr("mode", "linear"), string_attr("padding_mode", "zeros")},
    .type = grid_sample_type,
    .reference = grid_sample_reference,
    .work = Work::kSorted,
};
}  // namespace pinnace
