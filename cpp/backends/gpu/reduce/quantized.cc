// Reductions of quantised tensors, whose sums the reference makes in 64-bit floats: kernels do the same arithmetic by
// integers (shaders/double.glsl) and compare results with the numbers at which the reference stores another byte.
#include <cmath>

#include "backends/gpu/quantize/thresholds.h"
#include "backends/gpu/reduce/reduction.h"
#include "backends/gpu/unary/int8_table.h"

namespace pinnace::gpu {
namespace {

Int8ReduceParams int8_params(const Reduction& r, DType type) {
  const ReduceParams& p = r.params;
  return {.rows = p.rows,
          .size = p.size,
          .k1 = p.k1,
          .k2 = p.k2,
          .kept = p.kept,
          .r1 = p.r1,
          .r2 = p.r2,
          .reduced = p.reduced,
          .offset = byte_offset(type)};
}

double itself(double v) {
  return v;
}

/// The rows of a reduction whose elements are numbers of two types with scales that kernels take.
Status describe_row(NodeLowering& n, Reduction& r) {
  PINNACE_TRY(describe_reduction(n, r));
  PINNACE_TRY(check_scales(n));
  if (r.size == 0) return n.refuse(Rule::kAttribute, "a row without elements");
  if (r.size > kMostSummands) return n.refuse(Rule::kAttribute, str_cat(r.size, " summands"));
  return {};
}

/// Output 0 = made(sum of summand(element), how many there are), which rises with the sum, or with `below` where sums
/// are not negative: that is then what negative ones become. Sums are exact in 64-bit floats.
Status exact_sums(NodeLowering& n, double (*summand)(double),
                  const std::function<double(double sum, double size)>& made, std::optional<double> below = {}) {
  Reduction r;
  PINNACE_TRY(describe_row(n, r));
  const TensorType x = n.in(0), y = n.out();
  const auto size = static_cast<double>(r.size);
  const TensorId numbers = n.size_table(str_cat("sums of ", r.size), 512 * 2, [=](std::span<float> to) {
    for (int64_t i = 0; i < 256; ++i) put(to, static_cast<size_t>(i), summand(real_of(x, i)));
    const auto stored = [&](double sum) { return static_cast<float>(made(sum, size)); };
    put_thresholds(to, 256, y, stored, below ? 0 : -1e300);
    const IntRange range = int_range(y.dtype);
    const auto negative = below ? quantize(static_cast<float>(*below), scale_zero(y), range) - range.min : 256;
    put(to, 511, static_cast<uint64_t>(negative));
    return Status();
  });
  const TensorId from = n.dense(0), to = n.make_dense();
  n.loops(shared_turns(r.size) + kTreeTurns + kByteSearchTurns);
  n.step(KernelId::int8_reduce, int8_params(r, x.dtype), {from, to, numbers}, row_groups(r.rows),
         static_cast<double>(r.rows * r.size));
  return {};
}

/// KIND of int8_reduce.comp where one invocation goes along a row.
enum Ordered : int32_t { kOrderedSum, kOrderedProduct, kOrderedExponents };

void ordered_step(NodeLowering& n, Ordered kind, Reduction& r, TensorId numbers) {
  const TensorId from = n.dense(0), to = n.make_dense();
  n.loops((kind == kOrderedExponents ? 2 : 1) * loop_turns(r.size) + kByteSearchTurns);
  n.step(KernelId::int8_reduce_ordered, Int8ReduceConstants{.KIND = kind}, int8_params(r, n.in(0).dtype),
         {from, to, numbers}, line_groups(r.rows, 64), 64 * static_cast<double>(r.rows * r.size));
}

/// Output 0 = made(sum of squares), which rises.
Status sums_of_squares(NodeLowering& n, double (*made)(double)) {
  Reduction r;
  PINNACE_TRY(describe_row(n, r));
  const TensorType x = n.in(0), y = n.out();
  const TensorId numbers = n.wide_weights("squares", (256 + 255) * 2, [=](std::span<float> to) {
    for (int64_t i = 0; i < 256; ++i) put(to, static_cast<size_t>(i), real_of(x, i) * real_of(x, i));
    put_thresholds(to, 256, y, [&](double sum) { return static_cast<float>(made(sum)); }, 0);
    return Status();
  });
  ordered_step(n, kOrderedSum, r, numbers);
  return {};
}

/// Integers are compared as they are, and what is found changes its scale.
Status extreme(NodeLowering& n, int kind) {
  Reduction r;
  PINNACE_TRY(describe_reduction(n, r));
  if (r.size == 0) return n.refuse(Rule::kAttribute, "a row without elements");
  const bool same = keeps_bytes(n.in(0), n.out());
  const TensorId x = n.dense(0);
  const TensorId found = same ? n.make_dense() : n.make_scratch(r.rows, n.in(0).dtype);
  n.loops(shared_turns(r.size) + kTreeTurns);
  n.step(KernelId::reduce_int32, ReduceInt32Constants{.KIND = kind, .HELD = held_as(n.in(0).dtype)}, r.params,
         {x, found, found}, row_groups(r.rows), static_cast<double>(r.rows * r.size));
  if (!same) rescale_rows(n, found, n.in(0), r.rows, n.make_dense());
  return {};
}

}  // namespace

Status lower_quantized_reduce_sum(NodeLowering& n) {
  return exact_sums(n, itself, [](double sum, double) { return sum; });
}

Status lower_quantized_reduce_mean(NodeLowering& n) {
  return exact_sums(n, itself, [](double sum, double size) { return sum / size; });
}

Status lower_quantized_reduce_l1(NodeLowering& n) {
  return exact_sums(n, [](double v) { return std::fabs(v); }, [](double sum, double) { return sum; });
}

Status lower_quantized_reduce_log_sum(NodeLowering& n) {
  return exact_sums(n, itself, [](double sum, double) { return std::log(sum); }, std::nan(""));
}

Status lower_quantized_reduce_l2(NodeLowering& n) {
  return sums_of_squares(n, [](double sum) { return std::sqrt(sum); });
}

Status lower_quantized_reduce_sum_square(NodeLowering& n) {
  return sums_of_squares(n, itself);
}

Status lower_quantized_reduce_prod(NodeLowering& n) {
  Reduction r;
  PINNACE_TRY(describe_row(n, r));
  const TensorType x = n.in(0), y = n.out();
  if (digits_of(x) * static_cast<double>(r.size) > kMostDigits) {
    return n.refuse(Rule::kAttribute, str_cat(r.size, " factors of ", to_string(x)));
  }
  const TensorId numbers = n.wide_weights("factors", (256 + 255) * 2, [=](std::span<float> to) {
    for (int64_t i = 0; i < 256; ++i) put(to, static_cast<size_t>(i), real_of(x, i));
    put_thresholds(to, 256, y, [](double product) { return static_cast<float>(product); });
    return Status();
  });
  ordered_step(n, kOrderedProduct, r, numbers);
  return {};
}

/// The largest and log(sum of exp(x - largest)): results rise with the sum, for each largest in its own way.
Status lower_quantized_reduce_log_sum_exp(NodeLowering& n) {
  Reduction r;
  PINNACE_TRY(describe_row(n, r));
  PINNACE_TRY(check_exponents(n));
  const TensorType x = n.in(0), y = n.out();
  const auto size = static_cast<double>(r.size);
  const TensorId numbers = n.size_table(str_cat("exponents of ", r.size), 256 * 511 * 2, [=](std::span<float> to) {
    put_exponents(to, x);
    for (int64_t m = 0; m < 256; ++m) {
      const double largest = real_of(x, m);
      put_thresholds(
          to, static_cast<size_t>(65536 + m * 255), y,
          [&](double sum) { return static_cast<float>(largest + std::log(sum)); }, 1, 2 * size);
    }
    return Status();
  });
  ordered_step(n, kOrderedExponents, r, numbers);
  return {};
}

Status lower_quantized_reduce_max(NodeLowering& n) {
  return extreme(n, 2);
}

Status lower_quantized_reduce_min(NodeLowering& n) {
  return extreme(n, 3);
}

}  // namespace pinnace::gpu
