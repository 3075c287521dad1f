// Functions of one and two tensors: chains on rows or images, or one element per invocation where operands broadcast.
#include <cmath>
#include <cstring>
#include <limits>

#include "backends/gpu/lower/maps.h"
#include "backends/gpu/lower/strided.h"

namespace pinnace::gpu {
namespace {

constexpr int kMaxStages = 4;

Function reversed(Function f) {
  switch (f) {
    case Function::k_sub:
      return Function::k_rsub;
    case Function::k_div:
      return Function::k_rdiv;
    case Function::k_pow:
      return Function::k_rpow;
    case Function::k_prelu:
      return Function::k_rprelu;
    default:
      return f;
  }
}

/// Where a convolution's step has its switch for a residual, -1 if it takes none. The residual is the last binding but
/// one, the result the last, and the epilogue's numbers end the push constants.
int residual_switch(KernelId id) {
  switch (id) {
    case KernelId::conv_matrices:
    case KernelId::conv_pointwise:
    case KernelId::winograd_output_2:
    case KernelId::winograd_output_4:
      return 1;
    case KernelId::conv_image:
    case KernelId::conv_image_block:
    case KernelId::conv_image_transposed:
      return 5;
    default:
      return -1;
  }
}

/// The sum of two images of which a convolution makes one becomes part of that convolution.
bool add_to_convolution(NodeLowering& n, const Activation& activation) {
  Lowering& all = n.all();
  if (all.dry() || !in_epilogue(activation)) return false;
  int32_t latest = -1;
  int chosen = -1;
  for (int i = 0; i < 2; ++i) {
    const LoweredValue& v = n.in_value(i);
    if (!v.one_reader || v.image_step < 0 || v.rows != kNoTensor) continue;
    const Step& step = all.steps()[static_cast<size_t>(v.image_step)];
    const int own = residual_switch(step.kernel.id);
    if (own < 0 || step.kernel.spec[0] != 0 || step.kernel.spec[static_cast<size_t>(own)] != 0) continue;
    if (v.image_step > latest) {
      latest = v.image_step;
      chosen = i;
    }
  }
  if (chosen < 0) return false;
  const TensorId residual = n.image(1 - chosen);
  Step step = all.steps()[static_cast<size_t>(latest)];
  all.steps()[static_cast<size_t>(latest)].dead = true;
  const Epilogue epilogue = epilogue_of(activation);
  step.kernel.spec[0] = static_cast<int32_t>(epilogue.function);
  step.kernel.spec[static_cast<size_t>(residual_switch(step.kernel.id))] = 1;
  const auto tail = Push().f(epilogue.a).f(epilogue.b).bytes();
  std::copy(tail.begin(), tail.end(), step.push.end() - static_cast<ptrdiff_t>(tail.size()));
  step.bindings[step.bindings.size() - 2] = residual;
  step.bindings.back() = n.make_image();
  n.repeat(std::move(step));
  return true;
}

bool same_sizes(const TensorType& a, const TensorType& b) {
  return six_sizes(a.shape) == six_sizes(b.shape);
}

/// Whether `other` is one number per channel of x: [1 or N, C, 1, ...], perhaps without leading 1s.
bool per_channel(const TensorType& other, const TensorType& x) {
  if (x.rank() < 3 || other.rank() > x.rank()) return false;
  const auto o = six_sizes(other.shape), s = six_sizes(x.shape);
  const size_t first = 6 - x.shape.size();
  for (size_t i = 0; i < 6; ++i) {
    const bool ok = i == first ? o[i] == 1 || o[i] == s[i] : i == first + 1 ? o[i] == s[i] : o[i] == 1;
    if (!ok) return false;
  }
  return true;
}

Status strided(NodeLowering& n, Function function, const Activation& activation) {
  const Operand a = operand(n, 0), b = operand(n, 1);
  float_step(n, function, a, b, n.out().shape, n.make_rows(), epilogue_of(activation));
  return {};
}

Status binary(NodeLowering& n, Function function, const Activation& activation = {}) {
  if (!is_device_float(n.in(0).dtype) && activation.none() && function != Function::k_prelu) {
    return word_binary(n, function);
  }
  PINNACE_TRY(n.require_float(0));
  PINNACE_TRY(n.require_float(1));
  if (n.out().rank() > 6) return n.refuse(Rule::kRank, to_string(n.out()));
  const bool whole[2] = {same_sizes(n.in(0), n.out()), same_sizes(n.in(1), n.out())};
  if (whole[0] && whole[1] && n.in(0).rank() == n.in(1).rank() && n.in(0).rank() >= 3 && function == Function::k_add &&
      (n.held_as_image(0) || n.held_as_image(1)) && add_to_convolution(n, activation)) {
    return {};
  }
  // The operand that has all elements of the result goes through; the other one is looked up.
  const int main = whole[0] ? 0 : 1, side = 1 - main;
  if (!whole[main] || n.out().rank() != n.in(main).rank()) return strided(n, function, activation);
  const TensorType &x = n.in(main), &other = n.in(side);
  const bool one = other.elements() == 1;
  const bool images = n.held_as_image(main) || (whole[side] && n.held_as_image(side));
  const bool channel = !whole[side] && !one && per_channel(other, x);
  const bool image = images && x.rank() >= 3 && (one || channel || (whole[side] && other.rank() == x.rank()));
  if (!whole[side] && !one && !(image && channel)) return strided(n, function, activation);
  MapStage stages[2] = {{main == 0 ? function : reversed(function)}};
  LoweredValue& v = n.in_value(main);
  const TensorId from = image ? n.image(main) : n.rows(main);
  if (one && n.constant(side)) {
    stages[0].p = n.floats(side)[0];
  } else if (one && !whole[side]) {
    stages[0].operand = MapStage::Operand::kOne;
    stages[0].tensor = n.rows(side);
  } else if (channel && !whole[side]) {
    stages[0].operand = MapStage::Operand::kChannel;
    stages[0].images = other.rank() == x.rank() ? other.shape[0].size : 1;
    if (n.constant(side)) {
      const ImageShape s = image_shape(x);
      const std::vector<double> numbers = n.floats(side);
      const int64_t C = s.C, count = stages[0].images;
      stages[0].tensor = n.weights("channels", count * s.blocks() * 4, [numbers, C, count](std::span<float> to) {
        const int64_t lanes = (C + 3) / 4 * 4;
        for (int64_t i = 0; i < count; ++i) {
          for (int64_t c = 0; c < C; ++c) {
            to[static_cast<size_t>(i * lanes + c)] = static_cast<float>(numbers[static_cast<size_t>(i * C + c)]);
          }
        }
        return Status();
      });
    } else if (other.rank() == x.rank()) {
      stages[0].tensor = n.image(side);
    } else {
      return strided(n, function, activation);
    }
  } else {
    stages[0].operand = MapStage::Operand::kSamePlace;
    stages[0].tensor = image ? n.image(side) : n.rows(side);
  }
  const int32_t maker = v.one_reader ? (image ? v.image_step : v.rows_step) : -1;
  const Epilogue after = epilogue_of(activation);
  stages[1] = {after.function, after.a, after.b};
  map_step(n, from, maker, image, {stages, activation.none() ? size_t{1} : size_t{2}});
  return {};
}

/// What has forms for integers: the same function on 32-bit words.
bool on_words(Function f) {
  return f == Function::k_abs || f == Function::k_neg || f == Function::k_sign || f == Function::k_relu ||
         f == Function::k_none;
}

/// Of any number of operands, from the first to the last; `after` is applied to the result.
Status fold(NodeLowering& n, Function function, const Epilogue& after = {}) {
  const int count = n.view().input_count();
  const bool floats = is_device_float(n.out().dtype);
  if (count == 1) return unary_step(n, Function::k_none);
  if (count == 2 && after.function == Function::k_none) return binary(n, function);
  const Shape& shape = n.out().shape;
  if (shape.size() > 6) return n.refuse(Rule::kRank, to_string(n.out()));
  Operand sum = operand(n, 0);
  for (int i = 1; i < count; ++i) {
    const bool last = i + 1 == count;
    const Operand other = operand(n, i);
    const TensorId y = last ? n.make_rows() : n.make_scratch(n.out().elements(), n.out().dtype);
    if (floats) {
      float_step(n, function, sum, other, shape, y, last ? after : Epilogue{});
    } else {
      word_step(n, function, sum, other, shape, y, n.out().dtype);
    }
    sum = whole_operand(y, shape);
  }
  return {};
}

}  // namespace

Status unary_step(NodeLowering& n, Function function, double p, double q) {
  if (!is_device_float(n.in(0).dtype) && on_words(function)) return word_unary(n, function);
  PINNACE_TRY(n.require_float(0));
  const bool image = n.held_as_image(0) && n.in(0).rank() >= 3;
  LoweredValue& v = n.in_value(0);
  const TensorId x = image ? n.image(0) : n.rows(0);
  const int32_t maker = v.one_reader ? (image ? v.image_step : v.rows_step) : -1;
  const MapStage stage{function, p, q};
  map_step(n, x, maker, image, {&stage, 1});
  return {};
}

void float_step(NodeLowering& n, Function function, const Operand& a, const Operand& b, const Shape& shape, TensorId y,
                const Epilogue& after) {
  Push push = sizes_push(shape);
  for (int64_t s : a.strides) push.i(s);
  for (int64_t s : b.strides) push.i(s);
  push.f(0).f(0).f(after.a).f(after.b);
  const int64_t count = TensorType{DType::kF32, shape, nullptr}.elements();
  n.step(KernelId::map_strided, {static_cast<int32_t>(function), static_cast<int32_t>(after.function)}, push,
         {a.tensor, b.tensor, y}, line_groups(count, 64), static_cast<double>(count));
}

void map_step(NodeLowering& n, TensorId x, int32_t maker, bool image, std::span<const MapStage> stages) {
  Lowering& all = n.all();
  // What a step holds: count, functions, modes | sizes, numbers | x, y, operands.
  std::vector<int32_t> spec(10, 0);
  std::vector<double> numbers(8, 0);
  std::vector<TensorId> bindings(6, x);
  int64_t images = 0;
  const ImageShape s = image_shape(n.out());
  const int64_t vectors = image ? s.vectors() : (n.out().elements() + 3) / 4;
  if (maker >= 0) {
    Step& before = all.steps()[static_cast<size_t>(maker)];
    int64_t own_images = 0;
    for (const MapStage& stage : stages) {
      if (stage.operand == MapStage::Operand::kChannel) own_images = stage.images;
    }
    if (before.kernel.id == KernelId::map &&
        before.kernel.spec[0] + static_cast<int32_t>(stages.size()) <= kMaxStages) {
      int32_t words[5];
      std::memcpy(words, before.push.data(), sizeof words);
      bool has_channel = false;
      for (int k = 0; k < before.kernel.spec[0]; ++k)
        has_channel |= before.kernel.spec[5 + static_cast<size_t>(k)] == 2;
      const bool fits = !has_channel || !own_images || own_images == words[4];
      if (fits) {
        before.dead = true;
        spec = before.kernel.spec;
        if (has_channel) images = words[4];
        for (size_t k = 0; k < 8; ++k) {
          float number;
          std::memcpy(&number, before.push.data() + 20 + 4 * k, 4);
          numbers[k] = static_cast<double>(number);
        }
        bindings = before.bindings;
      }
    }
  }
  for (const MapStage& stage : stages) {
    const auto k = static_cast<size_t>(spec[0]++);
    spec[1 + k] = static_cast<int32_t>(stage.function);
    spec[5 + k] = static_cast<int32_t>(stage.operand);
    numbers[2 * k] = stage.p;
    numbers[2 * k + 1] = stage.q;
    if (stage.operand != MapStage::Operand::kNumber) bindings[2 + k] = stage.tensor;
    if (stage.operand == MapStage::Operand::kChannel) images = stage.images;
  }
  spec[9] = image && s.C % 4 != 0 ? 1 : 0;
  bindings[1] = image ? n.make_image() : n.make_rows();
  Push push;
  push.i(vectors).i(image ? s.pixels : 1).i(image ? s.blocks() : 1).i(image && s.C % 4 ? s.C % 4 : 4).i(images);
  for (double number : numbers) push.f(number);
  n.step(KernelId::map, std::move(spec), push, std::move(bindings), line_groups(vectors, 64),
         static_cast<double>(vectors * 4));
}

void apply_after(NodeLowering& n, const Activation& activation, bool image) {
  const Epilogue e = epilogue_of(activation);
  LoweredValue* v = n.all().dry() ? nullptr : &n.all().value(n.out_id());
  const MapStage stage{e.function, e.a, e.b};
  map_step(n, v ? (image ? v->image : v->rows) : 0, -1, image, {&stage, 1});
}

#define PINNACE_UNARY(op)                   \
  Status lower_##op(NodeLowering& n) {      \
    return unary_step(n, Function::k_##op); \
  }
PINNACE_UNARY(abs)
PINNACE_UNARY(acos)
PINNACE_UNARY(acosh)
PINNACE_UNARY(asin)
PINNACE_UNARY(asinh)
PINNACE_UNARY(atan)
PINNACE_UNARY(atanh)
PINNACE_UNARY(ceil)
PINNACE_UNARY(cos)
PINNACE_UNARY(cosh)
PINNACE_UNARY(erf)
PINNACE_UNARY(exp)
PINNACE_UNARY(floor)
PINNACE_UNARY(hard_swish)
PINNACE_UNARY(log)
PINNACE_UNARY(mish)
PINNACE_UNARY(neg)
PINNACE_UNARY(reciprocal)
PINNACE_UNARY(relu)
PINNACE_UNARY(round)
PINNACE_UNARY(sigmoid)
PINNACE_UNARY(sign)
PINNACE_UNARY(silu)
PINNACE_UNARY(sin)
PINNACE_UNARY(sinh)
PINNACE_UNARY(softplus)
PINNACE_UNARY(softsign)
PINNACE_UNARY(sqrt)
PINNACE_UNARY(tan)
PINNACE_UNARY(tanh)
#undef PINNACE_UNARY

Status lower_celu(NodeLowering& n) {
  return unary_step(n, Function::k_celu, n.view().attr_float("alpha"));
}
Status lower_elu(NodeLowering& n) {
  return unary_step(n, Function::k_elu, n.view().attr_float("alpha"));
}
Status lower_leaky_relu(NodeLowering& n) {
  return unary_step(n, Function::k_leaky_relu, n.view().attr_float("alpha"));
}
Status lower_thresholded_relu(NodeLowering& n) {
  return unary_step(n, Function::k_thresholded_relu, n.view().attr_float("alpha"));
}
Status lower_selu(NodeLowering& n) {
  return unary_step(n, Function::k_selu, n.view().attr_float("alpha"), n.view().attr_float("gamma"));
}
Status lower_shrink(NodeLowering& n) {
  return unary_step(n, Function::k_shrink, n.view().attr_float("lambd"), n.view().attr_float("bias"));
}
Status lower_hard_sigmoid(NodeLowering& n) {
  return unary_step(n, Function::k_hard_sigmoid, n.view().attr_float("alpha"), n.view().attr_float("beta"));
}
Status lower_gelu(NodeLowering& n) {
  return unary_step(n, n.view().attr_string("approximate") == "tanh" ? Function::k_gelu_tanh : Function::k_gelu);
}
/// By stages where a bound is known in a run only, or a NaN; integers by one step per bound.
Status lower_clip(NodeLowering& n) {
  const Function functions[2] = {Function::k_max, Function::k_min};
  if (!is_device_float(n.in(0).dtype)) {
    if (!n.has(1) && !n.has(2)) return word_unary(n, Function::k_none);
    const Shape& shape = n.out().shape;
    if (shape.size() > 6) return n.refuse(Rule::kRank, to_string(n.out()));
    Operand x = operand(n, 0);
    for (int i = 1; i < 3; ++i) {
      if (!n.has(i)) continue;
      const TensorId bound = n.rows(i);
      const TensorId y = i == 2 || !n.has(2) ? n.make_rows() : n.make_scratch(n.out().elements(), n.out().dtype);
      word_step(n, functions[i - 1], x, {bound}, shape, y);
      x = whole_operand(y, shape);
    }
    return {};
  }
  double bounds[2] = {-std::numeric_limits<double>::infinity(), std::numeric_limits<double>::infinity()};
  bool known = true;
  for (int i = 1; i < 3; ++i) {
    if (!n.has(i)) continue;
    if (n.in(i).elements() != 1) return n.refuse(Rule::kAttribute, to_string(n.in(i)));
    known = known && n.constant(i);
    if (!n.constant(i)) continue;
    const std::vector<double> bound = n.floats(i);
    if (bound.size() != 1) return n.refuse(Rule::kConstant, i == 1 ? "min" : "max");
    known = known && !std::isnan(bound[0]);
    bounds[i - 1] = bound[0];
  }
  if (known) return unary_step(n, Function::k_clip, bounds[0], bounds[1]);
  std::vector<MapStage> stages;
  for (int i = 1; i < 3; ++i) {
    if (n.has(i)) stages.push_back({functions[i - 1], 0, 0, MapStage::Operand::kOne, n.rows(i)});
  }
  const bool image = n.held_as_image(0) && n.in(0).rank() >= 3;
  map_step(n, image ? n.image(0) : n.rows(0), -1, image, stages);
  return {};
}

Status lower_add(NodeLowering& n) {
  PINNACE_ASSIGN(const Activation activation, parse_activation(n.view()));
  return binary(n, Function::k_add, activation);
}
Status lower_sub(NodeLowering& n) {
  return binary(n, Function::k_sub);
}
Status lower_mul(NodeLowering& n) {
  return binary(n, Function::k_mul);
}
Status lower_div(NodeLowering& n) {
  return binary(n, Function::k_div);
}
/// Integers to integer powers as integers; floats to one that is constant, which float32 holds.
Status lower_pow(NodeLowering& n) {
  const bool floats = is_device_float(n.in(0).dtype), float_power = is_device_float(n.in(1).dtype);
  if (floats == float_power) return binary(n, Function::k_pow);
  if (!floats) return n.refuse(Rule::kType, str_cat(to_string(n.in(0)), " to a power of ", to_string(n.in(1))));
  if (!n.constant(1) || n.in(1).elements() != 1 || n.out().elements() != n.in(0).elements() ||
      n.out().rank() != n.in(0).rank()) {
    return n.refuse(Rule::kConstant, "an integer power of floats");
  }
  const auto power = n.view().input_ints(1);
  constexpr int64_t kHeld = int64_t{1} << 24;
  if (power && (power->at(0) > kHeld || power->at(0) < -kHeld)) {
    return n.refuse(Rule::kAttribute, str_cat("power ", power->at(0)));
  }
  return unary_step(n, Function::k_pow, power ? static_cast<double>(power->at(0)) : 1.0);
}
Status lower_prelu(NodeLowering& n) {
  return binary(n, Function::k_prelu);
}
Status lower_max(NodeLowering& n) {
  return fold(n, Function::k_max);
}
Status lower_min(NodeLowering& n) {
  return fold(n, Function::k_min);
}
Status lower_sum(NodeLowering& n) {
  return fold(n, Function::k_add);
}
Status lower_mean(NodeLowering& n) {
  return fold(n, Function::k_add, {Function::k_affine, 1.0 / n.view().input_count(), 0});
}

}  // namespace pinnace::gpu
