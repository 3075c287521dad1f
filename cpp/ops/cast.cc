// cast: y = x in another element type.
//   x   [...]  any type
//   to  string, required: name of the element type of y, "f32", "i64", "bool", "u4", "f8e4m3fn", ...
//   saturate    int, default 1: what is too large for a float of 8 bits becomes its largest number; 0: infinity, or NaN
//               where the type has none
//   round_mode  string "up" (default), "down", "nearest" (ties up): how f8e8m0, which has powers of two, is rounded
//   y   the shape of x, element type `to`
// Float to float and integer to float round once, half to even; what is too large becomes infinity. Float to integer
// truncates; NaN and what is out of range give what x86-64, numpy and PyTorch give, see convert() in element.h. Integer
// to narrower integer keeps the low bits. To bool: false for 0 and -0, true for all else, NaN too. Quantised tensors
// count as their stored integers, as NNAPI's CAST has it. Floats of 8 bits and fewer are rounded once, see
// base/small_float.h for what has no place in them. Source: ONNX Cast, opset 28.
#include "base/dtype_code.h"
#include "ops/cast_elements.h"
#include "ops/move.h"

namespace pinnace {

Result<TensorType> cast_type_to(const NodeView& node, DType to) {
  const auto declared = node.output_quantization(0);
  if (declared && dtypes(to) & (kFloats | kSmallFloats | kBool)) {
    return node.error("the output is declared quantised, but is ", dtype_name(to));
  }
  return TensorType{to, node.input(0).shape, declared};
}

Result<CastRule> cast_rule(const NodeView& node) {
  CastRule rule{node.attr_int("saturate") != 0, RoundMode::kUp};
  const std::string_view mode = node.attr_string("round_mode");
  if (!round_mode_of(mode, &rule.mode)) return node.error("round_mode is '", mode, "', must be up, down or nearest");
  return rule;
}

namespace {
/// Elements converted at a time. They pass through a type that holds all that x has exactly (double, or an integer of
/// 64 bits), which takes a loop for each element type of x and one for each of y, instead of one for each pair.
constexpr int64_t kBlock = 256;

/// to[j] = element first + j of x.
template <class W>
void load(const TensorView& x, int64_t first, int64_t count, W* to) {
  const auto each = [&](auto get) {
    for (int64_t j = 0; j < count; ++j) to[j] = static_cast<W>(+get(first + j));  // 8 bits as int
  };
  const auto typed = [&](auto zero) { each([from = x.data<decltype(zero)>()](int64_t i) { return widen(from[i]); }); };
  const DTypes type = dtypes(x.dtype());
  if constexpr (std::is_same_v<W, double>) {
    type& kSmallFloats ? each([&](int64_t i) { return load_small(x, i); }) : visit_float(x.dtype(), typed);
  } else if (type & kPackedInts) {
    each([&](int64_t i) { return load_int(x, i); });
  } else {
    type& kBool ? typed(bool{}) : visit_int(x.dtype(), typed);
  }
}

/// Element first + j of y = from[j].
template <class W>
void store(const TensorView& y, int64_t first, int64_t count, const W* from, const CastRule& rule) {
  const DTypes type = dtypes(y.dtype());
  if (type & kPackedInts) {
    for (int64_t j = 0; j < count; ++j) store_int(y, first + j, convert<int8_t>(from[j]));
  } else if (type & kSmallFloats) {
    for (int64_t j = 0; j < count; ++j) {
      store_small(y, first + j, small_from_double(y.dtype(), static_cast<double>(from[j]), rule.saturate, rule.mode));
    }
  } else {
    visit(y.dtype(), [&](auto zero) {
      using R = decltype(zero);
      R* to = y.data<R>() + first;
      for (int64_t j = 0; j < count; ++j) to[j] = convert<R>(from[j]);
    });
  }
}

template <class W>
void cast_through(const Threads& threads, const TensorView& x, const TensorView& y, const CastRule& rule) {
  threads.ranges(
      y.elements(), kMapNanoseconds,
      [&](int64_t first, int64_t last) {
        W block[kBlock];
        for (int64_t i = first; i < last; i += kBlock) {
          const int64_t count = std::min(kBlock, last - i);
          load(x, i, count, block);
          store(y, i, count, block, rule);
        }
      },
      kMapGrain);
}
}  // namespace

Status cast_elements(const Threads& threads, const TensorView& x, const TensorView& y, const CastRule& rule) {
  const DTypes type = dtypes(x.dtype());
  if (x.dtype() == y.dtype()) {
    copy_run(y.bytes, x.bytes, x.type->bytes(), 1);
  } else if (type & (kFloats | kSmallFloats)) {
    cast_through<double>(threads, x, y, rule);
  } else if (type & dtypes(DType::kU64)) {
    cast_through<uint64_t>(threads, x, y, rule);
  } else {
    cast_through<int64_t>(threads, x, y, rule);
  }
  return {};
}

namespace {
Result<TensorType> cast_type(const NodeView& node) {
  const auto to = dtype_from_code(node.attr_string("to"));
  if (!to) return node.error("to is '", node.attr_string("to"), "', which is no element type");
  PINNACE_TRY(cast_rule(node).status());
  return cast_type_to(node, *to);
}

Status cast_reference(const NodeView& node, std::span<const TensorView> in, std::span<const TensorView> out) {
  PINNACE_ASSIGN(const CastRule rule, cast_rule(node));
  return cast_elements(node.threads(), in[0], out[0], rule);
}
}  // namespace

PINNACE_OP(cast){
    .name = "cast",
    .inputs = {{"x", kEvery}},
    .attrs = {required_attr("to", AttrKind::kString), int_attr("saturate", 1), string_attr("round_mode", "up")},
    .type = cast_type,
    .reference = cast_reference,
    .in_place = 1,
    .traits = Trait::kElementwise | Trait::kConverts | Trait::kKeepsSameType,
    .work = Work::kCopied,
};
}  // namespace pinnace
