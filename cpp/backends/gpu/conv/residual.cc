// Residual sums as part of a convolution: its kernel adds an NC4HW4 buffer before its activation.
#include "backends/gpu/conv/residual.h"

#include "backends/gpu/conv/params.h"

namespace pinnace::gpu {
namespace {

/// A kernel that takes a residual: the specialisation constants that are its activation and that switch the residual
/// on, and the numbers of the activation. The residual is the last binding but one, the result the last.
struct TakesResidual {
  SpecConstant activation, residual;
  Field a, b;
};
std::optional<TakesResidual> takes_residual(KernelId id) {
  switch (id) {
    case KernelId::conv_matrices:
    case KernelId::conv_pointwise:
      return TakesResidual{PINNACE_SPEC(ConvPointwiseConstants, ACT), PINNACE_SPEC(ConvPointwiseConstants, RESIDUAL),
                           PINNACE_FIELD(ConvPointwiseParams, a), PINNACE_FIELD(ConvPointwiseParams, b)};
    case KernelId::winograd_output_2:
    case KernelId::winograd_output_4:
      return TakesResidual{PINNACE_SPEC(WinogradOutputConstants, ACT), PINNACE_SPEC(WinogradOutputConstants, RESIDUAL),
                           PINNACE_FIELD(WinogradOutputParams, a), PINNACE_FIELD(WinogradOutputParams, b)};
    case KernelId::conv_nc4hw4:
    case KernelId::conv_nc4hw4_block:
    case KernelId::conv_nc4hw4_transposed:
      return TakesResidual{PINNACE_SPEC(ConvNc4hw4Constants, ACT), PINNACE_SPEC(ConvNc4hw4Constants, RESIDUAL),
                           PINNACE_FIELD(ConvNc4hw4Params, a), PINNACE_FIELD(ConvNc4hw4Params, b)};
    default:
      return {};
  }
}

/// Which input the latest convolution makes that can take the other one; -1 if none does.
int convolved_input(NodeLowering& n) {
  int32_t latest = -1;
  int chosen = -1;
  for (int i = 0; i < 2; ++i) {
    const LoweredValue& v = n.in_value(i);
    if (!v.one_reader || v.nc4hw4_step <= latest || v.dense != kNoTensor) continue;
    const KernelKey& kernel = n.all().steps()[static_cast<size_t>(v.nc4hw4_step)].kernel;
    const auto own = takes_residual(kernel.id);
    if (!own || kernel[own->activation] != 0 || kernel[own->residual] != 0) continue;
    latest = v.nc4hw4_step;
    chosen = i;
  }
  return chosen;
}

}  // namespace

bool add_to_convolution(NodeLowering& n, const Activation& activation) {
  Lowering& all = n.all();
  if (all.dry() || !in_epilogue(activation)) return false;
  const int input = convolved_input(n);
  if (input < 0) return false;
  const auto at = static_cast<size_t>(n.in_value(input).nc4hw4_step);
  const TensorId residual = n.nc4hw4(1 - input);
  Step step = all.steps()[at];
  all.steps()[at].dead = true;
  const TakesResidual own = *takes_residual(step.kernel.id);
  const Epilogue epilogue = epilogue_of(activation);
  step.kernel[own.activation] = static_cast<int32_t>(epilogue.function);
  step.kernel[own.residual] = 1;
  set_float(step, own.a, epilogue.a);
  set_float(step, own.b, epilogue.b);
  step.bindings[step.bindings.size() - 2] = residual;
  step.bindings.back() = n.make_nc4hw4();
  n.repeat(std::move(step));
  return true;
}

}  // namespace pinnace::gpu
