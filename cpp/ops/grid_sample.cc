// grid_sample: x sampled at places that a second tensor holds.
//   x     [N, C, D1, ..., Dk]  floats, k in 1..8
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
#include "ops/grid_sample_taps.h"

#include "base/cancel.h"
#include "ops/move.h"

namespace pinnace {
namespace {
/// A cubic sample has four elements a dimension: 65,536 at most.
constexpr int kMostRank = 10;

Result<TensorType> grid_sample_type(const NodeView& node) {
  const TensorType &x = node.input(0), &grid = node.input(1);
  PINNACE_TRY(grid_sample_spec(node).status());
  if (x.rank() < 3 || x.rank() > kMostRank || grid.rank() != x.rank()) {
    return node.error("x ", x, " and grid ", grid, " must have one rank of 3 to ", kMostRank);
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

template <class T, class G>
void sample(const Threads& threads, const GridSpec& spec, const TensorView& x, const TensorView& grid,
            const TensorView& y) {
  using F = std::conditional_t<std::is_same_v<G, double>, double, float>;
  const std::vector<int64_t> strides = row_major_strides(x.type->shape);
  const auto dims = static_cast<size_t>(x.rank() - 2);
  const int64_t channels = x.dim(1), places = y.elements() / (x.dim(0) * channels);
  const double all_taps = std::pow(spec.taps(), dims);
  const double cost = 50 + 6 * static_cast<double>(channels) * all_taps;
  threads.ranges(x.dim(0) * places, cost, [&](int64_t begin, int64_t end) {
    std::vector<GridTaps> taps(dims);
    std::vector<int> at(dims);
    for (int64_t p = begin; p < end; ++p) {
      for (size_t d = 0; d < dims; ++d) {
        const F place =
            static_cast<F>(widen(grid.data<G>()[p * static_cast<int64_t>(dims) + static_cast<int64_t>(dims - 1 - d)]));
        taps[d] = grid_taps(spec, place, x.type->shape[2 + d].size);
      }
      for (int64_t c = 0; c < channels && !loop_stops(); ++c) {
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
  PINNACE_ASSIGN(const GridSpec spec, grid_sample_spec(node));
  if (out[0].elements() == 0) return {};
  return visit_float(in[0].dtype(), [&](auto x) {
    return visit_float(in[1].dtype(), [&](auto g) {
      sample<decltype(x), decltype(g)>(node.threads(), spec, in[0], in[1], out[0]);
      return Status();
    });
  });
}
}  // namespace

Result<GridSpec> grid_sample_spec(const NodeView& node) {
  const std::string_view mode = node.attr_string("mode"), padding = node.attr_string("padding_mode");
  if (mode != "linear" && mode != "nearest" && mode != "cubic") {
    return node.error("mode is '", mode, "', must be linear, nearest or cubic");
  }
  if (padding != "zeros" && padding != "border" && padding != "reflection") {
    return node.error("padding_mode is '", padding, "', must be zeros, border or reflection");
  }
  return GridSpec{mode == "nearest"  ? GridMode::kNearest
                  : mode == "linear" ? GridMode::kLinear
                                     : GridMode::kCubic,
                  padding == "zeros"    ? GridPadding::kZeros
                  : padding == "border" ? GridPadding::kBorder
                                        : GridPadding::kReflection,
                  node.attr_int("align_corners") != 0};
}

PINNACE_OP(grid_sample){
    .name = "grid_sample",
    .inputs = {{"x", kFloats}, {"grid", kFloats}},
    .attrs = {int_attr("align_corners", 0), string_attr("mode", "linear"), string_attr("padding_mode", "zeros")},
    .type = grid_sample_type,
    .reference = grid_sample_reference,
    .work = Work::kSorted,
};
}  // namespace pinnace
