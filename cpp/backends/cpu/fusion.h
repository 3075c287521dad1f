// Work of neighbouring nodes that a kernel does beside its own node's, so that the value between them is never written
// to memory. Lowering decides it (plan/lower.cc) among what kernels can do (CpuKernel::fuses); the graph does not know
// of it, and the node itself stays one that its operator's schema allows.
#pragma once

#include <optional>
#include <type_traits>

#include "backends/cpu/layout.h"
#include "ops/op.h"

namespace pinnace::cpu {

/// Kinds of fused work; a set of bits.
using FusionKinds = uint32_t;
inline constexpr FusionKinds kFusesResidual = 1 << 0, kFusesChannelScale = 1 << 1, kFusesIntegerWeights = 1 << 2,
                             kFusesRoundedRows = 1 << 3;

/// conv: a value of the result's shape is added to the result, before the node's activation.
template <class Operand>
struct ResidualOf {
  Operand addend;  ///< in the layout of the kernel's result
  /// Of a quantised convolution: what its own result is rounded to before the addition.
  float own_scale = 0;
  int32_t own_zero_point = 0;
};

/// mat_mul, gemm: the second operand is left out of the node. These constants, operands of dequantize_linear, stand for
/// it.
template <class Operand>
struct IntegerWeightsOf {
  Operand integers;
  Operand scales;
  std::optional<Operand> zero_points;
  int64_t axis = 0;         ///< of the integers, along which scales differ; not negative
  int64_t block_size = 0;   ///< how many integers along that axis share their scale; 0: not in blocks
  bool transposed = false;  ///< the second operand is the transpose of what is dequantised
  /// Each row of the first operand is rounded to unsigned bytes first, whose steps cover its numbers and 0, and
  /// products are of integers: plan/rounded_rows.h.
  bool rounds_rows = false;
};

/// All of a node's fused work. Operand: what stands for a value; each step of compilation has a type of its own.
template <class Operand>
struct FusionOf {
  std::optional<ResidualOf<Operand>> residual;
  /// conv: one number for each channel of input 0, by which the channel is multiplied first.
  std::optional<Operand> channel_scale;
  std::optional<IntegerWeightsOf<Operand>> weights;

  FusionKinds kinds() const {
    return (residual ? kFusesResidual : 0) | (channel_scale ? kFusesChannelScale : 0) |
           (weights ? weights->rounds_rows ? kFusesRoundedRows : kFusesIntegerWeights : 0);
  }

  /// The same work with f(operand) in place of every operand, in the order of the members.
  template <class F, class To = std::invoke_result_t<F&, const Operand&>>
  FusionOf<To> map(F&& f) const {
    FusionOf<To> to;
    if (residual) {
      to.residual = ResidualOf<To>{f(residual->addend), residual->own_scale, residual->own_zero_point};
    }
    if (channel_scale) to.channel_scale = f(*channel_scale);
    if (weights) {
      const IntegerWeightsOf<Operand>& w = *weights;
      to.weights =
          IntegerWeightsOf<To>{f(w.integers), f(w.scales), {}, w.axis, w.block_size, w.transposed, w.rounds_rows};
      if (w.zero_points) to.weights->zero_points = f(*w.zero_points);
    }
    return to;
  }
};

/// An operand of fused work as kernels see it: bytes are those of a constant, or, while the kernel runs, of any
/// operand.
struct FusedView {
  TensorView view;
  Layout layout;
};
using Fusion = FusionOf<FusedView>;
inline constexpr Fusion kNoFusion{};

/// A node as kernels see it: with the work that is fused into it, and the type that its results are rounded to.
class KernelNode : public NodeView {
 public:
  /// A node of the graph, as it is, is a KernelNode without fused work.
  KernelNode(const NodeView& node, const Fusion& fusion = kNoFusion, DType stored_as = DType::kF32)  // NOLINT: implicit
      : NodeView(node), fusion_(fusion), stored_as_(stored_as) {}

  const Fusion& fusion() const { return fusion_; }
  /// f16 or bf16 where a float32 kernel stands for one of that type (plan/precision.h); else f32.
  DType stored_as() const { return stored_as_; }

 private:
  Fusion fusion_;
  DType stored_as_;
};

}  // namespace pinnace::cpu
