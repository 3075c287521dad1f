// same: compares two graphs as their text forms would, statement by statement, without making the texts. Values are
// compared by name, so that graphs with other indices can be the same; NaNs are equal, as print writes one nan.
#include <algorithm>
#include <cstring>

#include "base/half.h"
#include "graph/graph.h"

namespace pinnace {
namespace {

constexpr int kMaxNesting = 200;  // print writes nothing of what is nested deeper

template <class T>
bool same_float(T a, T b) {
  return (a != a && b != b) || std::memcmp(&a, &b, sizeof a) == 0;  // NOLINT: by bits, 0 and -0 differ
}
template <class T>
bool same_floats(const std::vector<T>& a, const std::vector<T>& b) {
  return std::equal(a.begin(), a.end(), b.begin(), b.end(), same_float<T>);
}

bool same_type(const TensorType& a, const TensorType& b) {
  if (a.dtype != b.dtype || a.shape != b.shape || a.quantized() != b.quantized()) return false;
  if (!a.quantized() || a.quantization == b.quantization) return true;
  const Quantization &p = *a.quantization, &q = *b.quantization;
  return same_floats(p.scales, q.scales) && p.zero_points == q.zero_points && p.axis == q.axis && p.block == q.block;
}

template <class T, class Widen>
bool same_elements(const Constant& a, const Constant& b, Widen widen) {
  for (size_t at = 0; at + sizeof(T) <= a.bytes(); at += sizeof(T)) {
    T x, y;
    std::memcpy(&x, a.data() + at, sizeof(T));
    std::memcpy(&y, b.data() + at, sizeof(T));
    if (!same_float(widen(x), widen(y))) return false;
  }
  return true;
}

bool same_constant(const ConstantPtr& a, const ConstantPtr& b, DType dtype) {
  if (a == b) return true;
  if (!a || !b || a->bytes() != b->bytes()) return false;
  if (a->bytes() == 0 || std::memcmp(a->data(), b->data(), a->bytes()) == 0) return true;
  switch (dtype) {
    case DType::kF32:
      return same_elements<float>(*a, *b, [](float x) { return x; });
    case DType::kF64:
      return same_elements<double>(*a, *b, [](double x) { return x; });
    case DType::kF16:
      return same_elements<uint16_t>(*a, *b, half_to_float);
    case DType::kBF16:
      return same_elements<uint16_t>(*a, *b, bfloat_to_float);
    default:
      return false;
  }
}

bool same_graph(const Graph& a, const Graph& b, int depth);

bool same_attr(const Attr& a, const Attr& b, int depth) {
  if (a.index() != b.index()) return false;
  if (const auto* body = std::get_if<GraphPtr>(&a)) {
    const GraphPtr& other = std::get<GraphPtr>(b);
    return *body == other || (*body && other && same_graph(**body, *other, depth + 1));
  }
  if (const auto* number = std::get_if<double>(&a)) return same_float(*number, std::get<double>(b));
  if (const auto* list = std::get_if<std::vector<double>>(&a))
    return same_floats(*list, std::get<std::vector<double>>(b));
  return a == b;
}

class Comparison {
 public:
  Comparison(const Graph& a, const Graph& b) : a_(a), b_(b) {}

  bool values(const std::vector<ValueId>& x, const std::vector<ValueId>& y, bool types) const {
    return std::equal(x.begin(), x.end(), y.begin(), y.end(), [&](ValueId p, ValueId q) { return value(p, q, types); });
  }
  bool states() const {
    return std::equal(a_.states.begin(), a_.states.end(), b_.states.begin(), b_.states.end(),
                      [&](const State& x, const State& y) {
                        return x.name == y.name && x.input >= 0 && static_cast<size_t>(x.input) < a_.values.size() &&
                               value(x.input, y.input, true) && value(x.output, y.output, false) &&
                               same_constant(x.initial, y.initial, a_.value(x.input).type.dtype);
                      });
  }
  bool constants() const {
    size_t j = 0;
    for (const Value& x : a_.values) {
      if (!x.constant) continue;
      while (j < b_.values.size() && !b_.values[j].constant) ++j;
      if (j == b_.values.size()) return false;
      const Value& y = b_.values[j++];
      if (x.name != y.name || !same_type(x.type, y.type) || !same_constant(x.constant, y.constant, x.type.dtype))
        return false;
    }
    return std::none_of(b_.values.begin() + static_cast<ptrdiff_t>(j), b_.values.end(),
                        [](const Value& y) { return y.constant != nullptr; });
  }
  bool node(const Node& x, const Node& y, int depth) const {
    return x.op == y.op && x.version == y.version && x.name == y.name && x.source == y.source &&
           values(x.inputs, y.inputs, false) && values(x.outputs, y.outputs, true) &&
           std::equal(x.attrs.begin(), x.attrs.end(), y.attrs.begin(), y.attrs.end(),
                      [&](const auto& p, const auto& q) {
                        return p.first == q.first && same_attr(p.second, q.second, depth);
                      });
  }

 private:
  bool value(ValueId x, ValueId y, bool type) const {
    const bool inside = x >= 0 && static_cast<size_t>(x) < a_.values.size();
    if (inside != (y >= 0 && static_cast<size_t>(y) < b_.values.size())) return false;
    if (!inside) return x == y;
    const Value &p = a_.value(x), &q = b_.value(y);
    return p.name == q.name && (!type || same_type(p.type, q.type));
  }

  const Graph& a_;
  const Graph& b_;
};

bool same_graph(const Graph& a, const Graph& b, int depth) {
  if (a.name != b.name) return false;
  if (depth > kMaxNesting) return true;
  const Comparison compare(a, b);
  return a.symbols == b.symbols && a.output_names == b.output_names && compare.values(a.inputs, b.inputs, true) &&
         compare.values(a.outputs, b.outputs, false) && compare.states() && compare.constants() &&
         std::equal(a.nodes.begin(), a.nodes.end(), b.nodes.begin(), b.nodes.end(),
                    [&](const auto& x, const auto& y) { return compare.node(*x, *y, depth); });
}

}  // namespace

bool same(const Graph& a, const Graph& b) {
  return same_graph(a, b, 0);
}

}  // namespace pinnace
