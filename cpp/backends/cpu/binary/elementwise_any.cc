// Comparisons, integer arithmetic and bits with broadcasting: every element is one instruction or few, so loops that
// the compiler makes serve (elementwise_loops.h). A number that is spread over a run is copied into a block first,
// which leaves one form of each loop.
#include <cstring>

#include "backends/cpu/binary/elementwise_loops.h"
#include "backends/cpu/move/broadcast_runs.h"
#include "ops/element.h"
#include "ops/move.h"

namespace pinnace::cpu {
namespace {

/// Elements of a block.
constexpr int64_t kBlock = 256;

/// How a node is a loop: its operands perhaps the other way round, or input 0 and a number.
struct Operation {
  PlainKind kind;
  bool swapped = false, unary = false;
  bool bytes = false;        ///< works on bytes, whatever the elements are
  uint32_t number_bits = 0;  ///< the number, spread over four bytes
};

constexpr std::pair<std::string_view, Operation> kOperations[] = {
    {"add", {PlainKind::kAdd}},
    {"sub", {PlainKind::kSub}},
    {"mul", {PlainKind::kMul}},
    {"div", {PlainKind::kDiv}},
    {"mod", {PlainKind::kFloorMod}},
    {"min", {PlainKind::kMin}},
    {"max", {PlainKind::kMax}},
    {"bit_shift", {PlainKind::kShiftLeft}},
    {"equal", {PlainKind::kEqual}},
    {"less", {PlainKind::kLess}},
    {"less_or_equal", {PlainKind::kLessOrEqual}},
    {"greater", {PlainKind::kLess, true}},
    {"greater_or_equal", {PlainKind::kLessOrEqual, true}},
    {"is_nan", {PlainKind::kUnequal}},  // x and itself
    {"is_inf", {.kind = PlainKind::kSizeEqual, .unary = true, .number_bits = 0x7f800000}},
    {"not", {.kind = PlainKind::kEqual, .unary = true, .bytes = true}},
    {"bitwise_not", {.kind = PlainKind::kXor, .unary = true, .bytes = true, .number_bits = 0xffffffff}},
    {"and", {.kind = PlainKind::kAnd, .bytes = true}},
    {"bitwise_and", {.kind = PlainKind::kAnd, .bytes = true}},
    {"or", {.kind = PlainKind::kOr, .bytes = true}},
    {"bitwise_or", {.kind = PlainKind::kOr, .bytes = true}},
    {"xor", {.kind = PlainKind::kXor, .bytes = true}},
    {"bitwise_xor", {.kind = PlainKind::kXor, .bytes = true}},
};

Operation operation_of(const KernelNode& node) {
  Operation o{};
  for (const auto& [name, operation] : kOperations) {
    if (node.node().op == name) o = operation;
  }
  if (node.node().op == "mod" && node.attr_int("fmod")) o.kind = PlainKind::kTruncMod;
  if (node.node().op == "bit_shift" && node.attr_string("direction") == "RIGHT") o.kind = PlainKind::kShiftRight;
  if (node.node().op == "is_inf") {
    const bool negative = node.attr_int("detect_negative"), positive = node.attr_int("detect_positive");
    if (!negative || !positive) o.kind = PlainKind::kEqual;
    if (!positive) o.number_bits = negative ? 0xff800000 : 0x7fc00000;  // nothing equals NaN
  }
  return o;
}

PlainType plain_type(DType dtype, const Operation& o) {
  return o.bytes                ? PlainType::kU8
         : dtype == DType::kF32 ? PlainType::kF32
         : dtype == DType::kI32 ? PlainType::kI32
                                : PlainType::kI64;
}

/// y = a op b for one run; an operand that stays is spread over a block.
struct Run {
  PlainLoop loop;
  int64_t bytes, y_bytes, units;  ///< bytes of elements, and what the loop counts in one of them
  bool a_moves, b_moves;

