// Cases are turned into the text form of graphs, so that types, literals and attributes have one parser.
#include "cases/parse_case.h"

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <cstring>

#include "base/dtype_code.h"
#include "base/half.h"
#include "base/status.h"
#include "ops/element.h"

namespace pinnace::testing {
namespace {

constexpr double kTau = 6.283185307179586;

std::string_view trimmed(std::string_view text) {
  while (!text.empty() && text.front() == ' ') text.remove_prefix(1);
  while (!text.empty() && text.back() == ' ') text.remove_suffix(1);
  return text;
}

/// The parts between semicolons; none for an empty text.
std::vector<std::string_view> parts_of(std::string_view text) {
  std::vector<std::string_view> parts;
  while (!trimmed(text).empty()) {
    const size_t end = std::min(text.find(';'), text.size());
    parts.push_back(trimmed(text.substr(0, end)));
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  return parts;
}

/// One tensor of a case, taken apart.
struct Piece {
  std::string type;      // "f32[2,3]{scale 0.5, zero 3}"
  std::string elements;  // "1,2,3"
  bool literal = false;
  double scale = 1;
  bool ranged = false;
  double low = 0, high = 0;
};

Result<Piece> take_apart(std::string_view text) {
  Piece piece;
  size_t at = text.find_first_of("[{ ");
  const std::string dtype(text.substr(0, at));
  std::string_view rest = at == text.npos ? std::string_view() : text.substr(at);
  std::string shape;
  if (rest.starts_with('[')) {
    at = rest.find(']');
    if (at == rest.npos) return invalid("'", text, "': no ]");
    shape = rest.substr(0, at + 1);
    rest.remove_prefix(at + 1);
  }
  std::string quantization;
  if (rest.starts_with("{scale")) {
    at = rest.find('}');
    if (at == rest.npos) return invalid("'", text, "': no }");
    quantization = rest.substr(0, at + 1);
    rest.remove_prefix(at + 1);
  }
  rest = trimmed(rest);
  const auto number = [](std::string_view from) { return std::strtod(std::string(from).c_str(), nullptr); };
  if (rest.starts_with('{')) {
    if (!rest.ends_with('}')) return invalid("'", text, "': no }");
    piece.literal = true;
    piece.elements = trimmed(rest.substr(1, rest.size() - 2));
  } else if (rest.starts_with('x')) {
    piece.scale = number(rest.substr(1));
  } else if (rest.starts_with("in ")) {
    at = rest.find("..");
    if (at == rest.npos) return invalid("'", text, "': in LOW..HIGH");
    piece.ranged = true;
    piece.low = number(rest.substr(3, at - 3));
    piece.high = number(rest.substr(at + 2));
  } else if (!rest.empty()) {  // "f32 0.5"
    piece.literal = true;
    piece.elements = rest;
    if (shape.empty()) shape = "[]";
  }
  if (shape.empty()) {
    if (!piece.literal) return invalid("'", text, "': neither shape nor contents");
    const auto commas = std::count(piece.elements.begin(), piece.elements.end(), ',');
    shape = str_cat("[", piece.elements.empty() ? 0 : commas + 1, "]");
  }
  piece.type = dtype + shape + quantization;
  return piece;
}

Result<CaseTensor> literal_tensor(const Piece& piece) {
  PINNACE_ASSIGN(const Graph graph,
                 parse(str_cat("graph \"\" { const %x : ", piece.type, " = {", piece.elements, "} }")));
  return CaseTensor{true, graph.values[0].type, graph.values[0].constant};
}

/// Draws each element by `draw`, a double, and stores it in the type.
template <class Draw>
Result<ConstantPtr> fill(const TensorType& type, Draw draw) {
  PINNACE_ASSIGN(Buffer buffer, Buffer::allocate(static_cast<size_t>(type.bytes()), "a case"));
  std::memset(buffer.data(), 0, buffer.size());
  const int64_t count = type.elements();
  for (int64_t i = 0; i < count; ++i) {
    const double x = draw();
    std::byte* at = buffer.data() + i * dtype_bits(type.dtype) / 8;
    const auto put = [&](auto element) { std::memcpy(at, &element, sizeof element); };
    switch (type.dtype) {
      case DType::kF32:
        put(static_cast<float>(x));
        break;
      case DType::kF64:
        put(x);
        break;
      case DType::kF16:
        put(Half(x).bits);
        break;
      case DType::kBF16:
        put(BFloat16(x).bits);
        break;
      case DType::kI8:
        put(static_cast<int8_t>(x));
        break;
      case DType::kU8:
        put(static_cast<uint8_t>(x));
        break;
      case DType::kI16:
        put(static_cast<int16_t>(x));
        break;
      case DType::kU16:
        put(static_cast<uint16_t>(x));
        break;
      case DType::kI32:
        put(static_cast<int32_t>(x));
        break;
      case DType::kU32:
        put(static_cast<uint32_t>(x));
        break;
      case DType::kI64:
        put(static_cast<int64_t>(x));
        break;
      case DType::kU64:
        put(static_cast<uint64_t>(x));
        break;
      case DType::kBool:
        put(static_cast<uint8_t>(x != 0));
        break;
      case DType::kI2:
      case DType::kU2:
      case DType::kI4:
      case DType::kU4:
        store_int({&type, buffer.data()}, i, static_cast<int>(x));
        break;
      default:
        store_small({&type, buffer.data()}, i, small_from_double(type.dtype, x));
        break;
    }
  }
  return Constant::of(std::move(buffer));
}

bool is_floating(DType dtype) {
  return (kFloats | kSmallFloats) >> static_cast<int>(dtype) & 1;
}

/// Range of integers without one of their own.
std::pair<int64_t, int64_t> default_range(DType dtype) {
  switch (dtype) {
    case DType::kI8:
      return {-128, 127};
    case DType::kU8:
      return {0, 255};
    case DType::kI2:
      return {-2, 1};
    case DType::kU2:
      return {0, 3};
    case DType::kI4:
      return {-8, 7};
    case DType::kU4:
      return {0, 15};
    case DType::kBool:
      return {0, 1};
    case DType::kU16:
    case DType::kU32:
    case DType::kU64:
      return {0, 100};
    default:
      return {-100, 100};
  }
}

Result<CaseTensor> parse_tensor(std::string_view text, Random& random) {
  if (text == "none") return CaseTensor{false, {}, nullptr};
  PINNACE_ASSIGN(const Piece piece, take_apart(text));
  if (piece.literal) return literal_tensor(piece);
  CaseTensor tensor;
  PINNACE_ASSIGN(tensor.type, parse_type(piece.type));
  if (!tensor.type.concrete()) return invalid("'", text, "': an input has a dynamic size");
  const bool floating = is_floating(tensor.type.dtype);
  auto [low, high] = default_range(tensor.type.dtype);
  const auto draw = [&]() -> double {
    if (piece.ranged && floating) return random.uniform(piece.low, piece.high);
    if (piece.ranged) return static_cast<double>(random.integer(std::llround(piece.low), std::llround(piece.high)));
    return piece.scale * (floating ? random.normal() : static_cast<double>(random.integer(low, high)));
  };
  PINNACE_ASSIGN(tensor.bytes, fill(tensor.type, draw));
  return tensor;
}

Result<Expectation> parse_expectation(std::string_view text) {
  Expectation expect;
  if (text.starts_with("error")) {
    expect.error = true;
    expect.error_text = trimmed(text.substr(5));
    return expect;
  }
  const bool all_types = text.starts_with("type ");
  if (all_types) text.remove_prefix(5);
  for (std::string_view part : parts_of(text)) {
    if (all_types || part.starts_with("type ")) {
      if (part.starts_with("type ")) part.remove_prefix(5);
      CaseTensor tensor;
      PINNACE_ASSIGN(tensor.type, parse_type(trimmed(part)));
      expect.outputs.push_back(std::move(tensor));
      continue;
    }
    PINNACE_ASSIGN(const Piece piece, take_apart(part));
    if (!piece.literal)
      return invalid("expect '", part, "' has no contents; write type before it to check the type only");
    PINNACE_ASSIGN(CaseTensor tensor, literal_tensor(piece));
    expect.outputs.push_back(std::move(tensor));
  }
  return expect;
}

double as_double(const TensorView& t, int64_t i) {
  const std::byte* at = t.bytes + i * dtype_bits(t.dtype()) / 8;
  const auto get = [&](auto element) {
    std::memcpy(&element, at, sizeof element);
    return element;
  };
  switch (t.dtype()) {
    case DType::kF32:
      return get(float{});
    case DType::kF64:
      return get(double{});
    case DType::kF16:
      return half_to_float(get(uint16_t{}));
    case DType::kBF16:
      return bfloat_to_float(get(uint16_t{}));
    case DType::kI8:
      return get(int8_t{});
    case DType::kI16:
      return get(int16_t{});
    case DType::kU16:
      return get(uint16_t{});
    case DType::kI32:
      return get(int32_t{});
    case DType::kU32:
      return get(uint32_t{});
    case DType::kI64:
      return static_cast<double>(get(int64_t{}));
    case DType::kU64:
      return static_cast<double>(get(uint64_t{}));
    case DType::kBool:
    case DType::kU8:
      return get(uint8_t{});
    case DType::kI2:
    case DType::kU2:
    case DType::kI4:
    case DType::kU4:
      return load_int(t, i);
    default:
      return static_cast<double>(load_small(t, i));
  }
}

bool type_fits(const TensorType& want, const TensorType& got) {
  if (want.dtype != got.dtype || want.rank() != got.rank()) return false;
  for (size_t i = 0; i < want.shape.size(); ++i) {
    if (want.shape[i].known() && want.shape[i] != got.shape[i]) return false;
  }
  return !want.quantized() || (got.quantized() && *want.quantization == *got.quantization);
}

}  // namespace

uint64_t test_seed() {
  const char* text = std::getenv("PINNACE_TEST_SEED");
  return text && *text ? std::strtoull(text, nullptr, 0) : 0x5eed01;
}

uint64_t Random::bits() {
  uint64_t z = state_ += 0x9e3779b97f4a7c15u;
  z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
  z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
  return z ^ (z >> 31);
}

double Random::uniform(double low, double high) {
  return low + static_cast<double>(bits() >> 11) * 0x1p-53 * (high - low);
}

double Random::normal() {
  const double radius = std::sqrt(-2 * std::log(uniform(0x1p-60, 1)));
  return radius * std::cos(kTau * uniform(0, 1));
}

int64_t Random::integer(int64_t low, int64_t high) {
  const uint64_t span = static_cast<uint64_t>(high) - static_cast<uint64_t>(low) + 1;
  return static_cast<int64_t>(static_cast<uint64_t>(low) + (span ? bits() % span : bits()));
}

std::vector<TensorView> BuiltCase::input_views() const {
  std::vector<TensorView> views;
  for (const CaseTensor& t : inputs) {
    views.push_back(t.present ? TensorView{&t.type, const_cast<std::byte*>(t.bytes->data())} : TensorView{});
  }
  return views;
}

std::vector<const TensorType*> BuiltCase::declared() const {
  std::vector<const TensorType*> types;
  for (const ValueId id : node().outputs) types.push_back(&graph.value(id).type);
  return types;
}

Result<TensorType> parse_type(std::string_view text) {
  PINNACE_ASSIGN(const Graph graph, parse(str_cat("graph \"\" { input %x : ", text, " }")));
  return graph.values[0].type;
}

Result<ConstantPtr> random_contents(const TensorType& type, Random& random) {
  const auto [low, high] = default_range(type.dtype);
  const bool floating = is_floating(type.dtype);
  return fill(type, [&, low = low, high = high]() -> double {
    return floating ? random.normal() : static_cast<double>(random.integer(low, high));
  });
}

Result<BuiltCase> build_case(const char* op, const Case& source, uint64_t seed) {
  BuiltCase built;
  built.op_name = op;
  built.source = &source;
  built.op = find_op(op);
  if (!built.op) return invalid("no operator ", op);
  Random random(seed);
  std::string text = "graph \"case\" {\n", arguments;
  for (const std::string_view part : parts_of(source.inputs)) {
    PINNACE_ASSIGN(CaseTensor tensor, parse_tensor(part, random));
    if (!arguments.empty()) arguments += ", ";
    if (tensor.present) {
      std::string type;
      if (part.find('[') == part.npos) {
        type = type_code(tensor.type);
      } else {
        PINNACE_ASSIGN(const Piece piece, take_apart(part));
        type = piece.type;
      }
      text += str_cat("  input %x", built.inputs.size(), " : ", type, "\n");
      arguments += str_cat("%x", built.inputs.size());
    } else {
      arguments += "none";
    }
    built.inputs.push_back(std::move(tensor));
  }
  PINNACE_ASSIGN(built.expect, parse_expectation(source.expect));
  text += "  ";
  for (int i = 0; i < source.outputs; ++i) {
    text += str_cat(i ? ", %y" : "%y", i);
    // Only the quantisation of a declared type matters to shape rules.
    if (i == 0 && *source.output_quantization) text += str_cat(" : i8[]{", source.output_quantization, "}");
  }
  text += str_cat(" = ", op, "@", built.op->version, " \"", op, "\" (", arguments, ")");
  if (*source.attributes) text += str_cat(" {", source.attributes, "}");
  text += "\n";
  for (int i = 0; i < source.outputs; ++i) text += str_cat("  output \"y", i, "\" %y", i, "\n");
  auto graph = parse(text + "}");
  if (!graph) return graph.status().with_prefix(text + "}\n");
  built.graph = std::move(*graph);
  return built;
}

std::string difference(const CaseTensor& want, const TensorView& got, const Tolerance& tolerance) {
  if (!type_fits(want.type, *got.type)) {
    return str_cat("the type is ", to_string(*got.type), ", expected ", to_string(want.type));
  }
  if (!want.bytes) return {};
  const TensorView wanted{&want.type, const_cast<std::byte*>(want.bytes->data())};
  const int64_t count = got.elements();
  const bool bitwise = tolerance.abs == 0 && tolerance.rel == 0;
  double largest = 0;
  for (int64_t i = 0; i < count; ++i) {
    const double w = as_double(wanted, i);
    if (std::isfinite(w)) largest = std::max(largest, std::fabs(w));
  }
  const double bound = tolerance.abs + tolerance.rel * largest;
  const int bits = dtype_bits(got.dtype());
  for (int64_t i = 0; i < count; ++i) {
    const double w = as_double(wanted, i), g = as_double(got, i);
    bool equal = w == g && std::signbit(w) == std::signbit(g);
    // 64-bit integers do not fit a double.
    if (bits == 64 && !is_floating(got.dtype())) equal = std::memcmp(wanted.bytes + i * 8, got.bytes + i * 8, 8) == 0;
    if (equal || (std::isnan(w) && std::isnan(g))) continue;
    if (!bitwise && std::fabs(w - g) <= bound) continue;  // false where one is NaN or infinite
    return str_cat("element ", i, " is ", g, ", expected ", w, " within ", bound);
  }
  return {};
}

}  // namespace pinnace::testing
