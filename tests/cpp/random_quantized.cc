// Random cases of operators on 8-bit quantised types, which every kernel must compute to the bit, and of the operators
// between them and floats. Casts between float32, booleans and integers.
#include "cpp/random_cases.h"

namespace pinnace::testing {
namespace {

std::string parameters(Draw& d, std::string_view dtype) {
  constexpr double kScales[] = {0.02, 0.05, 0.11, 0.5, 1.0 / 256, 3.0};
  const int64_t low = dtype == "i8" ? -128 : 0;
  const int64_t zero = d.once_in(4) ? low : d.once_in(4) ? low + 255 : d.integer(low, low + 255);
  return str_cat("scale ", d.of(kScales), ", zero ", zero);
}
std::string quantized(Draw& d, std::string_view dtype, const Sizes& sizes) {
  return str_cat(sizes.empty() ? str_cat(dtype, "[]") : tensor(dtype, sizes), "{", parameters(d, dtype), "}");
}

RandomCase between(Draw& d) {
  RandomCase c{.op = d.once_in(2) ? "quantize_linear" : "dequantize_linear"};
  Sizes x;
  const int64_t rank = d.integer(1, 4);
  for (int64_t i = 0; i < rank; ++i) x.push_back(d.once_in(50) ? 0 : d.size(rank > 2 ? 20 : 70));
  const int64_t axis = d.integer(0, rank - 1), n = x[static_cast<size_t>(axis)];
  const std::string dtype = d.once_in(2) ? "i8" : "u8";
  Sizes scale;
  int64_t block = 0;
  if (d.once_in(3) && n > 0) {
    block = d.integer(1, n);
    scale = x;
    scale[static_cast<size_t>(axis)] = (n + block - 1) / block;
  } else if (!d.once_in(5)) {
    scale = {n};
  }
  c.inputs = (c.op == "quantize_linear" ? floats(d, x) : tensor(dtype, x)) + ";";
  c.inputs += scale.empty() ? std::string("f32 0.05") : tensor("f32", scale) + (d.once_in(4) ? "" : " x0.1");
  if (!d.once_in(4)) {
    c.inputs += ";" + (scale.empty() ? str_cat(dtype, "[]{3}") : tensor(dtype, scale));
  } else if (c.op == "quantize_linear") {
    c.attributes = str_cat("output_dtype=\"", dtype, "\", ");
  }
  c.attributes += str_cat("axis=", d.once_in(2) ? axis : axis - rank, ", block_size=", block);
  return c;
}

}  // namespace

RandomCase eight_bits(Draw& d) {
  constexpr const char* kOps[] = {"add",
                                  "sub",
                                  "mul",
                                  "add",
                                  "sub",
                                  "mul",
                                  "concat",
                                  "max_pool",
                                  "average_pool",
                                  "softmax",
                                  "global_average_pool",
                                  "between"};
  RandomCase c{.op = d.of(kOps)};
  if (c.op == "between") return between(d);
  const std::string dtype = d.once_in(2) ? "i8" : "u8";
  if (c.op.ends_with("pool")) {
    Sizes x = {d.integer(1, 2), d.size(40)};
    for (int64_t i = d.integer(1, d.once_in(8) ? 3 : 2); i > 0; --i) x.push_back(d.size(20));
    c.inputs = quantized(d, dtype, x);
    if (c.op == "max_pool" && d.once_in(3)) c.inputs = tensor(dtype, x);
    if (c.op != "global_average_pool") c.attributes = window(d, x, true);
    if (c.op == "average_pool") c.attributes += str_cat(", count_include_pad=", d.integer(0, 1));
    if (c.op != "max_pool") c.quantization = parameters(d, dtype);
    return c;
  }
  const int64_t rank = d.integer(1, 4);
  Sizes x;
  for (int64_t i = 0; i < rank; ++i) x.push_back(d.once_in(50) ? 0 : d.size(rank > 2 ? 20 : 70));
  c.quantization = parameters(d, dtype);
  if (c.op == "softmax") {
    c.inputs = quantized(d, dtype, x);
    c.attributes = str_cat("axis=", d.integer(-rank, rank - 1));
  } else if (c.op == "concat") {
    const auto axis = static_cast<size_t>(d.integer(0, rank - 1));
    for (int64_t i = d.integer(1, 4); i > 0; --i) {
      c.inputs += (c.inputs.empty() ? "" : ";") +
                  (d.once_in(4) ? tensor(dtype, x) + "{" + c.quantization + "}" : quantized(d, dtype, x));
      x[axis] = d.integer(0, 9);
    }
    c.attributes = str_cat("axis=", axis);
  } else {
    const auto operand = [&] {
      Sizes s = x;
      for (auto& n : s) n = d.once_in(3) ? 1 : n;
      if (d.once_in(3)) s.erase(s.begin(), s.begin() + d.integer(0, rank - 1));
      return s;
    };
    c.inputs = quantized(d, dtype, operand()) + ";" + quantized(d, dtype, operand());
    if (c.op == "add" && d.once_in(4)) c.attributes = "activation=\"relu\"";
  }
  return c;
}

RandomCase conversions(Draw& d) {
  constexpr const char* kTypes[] = {"f32", "i8", "u8", "i32", "i64", "bool"};
  // Halves, ends of types, what float32 does not hold, what no integer holds.
  constexpr const char* kFloats[] = {"nan",         "inf",    "-inf",   "-0",         "0.5",        "-0.99",
                                     "254.9",       "256",    "-129",   "2147483520", "2147483648", "-2147483648",
                                     "-2147483904", "9.2e18", "9.3e18", "-9.3e18",    "1e-40"};
  constexpr const char* kInts[] = {"0", "1", "-1", "127", "-128", "255", "16777217", "2147483647", "-2147483648"};
  constexpr const char* kLongs[] = {"0",
                                    "-1",
                                    "256",
                                    "2147483648",
                                    "-2147483649",
                                    "9007199254740993",
                                    "9223372036854775807",
                                    "-9223372036854775808",
                                    "1099511627775"};
  const std::string from = d.of(kTypes);
  RandomCase c{.op = "cast"};
  Sizes x;
  for (int64_t i = d.integer(0, 3); i > 0; --i) x.push_back(d.once_in(20) ? 0 : d.size(70));
  int64_t count = 1;
  for (int64_t n : x) count *= n;
  c.inputs = x.empty() ? from + "[]" : tensor(from, x);
  const bool spelt = from == "f32" || from == "i32" || from == "i64";
  if (spelt && count > 0 && count <= 300) {
    c.inputs += "{";
    for (int64_t i = 0; i < count; ++i) {
      c.inputs += str_cat(i ? "," : "", from == "f32" ? d.of(kFloats) : from == "i32" ? d.of(kInts) : d.of(kLongs));
    }
    c.inputs += "}";
  }
  c.attributes = str_cat("to=\"", d.of(kTypes), "\"");
  return c;
}

}  // namespace pinnace::testing