  void operator()(const std::byte* a, const std::byte* b, std::byte* y, int64_t count) const {
    if (a_moves && b_moves) return loop(a, b, y, count * units);
    alignas(64) std::byte blocks[2][kBlock * 8];
    if (!a_moves) spread(a, blocks[0], std::min(count, kBlock));
    if (!b_moves) spread(b, blocks[1], std::min(count, kBlock));
    for (int64_t i = 0; i < count; i += kBlock) {
      loop(a_moves ? a + i * bytes : blocks[0], b_moves ? b + i * bytes : blocks[1], y + i * y_bytes,
           std::min(kBlock, count - i) * units);
    }
  }
  void spread(const std::byte* number, std::byte* to, int64_t count) const {
    std::memcpy(to, number, static_cast<size_t>(bytes));
    for (int64_t have = 1; have < count; have *= 2) {
      std::memcpy(to + have * bytes, to, static_cast<size_t>(std::min(have, count - have) * bytes));
    }
  }
};

template <const ElementwiseLoops& loops>
void pair(const KernelContext& context, const Operation& o, const TensorView& a, const TensorView& b,
          const TensorView& y) {
  const PlainType type = plain_type(a.dtype(), o);
  const auto bytes = static_cast<int64_t>(element_bytes(a.dtype()));
  const auto y_bytes = static_cast<int64_t>(element_bytes(y.dtype()));
  PairLoops l;
  l.set({&a.type->shape, &b.type->shape, &y.type->shape});
  const Run run{loops.find(o.kind, type), bytes, y_bytes, o.bytes ? bytes : 1, l.rank && l.step[0][0],
                l.rank && l.step[1][0]};
  for_each_run(context, l, y.elements(), [&](int64_t at_a, int64_t at_b, int64_t at, int64_t count) {
    run(a.bytes + at_a * bytes, b.bytes + at_b * bytes, y.bytes + at * y_bytes, count);
  });
}

template <const ElementwiseLoops& loops>
Status run(const KernelNode& node, const KernelContext& context, std::span<const TensorView> in,
           std::span<const TensorView> out) {
  const Operation o = operation_of(node);
  if (o.kind == PlainKind::kDiv || o.kind == PlainKind::kFloorMod || o.kind == PlainKind::kTruncMod) {
    PINNACE_TRY(in[0].dtype() == DType::kI32 ? refuse_zero_divisor<int32_t>(node, in[1], out[0])
                                             : refuse_zero_divisor<int64_t>(node, in[1], out[0]));
  }
  if (o.unary) {
    const uint32_t number[] = {o.number_bits, o.number_bits};
    const TensorType type{in[0].dtype(), {}, nullptr};
    pair<loops>(context, o, in[0], {&type, reinterpret_cast<std::byte*>(const_cast<uint32_t*>(number))}, out[0]);
    return {};
  }
  // One operand alone stands for both.
  const TensorView &a = in[0], &b = in[in.size() > 1 ? 1 : 0];
  pair<loops>(context, o, o.swapped ? b : a, o.swapped ? a : b, out[0]);
  for (size_t k = 2; k < in.size(); ++k) pair<loops>(context, o, out[0], in[k], out[0]);
  return {};
}

/// Stored numbers, not quantised ones.
bool takes(const KernelNode& node) {
  for (int i = 0; i < node.input_count(); ++i) {
    if (node.input(i).quantized()) return false;
  }
  return pairs_fit(node);
}

bool bytes_take(const KernelNode& node) {
  return takes(node) && dtype_bits(node.input(0).dtype) >= 8;
}

template <const ElementwiseLoops& loops>
constexpr CpuKernel make() {
  return {.takes = takes, .run = run<loops>};
}
template <const ElementwiseLoops& loops>
constexpr CpuKernel make_bytes() {
  return {.takes = bytes_take, .run = run<loops>};
}
}  // namespace

#if defined(__x86_64__)
#define PINNACE_KERNELS_ELEMENTWISE(name, make)                       \
  extern const CpuKernel name##_generic, name##_avx2, name##_avx512;  \
  const CpuKernel name##_generic = make<elementwise_loops_generic>(); \
  const CpuKernel name##_avx2 = make<elementwise_loops_avx2>();       \
  const CpuKernel name##_avx512 = make<elementwise_loops_avx512>();
#else
#define PINNACE_KERNELS_ELEMENTWISE(name, make) \
  extern const CpuKernel name##_generic;        \
  const CpuKernel name##_generic = make<elementwise_loops_generic>();
#endif
PINNACE_KERNELS_ELEMENTWISE(elementwise_any, make)
PINNACE_KERNELS_ELEMENTWISE(bitwise_any, make_bytes)

}  // namespace pinnace::cpu
