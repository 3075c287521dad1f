// Chains of functions of one element, with operands: what several families end with.
#pragma once

#include "backends/gpu/lowering.h"

namespace pinnace::gpu {

/// One function of a chain. Its second operand is a number (p) unless `operand` says where to read it.
struct MapStage {
  enum class Operand : int32_t {
    kNumber = 0,
    kSamePlace = 1,  ///< a tensor of the same shape and layout
    kChannel = 2,    ///< an NC4HW4 buffer of one pixel
    kOne = 3,        ///< a tensor of one element
  };
  Function function = Function::k_none;
  double p = 0, q = 0;
  Operand operand = Operand::kNumber;
  TensorId tensor = kNoTensor;
  int64_t items = 1;  ///< of the batch, in a kChannel operand
};

/// Output 0 = stages of `x`, a tensor of the output's size and layout. Where a chain of functions made x
/// and nobody else reads it, they become one step. `maker`: the step that made x, -1 if unknown or read by others.
void map_step(NodeLowering& n, TensorId x, int32_t maker, bool as_nc4hw4, std::span<const MapStage> stages);

/// Output 0 = function(input 0) in the layout that input 0 has; of integers where the function has a form for those.
Status unary_step(NodeLowering& n, Function function, double p = 0, double q = 0);

/// Output 0 becomes activation(output 0), where the activation is not in the epilogue of products.
void apply_after(NodeLowering& n, const Activation& activation, bool as_nc4hw4);

}  // namespace pinnace::gpu
