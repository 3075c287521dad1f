// The other operators on quantised types: pools, reductions, normalisations, resize, conversions to and from them, and
// those that only move bytes. Each against its definition; and a list of every operator that takes quantised types, so
// that a new one must be held to its definition too.
#include <cstring>
#include <functional>
#include <set>

#include "cpp/cpu/quantized_contract.h"

namespace pinnace::testing {
namespace {

using Real = long double;
constexpr Parameters kFroms[] = {{0.5f, 3}, {0.1f, -128}, {1 / 7.0f, 127}, {3.0f, 0}};
constexpr Parameters kTos[] = {{1.0f, -1}, {0.03f, 127}, {1 / 3.0f, 0}};

/// Rows of an i8 tensor and what f makes of each row's stored integers.
struct Rows {
  int64_t rows, size;
  std::vector<uint8_t> bytes;
};
Rows rows_of(Random& random, int64_t rows, int64_t size) {
  return {rows, size, random_bytes(random, rows * size)};
}
std::vector<float> reals(const Rows& r, int64_t row, Parameters p) {
  std::vector<float> x;
  for (int64_t i = 0; i < r.size; ++i) {
    x.push_back(real_of(static_cast<int8_t>(r.bytes[static_cast<size_t>(row * r.size + i)]), p));
  }
  return x;
}

using RowFn = Real (*)(const std::vector<float>&);
/// `fill` makes a call that gives one element for each row.
void check_rows(RowFn f, const std::function<Call(const Rows&, Parameters)>& fill) {
  Random random(test_seed());
  for (const int64_t size : {1, 2, 3, 7, 64, 300}) {
    const Rows r = rows_of(random, size < 8 ? 2000 : 100, size);
    for (const Parameters& from : kFroms) {
      for (const Parameters& to : kTos) {
        std::vector<uint8_t> want;
        for (int64_t row = 0; row < r.rows; ++row) {
          const auto value = static_cast<float>(static_cast<double>(f(reals(r, row, from))));
          want.push_back(static_cast<uint8_t>(stored_of(value, to, DType::kI8)));
        }
        ASSERT_TRUE(fill(r, from).declare(to).gives(want)) << "rows of " << size << ", seed " << test_seed();
      }
    }
  }
}

Real sum_of(const std::vector<float>& x, Real (*f)(Real)) {
  Real sum = 0;
  for (const float v : x) sum += f(v);
  return sum;
}
const std::pair<const char*, RowFn> kReductions[] = {
    {"reduce_l1", [](const std::vector<float>& x) { return sum_of(x, [](Real v) { return std::fabs(v); }); }},
    {"reduce_l2", [](const std::vector<float>& x) { return std::sqrt(sum_of(x, [](Real v) { return v * v; })); }},
    {"reduce_log_sum", [](const std::vector<float>& x) { return std::log(sum_of(x, [](Real v) { return v; })); }},
    {"reduce_log_sum_exp",
     [](const std::vector<float>& x) {
       const Real most = *std::max_element(x.begin(), x.end());
       Real sum = 0;
       for (const float v : x) sum += std::exp(v - most);
       return most + std::log(sum);
     }},
    {"reduce_max", [](const std::vector<float>& x) { return Real(*std::max_element(x.begin(), x.end())); }},
    {"reduce_mean",
     [](const std::vector<float>& x) {
       // The sum is exact; the quotient is taken in double.
       const auto sum = static_cast<double>(sum_of(x, [](Real v) { return v; }));
       return Real(sum / static_cast<double>(x.size()));
     }},
    {"reduce_min", [](const std::vector<float>& x) { return Real(*std::min_element(x.begin(), x.end())); }},
    {"reduce_prod",
     [](const std::vector<float>& x) {
       double product = 1;  // of hundreds of factors the double's rounding is part of the result
       for (const float v : x) product *= v;
       return Real(product);
     }},
    {"reduce_sum", [](const std::vector<float>& x) { return sum_of(x, [](Real v) { return v; }); }},
    {"reduce_sum_square", [](const std::vector<float>& x) { return sum_of(x, [](Real v) { return v * v; }); }},
};

TEST(QuantizedContract, Reductions) {
  for (const auto& [op, f] : kReductions) {
    SCOPED_TRACE(op);
    check_rows(f, [name = op](const Rows& r, Parameters from) {
      Call call(name);
      call.quantized(DType::kI8, {r.rows, r.size}, r.bytes, from).input(DType::kI64, {1}, std::vector<int64_t>{1});
      return call;
    });
  }
}

TEST(QuantizedContract, LpPools) {
  check_rows(kReductions[0].second, [](const Rows& r, Parameters from) {
    Call call("lp_pool");
    call.quantized(DType::kI8, {1, r.rows, r.size}, r.bytes, from);
    return call.attr("p", int64_t{1}).attr("kernel_shape", std::vector<int64_t>{r.size});
  });
  check_rows(kReductions[1].second, [](const Rows& r, Parameters from) {
    Call call("lp_pool");
    call.quantized(DType::kI8, {1, r.rows, r.size}, r.bytes, from);
    return call.attr("kernel_shape", std::vector<int64_t>{r.size});
  });
}

/// quantize(float32(float32(sum of (q - zero)) * scale) / float32(count)).
TEST(QuantizedContract, Means) {
  Random random(test_seed());
  for (const DType dtype : {DType::kI8, DType::kU8}) {
    for (const int64_t size : {1, 2, 3, 6, 49, 1000}) {
      const Rows r = rows_of(random, size < 8 ? 3000 : 60, size);
      for (const Parameters& base : kFroms) {
        for (const Parameters& to_base : kTos) {
          const int32_t shift = dtype == DType::kU8 ? 128 : 0;
          const Parameters from{base.scale, base.zero + shift}, to{to_base.scale, to_base.zero + shift};
          std::vector<uint8_t> want;
          for (int64_t row = 0; row < r.rows; ++row) {
            int64_t sum = 0;
            for (int64_t i = 0; i < size; ++i) {
              sum += integer_of(r.bytes[static_cast<size_t>(row * size + i)], dtype) - from.zero;
            }
            const auto total = static_cast<float>(static_cast<double>(sum) * static_cast<double>(from.scale));
            const auto mean = static_cast<float>(static_cast<double>(total) / static_cast<double>(size));
            want.push_back(static_cast<uint8_t>(stored_of(mean, to, dtype)));
          }
          const Shape shape{1, r.rows, size};
          Call window("average_pool"), global("global_average_pool"), adaptive("adaptive_average_pool");
          window.attr("kernel_shape", std::vector<int64_t>{size});
          adaptive.attr("output_size", std::vector<int64_t>{1});
          for (Call* call : {&window, &global, &adaptive}) {
            ASSERT_TRUE(call->quantized(dtype, shape, r.bytes, from).declare(to).gives(want)) << "seed " << test_seed();
          }
        }
      }
    }
  }
}

/// The divisor at the edges: elements inside x, or those and the padding.
TEST(QuantizedContract, MeansAtTheEdge) {
  const Parameters from{0.1f, 10}, to{0.07f, -5};
  for (const int64_t include : {0, 1}) {
    Call call("average_pool");
    call.quantized(DType::kI8, {1, 1, 256}, every_byte(DType::kI8), from).declare(to);
    call.attr("kernel_shape", std::vector<int64_t>{3}).attr("pads", std::vector<int64_t>{1, 1});
    std::vector<uint8_t> want;
    for (int32_t q = -128; q <= 127; ++q) {
      int32_t sum = q - 10, count = 1;
      if (q > -128) sum += q - 1 - 10, ++count;
      if (q < 127) sum += q + 1 - 10, ++count;
      const float total = static_cast<float>(static_cast<double>(sum) * static_cast<double>(from.scale));
      const auto mean = static_cast<float>(static_cast<double>(total) / (include ? 3.0 : count));
      want.push_back(static_cast<uint8_t>(stored_of(mean, to, DType::kI8)));
    }
    EXPECT_TRUE(call.attr("count_include_pad", include).gives(want));
  }
}

TEST(QuantizedContract, Normalisations) {
  Random random(test_seed());
  for (const int64_t size : {1, 2, 10, 257}) {
    const Rows r = rows_of(random, 200, size);
    for (const Parameters& from : kFroms) {
      for (const Parameters& to : {Parameters{1 / 256.0f, -128}, Parameters{0.1f, 127}}) {
        std::vector<uint8_t> softmax, log_softmax, l1, l2;
        for (int64_t row = 0; row < r.rows; ++row) {
          const std::vector<float> x = reals(r, row, from);
          const Real most = *std::max_element(x.begin(), x.end());
          Real sum = 0, absolute = 0, squares = 0;
          for (const Real v : x) {
            sum += std::exp(v - most);
            absolute += std::fabs(v);
            squares += v * v;
          }
          const auto put = [&](std::vector<uint8_t>& to_list, Real value) {
            const auto rounded = static_cast<float>(static_cast<double>(value));
            to_list.push_back(static_cast<uint8_t>(stored_of(rounded, to, DType::kI8)));
          };
          for (const Real v : x) {
            put(softmax, std::exp(v - most) / sum);
            put(log_softmax, v - most - std::log(sum));
            put(l1, absolute == 0 ? 0 : v / absolute);
            put(l2, squares == 0 ? 0 : v / std::sqrt(squares));
          }
        }
        const auto check = [&](const char* op, int64_t p, const std::vector<uint8_t>& want) {
          Call call(op);
          if (p) call.attr("p", p);
          return call.quantized(DType::kI8, {r.rows, size}, r.bytes, from).declare(to).gives(want);
        };
        ASSERT_TRUE(check("softmax", 0, softmax));
        ASSERT_TRUE(check("log_softmax", 0, log_softmax));
        ASSERT_TRUE(check("lp_normalization", 1, l1));
        ASSERT_TRUE(check("lp_normalization", 2, l2));
      }
    }
  }
}

/// Twice the size by mode linear: quarters of two neighbours, exact in double.
TEST(QuantizedContract, ResizeLinear) {
  Random random(test_seed());
  const Rows r = rows_of(random, 1, 500);
  for (const Parameters& from : kFroms) {
    for (const Parameters& to : kTos) {
      const std::vector<float> x = reals(r, 0, from);
      std::vector<uint8_t> want;
      for (int64_t i = 0; i < 1000; ++i) {
        const double at = std::min(std::max((static_cast<double>(i) + 0.5) / 2 - 0.5, 0.0), 499.0);
        const auto left = static_cast<size_t>(at);
        const double part = at - static_cast<double>(left), right = x[std::min<size_t>(left + 1, 499)];
        const auto value = static_cast<float>((1 - part) * static_cast<double>(x[left]) + part * right);
        want.push_back(static_cast<uint8_t>(stored_of(value, to, DType::kI8)));
      }
      Call call("resize");
      call.quantized(DType::kI8, {1, 1, 500}, r.bytes, from).left_out().left_out();
      call.input(DType::kI64, {3}, std::vector<int64_t>{1, 1, 1000}).attr("mode", std::string("linear"));
      ASSERT_TRUE(call.declare(to).gives(want));
    }
  }
}

// ---------------------------------------------------------------------------------------- conversions to and from them

TEST(QuantizedContract, QuantizeAndDequantizeLinear) {
  const float inf = HUGE_VALF;
  for (const DType dtype : {DType::kI8, DType::kU8}) {
    for (const float scale : {0.5f, 0.1f, 1.0f, 1 / 255.0f, 1e-42f, 3e38f}) {
      for (const int32_t zero : zero_points(dtype)) {
        std::vector<float> x = {inf, -inf, std::nanf(""), 0.0f, -0.0f, 3e38f, -3e38f, 1e-45f, scale};
        for (int i = -2400; i <= 2400; ++i)
          x.push_back(static_cast<float>(i) / 8 * scale);  // ties at every second half
        std::vector<uint8_t> want;
        for (const float v : x) want.push_back(static_cast<uint8_t>(stored_of(v, {scale, zero}, dtype)));
        Call call("quantize_linear");
        call.input(DType::kF32, {static_cast<int64_t>(x.size())}, x).input(DType::kF32, {}, std::vector<float>{scale});
        call.input(dtype, {}, std::vector<uint8_t>{static_cast<uint8_t>(zero)});
        ASSERT_TRUE(call.gives(want)) << scale << " " << zero;
        std::vector<float> real;
        for (const uint8_t q : every_byte(dtype)) real.push_back(real_of(integer_of(q, dtype), {scale, zero}));
        Call back("dequantize_linear");
        back.input(dtype, {256}, every_byte(dtype)).input(DType::kF32, {}, std::vector<float>{scale});
        back.input(dtype, {}, std::vector<uint8_t>{static_cast<uint8_t>(zero)});
        ASSERT_TRUE(back.gives(real)) << scale << " " << zero;
      }
    }
  }
}

TEST(QuantizedContract, DynamicQuantizeLinear) {
  Random random(test_seed());
  for (int round = 0; round < 200; ++round) {
    std::vector<float> x(static_cast<size_t>(random.integer(1, 40)));
    const double size = std::pow(10.0, random.uniform(-30, 30)), shift = random.uniform(-2, 2);
    for (float& v : x) v = static_cast<float>(size * (random.normal() + shift));
    const float low = std::min(0.0f, *std::min_element(x.begin(), x.end()));
    const float high = std::max(0.0f, *std::max_element(x.begin(), x.end()));
    const float range = high - low;
    const auto scale = static_cast<float>(static_cast<double>(range) / 255.0);
    const auto middle = static_cast<float>(static_cast<double>(0 - low) / static_cast<double>(scale));
    const int32_t zero = clamped(nearest_even(middle), 0, {0, 255});
    std::vector<uint8_t> want;
    for (const float v : x) want.push_back(static_cast<uint8_t>(stored_of(v, {scale, zero}, DType::kU8)));
    Call call("dynamic_quantize_linear", 3);
    call.input(DType::kF32, {static_cast<int64_t>(x.size())}, x);
    ASSERT_TRUE(call.gives(want) && call.gives(std::vector<float>{scale}, 1) &&
                call.gives(std::vector<uint8_t>{static_cast<uint8_t>(zero)}, 2))
        << "seed " << test_seed();
  }
}

// ---------------------------------------------------------------------------------------------- every operator is here

/// Operators that take stored integers as they are: they move, compare or count them.
const std::set<std::string_view> kMoves = {"adaptive_max_pool",
                                           "arg_max",
                                           "arg_min",
                                           "cast",
                                           "cast_like",
                                           "center_crop_pad",
                                           "compress",
                                           "depth_to_space",
                                           "expand",
                                           "flatten",
                                           "gather",
                                           "gather_elements",
                                           "gather_nd",
                                           "global_max_pool",
                                           "identity",
                                           "max_pool",
                                           "one_hot",
                                           "pad",
                                           "reshape",
                                           "reverse_sequence",
                                           "scatter_elements",
                                           "scatter_nd",
                                           "shape",
                                           "size",
                                           "slice",
                                           "space_to_depth",
                                           "split",
                                           "squeeze",
                                           "tensor_scatter",
                                           "tile",
                                           "top_k",
                                           "transpose",
                                           "trilu",
                                           "unique",
                                           "unsqueeze"};
/// Operators that the tests above hold to their definitions.
const std::set<std::string_view> kDefined = {"abs",
                                             "acos",
                                             "acosh",
                                             "adaptive_average_pool",
                                             "add",
                                             "asin",
                                             "asinh",
                                             "atan",
                                             "atanh",
                                             "average_pool",
                                             "ceil",
                                             "celu",
                                             "clip",
                                             "concat",
                                             "conv",
                                             "conv_transpose",
                                             "cos",
                                             "cosh",
                                             "div",
                                             "elu",
                                             "equal",
                                             "erf",
                                             "exp",
                                             "floor",
                                             "gelu",
                                             "gemm",
                                             "global_average_pool",
                                             "greater",
                                             "greater_or_equal",
                                             "hard_sigmoid",
                                             "hard_swish",
                                             "leaky_relu",
                                             "less",
                                             "less_or_equal",
                                             "log",
                                             "log_softmax",
                                             "lp_normalization",
                                             "lp_pool",
                                             "mat_mul",
                                             "max",
                                             "min",
                                             "mish",
                                             "mul",
                                             "neg",
                                             "prelu",
                                             "reciprocal",
                                             "reduce_l1",
                                             "reduce_l2",
                                             "reduce_log_sum",
                                             "reduce_log_sum_exp",
                                             "reduce_max",
                                             "reduce_mean",
                                             "reduce_min",
                                             "reduce_prod",
                                             "reduce_sum",
                                             "reduce_sum_square",
                                             "relu",
                                             "resize",
                                             "round",
                                             "selu",
                                             "shrink",
                                             "sigmoid",
                                             "sign",
                                             "silu",
                                             "sin",
                                             "sinh",
                                             "softmax",
                                             "softplus",
                                             "softsign",
                                             "sqrt",
                                             "sub",
                                             "tan",
                                             "tanh",
                                             "thresholded_relu",
                                             "where"};

/// A case with the inputs that `mask` names made i8 or u8 with a scale, where the schema allows it.
struct Asked {
  std::vector<TensorType> types;
  std::vector<bool> changed;
  bool any = false;
};
Asked quantise_inputs(const BuiltCase& built, DType dtype, unsigned mask) {
  Asked asked;
  for (size_t i = 0; i < built.inputs.size(); ++i) {
    const InputDef& def = built.op->inputs.begin()[std::min(i, built.op->inputs.size() - 1)];
    asked.types.push_back(built.inputs[i].type);
    asked.changed.push_back(built.inputs[i].present && (mask >> std::min<size_t>(i, 2) & 1) &&
                            (def.types >> static_cast<int>(dtype) & 1));
    if (!asked.changed[i]) continue;
    asked.types[i].dtype = dtype;
    asked.types[i].quantization = Call::quantization({0.5f, 3});
    asked.any = true;
  }
  return asked;
}

/// Calls f(case, asked, declares an output quantisation) for everything that shape rules accept.
void for_accepted(const std::function<void(const BuiltCase&, const Asked&, bool)>& f) {
  for (const CaseList& list : all_cases()) {
    for (size_t at = 0; at < list.cases.size(); ++at) {
      const auto built = build_case(list.op, list.cases[at], case_seed(list.op, at));
      if (!built.ok() || built->expect.error) continue;
      for (const DType dtype : {DType::kI8, DType::kU8, DType::kI16, DType::kI32}) {
        for (unsigned mask = 1; mask < 8; ++mask) {
          const Asked asked = quantise_inputs(*built, dtype, mask);
          if (!asked.any) continue;
          for (const bool declare : {false, true}) {
            TensorType declared;
            if (declare) declared.quantization = Call::quantization({0.5f, 3});
            std::vector<const TensorType*> types;
            std::vector<const void*> data;
            for (size_t i = 0; i < asked.types.size(); ++i) {
              types.push_back(built->inputs[i].present ? &asked.types[i] : nullptr);
              data.push_back(built->inputs[i].present && !asked.changed[i] ? built->inputs[i].bytes->data() : nullptr);
            }
            const std::vector<const TensorType*> stated(built->node().outputs.size(), &declared);
            const NodeView view(built->node(), *built->op, types, data, stated);
            if (infer_node_types(view).ok()) f(*built, asked, declare);
          }
        }
      }
    }
  }
}

TEST(QuantizedContract, EveryOperatorThatTakesQuantisedTypesIsListed) {
  std::set<std::string> unlisted, seen;
  for_accepted([&](const BuiltCase& built, const Asked&, bool) {
    seen.insert(built.op_name);
    if (!kMoves.count(built.op_name) && !kDefined.count(built.op_name)) unlisted.insert(built.op_name);
  });
  std::string text;
  for (const std::string& op : unlisted) text += op + " ";
  EXPECT_EQ(text, "") << "take quantised types, but no test holds them to a definition";
  for (const auto* list : {&kMoves, &kDefined}) {
    for (const std::string_view op : *list) EXPECT_TRUE(seen.count(std::string(op))) << op << " takes none";
  }
}

/// Moving stored integers gives the bytes that plain integers give, where nothing is filled in: a zero point of 0.
TEST(QuantizedContract, MovesKeepBytes) {
  Random random(test_seed());
  std::set<std::string> moved;
  for_accepted([&](const BuiltCase& built, const Asked& asked, bool) {
    if (!kMoves.count(built.op_name) || ::testing::Test::HasFailure()) return;
    Call quantised(built.op_name, static_cast<int>(built.node().outputs.size()));
    quantised.node = built.node();
    for (size_t i = 0; i < asked.types.size(); ++i) {
      TensorType type = asked.types[i];
      if (asked.changed[i]) type.quantization = Call::quantization({0.5f, 0});
      const size_t count = built.inputs[i].present ? static_cast<size_t>(type.bytes()) : 0;
      const auto* bytes =
          built.inputs[i].present ? reinterpret_cast<const uint8_t*>(built.inputs[i].bytes->data()) : nullptr;
      quantised.types.push_back(type);
      quantised.present.push_back(built.inputs[i].present);
      const bool drawn = asked.changed[i] && dtype_bits(type.dtype) <= 16;  // 32 bits may be indices
      quantised.bytes.push_back(drawn ? random_bytes(random, static_cast<int64_t>(count))
                                      : std::vector<uint8_t>(bytes, bytes + (asked.changed[i] ? 0 : count)));
      if (asked.changed[i] && !drawn) return;
    }
    Call plain = quantised;
    for (TensorType& type : plain.types) type.quantization = nullptr;
    const auto want = plain.run(plain.op->reference);
    const auto got = quantised.run(quantised.op->reference);
    if (!want.ok() || !got.ok()) return;
    moved.insert(built.op_name);
    for (size_t k = 0; k < want->size(); ++k) {
      ASSERT_EQ((*want)[k].bytes.size(), (*got)[k].bytes.size()) << quantised.text();
      if ((*want)[k].bytes.size() == 0) continue;
      EXPECT_EQ(std::memcmp((*want)[k].bytes.data(), (*got)[k].bytes.data(), (*want)[k].bytes.size()), 0)
          << quantised.text() << " gives other bytes than plain integers, seed " << test_seed();
    }
  });
  for (const std::string_view op : kMoves) EXPECT_TRUE(moved.count(std::string(op))) << op << " was not run";
}

/// What is filled in is the real number 0: the zero point.
TEST(QuantizedContract, FillsAreTheZeroPoint) {
  const Parameters p{0.1f, -7};
  const std::vector<uint8_t> x = {1, 2, 3, 4};
  Call pad("pad"), crop("center_crop_pad"), tri("trilu");
  pad.quantized(DType::kI8, {2, 2}, x, p).input(DType::kI64, {4}, std::vector<int64_t>{0, 1, 0, 0});
  EXPECT_TRUE(pad.gives(std::vector<int8_t>{-7, 1, 2, -7, 3, 4}));
  crop.quantized(DType::kI8, {2, 2}, x, p).input(DType::kI64, {2}, std::vector<int64_t>{2, 4});
  EXPECT_TRUE(crop.gives(std::vector<int8_t>{-7, 1, 2, -7, -7, 3, 4, -7}));
  EXPECT_TRUE(tri.quantized(DType::kI8, {2, 2}, x, p).gives(std::vector<int8_t>{1, 2, -7, 4}));
}

}  // namespace
}  // namespace pinnace::testing
