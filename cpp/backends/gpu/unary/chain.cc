// Chains of functions as steps of one kernel; where a chain made the operand and nobody else reads it, both become one.
#include "backends/gpu/unary/chain.h"

#include "backends/gpu/strided.h"
#include "backends/gpu/unary/params.h"

namespace pinnace::gpu {
namespace {

constexpr int kMaxStages = 4;

/// What has forms for integers: the same function of int32.
bool has_int32_form(Function f) {
  return f == Function::k_abs || f == Function::k_neg || f == Function::k_sign || f == Function::k_relu ||
         f == Function::k_none;
}

/// Whether a function of the step has an operand by channel.
bool has_channel(const Step& step) {
  const auto constants = step.kernel.constants<ElementwiseConstants>();
  for (int64_t k = 0; k < constants.STAGES; ++k) {
    if (constants.M[static_cast<size_t>(k)] == static_cast<int64_t>(MapStage::Operand::kChannel)) return true;
  }
  return false;
}

/// Whether the step has room for these functions after its own, and operands by channel of as many batch items.
bool continues(const Step& step, std::span<const MapStage> stages) {
  if (step.kernel.constants<ElementwiseConstants>().STAGES + std::ssize(stages) > kMaxStages) return false;
  int64_t items = 0;
  for (const MapStage& stage : stages) {
    if (stage.operand == MapStage::Operand::kChannel) items = stage.items;
  }
  return !items || !has_channel(step) || items == step.params<ElementwiseParams>().operand_images;
}

}  // namespace

Status unary_step(NodeLowering& n, Function function, double p, double q) {
  if (!is_device_float(n.in(0).dtype) && has_int32_form(function)) return int32_unary(n, function);
  PINNACE_TRY(n.require_float(0));
  const bool as_nc4hw4 = n.held_as_nc4hw4(0) && n.in(0).rank() >= 3;
  LoweredValue& v = n.in_value(0);
  const TensorId x = as_nc4hw4 ? n.nc4hw4(0) : n.dense(0);
  const int32_t maker = v.one_reader ? (as_nc4hw4 ? v.nc4hw4_step : v.dense_step) : -1;
  const MapStage stage{function, p, q};
  map_step(n, x, maker, as_nc4hw4, {&stage, 1});
  return {};
}

void map_step(NodeLowering& n, TensorId x, int32_t maker, bool as_nc4hw4, std::span<const MapStage> stages) {
  Lowering& all = n.all();
  ElementwiseConstants constants{.STAGES = 0};
  ElementwiseParams params;
  std::vector<TensorId> bindings(6, x);  // x, y, operands
  const ImageShape s = image_shape(n.out());
  const int64_t vectors = as_nc4hw4 ? s.vectors() : (n.out().elements() + 3) / 4;
  if (maker >= 0) {
    Step& before = all.steps()[static_cast<size_t>(maker)];
    if (before.kernel.id == KernelId::elementwise && continues(before, stages)) {
      before.dead = true;
      constants = before.kernel.constants<ElementwiseConstants>();
      bindings = before.bindings;
      params.numbers = before.params<ElementwiseParams>().numbers;
      if (has_channel(before)) params.operand_images = before.params<ElementwiseParams>().operand_images;
    }
  }
  for (const MapStage& stage : stages) {
    const auto k = static_cast<size_t>(constants.STAGES);
    constants.STAGES = constants.STAGES + 1;
    constants.F[k] = static_cast<int32_t>(stage.function);
    constants.M[k] = static_cast<int32_t>(stage.operand);
    params.numbers[2 * k] = stage.p;
    params.numbers[2 * k + 1] = stage.q;
    if (stage.operand != MapStage::Operand::kNumber) bindings[2 + k] = stage.tensor;
    if (stage.operand == MapStage::Operand::kChannel) params.operand_images = stage.items;
  }
  constants.MASK = as_nc4hw4 && s.C % 4 != 0;
  bindings[1] = as_nc4hw4 ? n.make_nc4hw4() : n.make_dense();
  params.count = vectors;
  params.pixels = as_nc4hw4 ? s.pixels : 1;
  params.blocks = as_nc4hw4 ? s.blocks() : 1;
  params.lanes = as_nc4hw4 && s.C % 4 ? s.C % 4 : 4;
  n.step(KernelId::elementwise, constants, params, std::move(bindings), line_groups(vectors, 64),
         static_cast<double>(vectors * 4));
}

void apply_after(NodeLowering& n, const Activation& activation, bool as_nc4hw4) {
  const Epilogue e = epilogue_of(activation);
  LoweredValue* v = n.all().dry() ? nullptr : &n.all().value(n.out_id());
  const MapStage stage{e.function, e.a, e.b};
  map_step(n, v ? (as_nc4hw4 ? v->nc4hw4 : v->dense) : 0, -1, as_nc4hw4, {&stage, 1});
}

}  // namespace pinnace::gpu
