// 64-bit integers, which NNAPI does not have: they stand as 32-bit ones where no number can be outside of those. What
// enters is looked at when it enters; what arithmetic makes is bounded by what its inputs can be.
#include <algorithm>
#include <cstring>

#include "backends/nnapi/steps/counters.h"

namespace pinnace::nnapi_client {
namespace {

enum class Kind : uint8_t {
  kMove,     ///< input 0's numbers
  kJoin,     ///< numbers of any input that is i64
  kCompare,  ///< no numbers
  kCast,
  kAdd,
  kSub,
  kMul,
  kNeg,
  kAbs,
  kBodies,  ///< what they make is bounded inside
};

struct Form {
  std::string_view op;
  Kind kind;
};
constexpr Form kForms[] = {
    {"abs", Kind::kAbs},
    {"add", Kind::kAdd},
    {"arg_max", Kind::kCompare},
    {"arg_min", Kind::kCompare},
    {"cast", Kind::kCast},
    {"equal", Kind::kCompare},
    {"expand", Kind::kMove},
    {"flatten", Kind::kMove},
    {"gather", Kind::kMove},
    {"greater", Kind::kCompare},
    {"greater_or_equal", Kind::kCompare},
    {"identity", Kind::kMove},
    {"if", Kind::kBodies},
    {"less", Kind::kCompare},
    {"less_or_equal", Kind::kCompare},
    {"loop", Kind::kBodies},
    {"max", Kind::kJoin},
    {"min", Kind::kJoin},
    {"mul", Kind::kMul},
    {"neg", Kind::kNeg},
    {"reshape", Kind::kMove},
    {"slice", Kind::kMove},
    {"split", Kind::kMove},
    {"squeeze", Kind::kMove},
    {"sub", Kind::kSub},
    {"tile", Kind::kMove},
    {"top_k", Kind::kMove},
    {"unsqueeze", Kind::kMove},
    {"where", Kind::kJoin},
};

bool wide(const TensorType& type) {
  return type.dtype == DType::kI64;
}

/// Of products and sums of numbers of 32 bits, which 64 bits hold.
Int64Range corners(int64_t a, int64_t b, int64_t c, int64_t d) {
  return {std::min({a, b, c, d}), std::max({a, b, c, d})};
}

}  // namespace

Result<Int64> plan_int64(NodeLowering& n) {
  const NodeView& view = n.view();
  const auto form =
      std::find_if(std::begin(kForms), std::end(kForms), [&](const Form& f) { return f.op == view.node().op; });
  if (form == std::end(kForms)) return Int64::kRefused;
  if (form->kind == Kind::kBodies) return Int64::kExact;
  // Indices, sizes and places are no numbers that are computed with.
  if (form->kind == Kind::kMove && !wide(n.in_type(0))) return Int64::kRefused;
  if (form->kind == Kind::kCompare) return wide(n.in_type(0)) ? Int64::kExact : Int64::kRefused;
  if (!wide(n.out_type())) return Int64::kExact;
  Int64Range range{INT32_MIN, INT32_MAX};
  std::vector<Int64Range> in;
  // One beyond 32 bits tells as much as any number beyond, and products of two such still fit 64.
  constexpr int64_t kBeyond = int64_t{INT32_MAX} + 2;
  for (int i = 0; i < view.input_count(); ++i) {
    if (!n.has(i) || !wide(n.in_type(i))) continue;
    const Int64Range r = range_of(n.lowering().value(n.in_id(i)));
    in.push_back({std::clamp(r.least, -kBeyond, kBeyond), std::clamp(r.most, -kBeyond, kBeyond)});
  }
  switch (form->kind) {
    case Kind::kCast: {
      const DType from = n.in_type(0).dtype;
      if (from == DType::kF32 || from == DType::kF16) {
        PINNACE_TRY(
            n.refuse(Rule::kSize64, str_cat("a cast of ", to_string(n.in_type(0)), ", which may be beyond 32 bits")));
      }
      break;
    }
    case Kind::kMove:
      range = in[0];
      break;
    case Kind::kJoin:
      range = in[0];
      for (const Int64Range& r : in) range = {std::min(range.least, r.least), std::max(range.most, r.most)};
      break;
    case Kind::kAdd:
      range = {in[0].least + in[1].least, in[0].most + in[1].most};
      break;
    case Kind::kSub:
      range = {in[0].least - in[1].most, in[0].most - in[1].least};
      break;
    case Kind::kMul:
      range = corners(in[0].least * in[1].least, in[0].least * in[1].most, in[0].most * in[1].least,
                      in[0].most * in[1].most);
      break;
    case Kind::kNeg:
      range = {-in[0].most, -in[0].least};
      break;
    case Kind::kAbs:
      range = {0, std::max(-in[0].least, in[0].most)};
      break;
    default:
      break;
  }
  if (range.least < INT32_MIN || range.most > INT32_MAX) {
    PINNACE_TRY(n.refuse(Rule::kSize64, str_cat("a result between ", range.least, " and ", range.most)));
  }
  LoweredValue& made = n.lowering().value(n.out_id());
  made.least = range.least;
  made.most = range.most;
  return Int64::kExact;
}

}  // namespace pinnace::nnapi_client
