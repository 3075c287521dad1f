// Any resize of floats as two products with constant matrices of weights, W then H: for what RESIZE_BILINEAR and
// RESIZE_NEAREST_NEIGHBOR do not compute, and below the levels that have them. From feature level 2 on. Weights are
// rounded to float32: within 2^-22 of the sum of products' magnitudes; nearest is exact for finite elements.
#include "backends/nnapi/rewrites/rewrites.h"
#include "backends/nnapi/steps/shape.h"
#include "backends/nnapi/steps/weights.h"
#include "ops/resize_map.h"

namespace pinnace::nnapi_client {
namespace {

/// A matrix of more weights than this is not worth its memory.
constexpr int64_t kMostWeights = 1 << 22;

/// [out, in]: how much of each input place an output place takes.
Result<std::vector<float>> weights_of(const ResizeSpec& spec, const ResizeAxis& axis) {
  std::vector<float> matrix(static_cast<size_t>(axis.out * axis.in), 0);
  if (spec.mode == ResizeMode::kNearest) {
    for (int64_t i = 0; i < axis.out; ++i) {
      matrix[static_cast<size_t>(i * axis.in + resize_nearest(spec, axis, resize_coordinate(spec, axis, i)))] = 1;
    }
    return matrix;
  }
  PINNACE_ASSIGN(ResizeTaps taps, resize_taps(spec, axis, "resize"));
  for (int64_t i = 0; i < axis.out; ++i) {
    for (int64_t k = 0; k < taps.count; ++k) {
      matrix[static_cast<size_t>(i * axis.in + taps.index[i * taps.count + k])] +=
          static_cast<float>(taps.weight[i * taps.count + k]);
    }
  }
  return matrix;
}

/// x [.., in] by the axis' matrix: [.., out].
Result<OperandId> resize_last(NodeLowering& n, const ResizeSpec& spec, const ResizeAxis& axis, OperandId x) {
  std::vector<uint32_t> dims = n.operand(x).dims;
  const uint32_t rows = dims[0] * dims[1] * dims[2];
  const auto in = static_cast<uint32_t>(axis.in), out = static_cast<uint32_t>(axis.out);
  PINNACE_ASSIGN(const std::vector<float> matrix, weights_of(spec, axis));
  const OperandId weights =
      n.lowering().add_weight({nnapi::OperandCode::kTensorFloat32, {out, in}},
                              str_cat("axis", axis.axis, ":", in, ":", out), [matrix](std::byte* to) {
                                std::copy_n(reinterpret_cast<const std::byte*>(matrix.data()), matrix.size() * 4, to);
                              });
  PINNACE_ASSIGN(const OperandId zeros, bias_operand(n, -1, x, weights, out));
  PINNACE_ASSIGN(const OperandId lines, reshaped(n, x, {rows, in}));
  const OperandId made = n.temp(x, {rows, out});
  PINNACE_TRY(n.add(Op::FULLY_CONNECTED, {lines, weights, zeros, n.scalar(0)}, made));
  dims[3] = out;
  return reshaped(n, made, dims);
}

}  // namespace

Status resize_by_product(NodeLowering& n, OperandId x, OperandId y) {
  if (n.operand(x).type != nnapi::OperandCode::kTensorFloat32) return n.refuse(Rule::kAttribute, "not float32");
  PINNACE_ASSIGN(const ResizeSpec spec, resize_spec(n.view()));
  PINNACE_ASSIGN(const std::vector<ResizeAxis> axes, resize_axes(n.view()));
  if (spec.coordinates == ResizeCoordinates::kTfCropAndResize) return n.refuse(Rule::kAttribute, "tf_crop_and_resize");
  n.rewritten("resize by products with matrices of weights");
  const int32_t turn[] = {0, 1, 3, 2};
  OperandId at = x;
  const ResizeAxis* of[4] = {};
  for (const ResizeAxis& a : axes) {
    if (a.identity(spec)) continue;
    if (a.axis < 2) return n.refuse(Rule::kAttribute, str_cat("axis ", a.axis));
    if (a.in * a.out > kMostWeights) return n.refuse(Rule::kAttribute, str_cat(a.in, " to ", a.out));
    of[a.axis] = &a;
  }
  if (of[3]) {
    PINNACE_ASSIGN(at, resize_last(n, spec, *of[3], at));
  }
  if (!of[2]) return reshape_into(n, at, y);
  PINNACE_ASSIGN(at, transposed(n, at, turn));
  PINNACE_ASSIGN(at, resize_last(n, spec, *of[2], at));
  return transpose_into(n, at, turn, y);
}

}  // namespace pinnace::nnapi_client
