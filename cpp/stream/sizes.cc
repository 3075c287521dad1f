// Small tensors of sizes.
#include "stream/sizes.h"

namespace pinnace {
namespace {

Length reduced(Length l) {
  const int64_t common = std::gcd(l.up, l.down);
  if (l.up == 0) return {0, 1, l.plus};
  return {l.up / common, l.down / common, l.plus};
}

std::optional<Length> computed(StreamReader& reader, std::string_view op, const Length& a, const Length& b) {
  if (op == "add" || op == "sub") {
    const int64_t sign = op == "add" ? 1 : -1;
    return reduced({a.up * b.down + sign * b.up * a.down, a.down * b.down, a.plus + sign * b.plus});
  }
  if (op == "mul") {
    if (!a.fixed() && !b.fixed()) return std::nullopt;
    const Length &l = a.fixed() ? b : a, &factor = a.fixed() ? a : b;
    return reduced({l.up * factor.plus, l.down, l.plus * factor.plus});
  }
  if ((op == "max" || op == "min") && a.up * b.down == b.up * a.down) {
    return op == "max" ? reduced({a.up, a.down, std::max(a.plus, b.plus)})
                       : reduced({a.up, a.down, std::min(a.plus, b.plus)});
  }
  if ((op == "div" || op == "mod") && b.fixed() && b.plus > 0) {
    const int64_t whole = floor_div(a.plus, b.plus);
    const Length l = reduced({a.up, a.down * b.plus, whole});
    if (!l.fixed()) reader.need_multiple(l.down);
    return op == "div" ? l : Length{0, 1, a.plus - whole * b.plus};
  }
  return std::nullopt;
}

}  // namespace

void fix_sizes(Graph& graph, int32_t symbol, const OpTable& ops) {
  const Symbol& time = graph.symbols[static_cast<size_t>(symbol)];
  // Far apart, so that whatever grows with time differs, however large its strides are.
  const int64_t most = std::min(time.max, 8192 * time.multiple_of);
  const int64_t many = most / time.multiple_of * time.multiple_of;
  const int64_t few = many / 2 / time.multiple_of * time.multiple_of;
  if (few < std::max<int64_t>(1, time.min)) return;
  const auto types_at = [&](int64_t elements) {
    std::vector<TensorType> inputs;
    for (const ValueId id : graph.inputs) {
      inputs.push_back(graph.value(id).type);
      for (Dim& d : inputs.back().shape) {
        if (d.symbol == symbol) d = elements;
      }
    }
    return infer_types(graph, inputs, {}, ops);
  };
  const auto a = types_at(few), b = types_at(many);
  if (!a || !b) return;  // what fails there is what the rules speak of
  for (size_t i = 0; i < graph.values.size(); ++i) {
    Shape& shape = graph.values[i].type.shape;
    const Shape &first = a->types[i].shape, &second = b->types[i].shape;
    if (first.size() != shape.size() || second.size() != shape.size()) continue;
    for (size_t k = 0; k < shape.size(); ++k) {
      if (!shape[k].known() && shape[k].symbol < 0 && first[k].known() && first[k] == second[k]) shape[k] = first[k];
    }
  }
}

std::optional<std::vector<Length>> lengths_of(StreamReader& reader, const Node& node) {
  if (node.outputs.size() != 1) return std::nullopt;
  if (node.op == "shape") {
    const Flow* f = reader.flow(node, 0);
    if (!f) return std::nullopt;
    const TensorType& x = reader.type(node.inputs[0]);
    const auto place = [&](std::string_view name) {
      const int64_t i = reader.attr_int(node, name);
      return std::clamp<int64_t>(i < 0 ? i + x.rank() : i, 0, x.rank());
    };
    std::vector<Length> all;
    for (int64_t i = place("start"); i < place("end"); ++i) {
      const Dim& d = x.shape[static_cast<size_t>(i)];
      if (i == f->axis) {
        all.push_back({f->up, f->down, f->more});
      } else if (d.known()) {
        all.push_back({0, 1, d.size});
      } else {
        return std::nullopt;
      }
    }
    return all;
  }
  if (node.op == "reshape" || node.op == "squeeze" || node.op == "unsqueeze" || node.op == "cast" ||
      node.op == "identity") {
    return reader.lengths(node, 0);
  }
  if (node.op == "concat") {
    std::vector<Length> all;
    for (size_t i = 0; i < node.inputs.size(); ++i) {
      const auto part = reader.lengths(node, i);
      if (!part) return std::nullopt;
      all.insert(all.end(), part->begin(), part->end());
    }
    return all;
  }
  if (node.op == "gather") {
    const auto from = reader.lengths(node, 0);
    const auto which = reader.ints(node, 1);
    if (!from || !which) return std::nullopt;
    std::vector<Length> all;
    for (int64_t i : *which) {
      if (i < 0) i += static_cast<int64_t>(from->size());
      if (i < 0 || i >= static_cast<int64_t>(from->size())) return std::nullopt;
      all.push_back((*from)[static_cast<size_t>(i)]);
    }
    return all;
  }
  if (node.op == "slice") {
    const auto from = reader.lengths(node, 0);
    const auto start = reader.number(node, 1), end = reader.number(node, 2);
    if (!from || !start || !end || reader.has(node, 4)) return std::nullopt;
    const auto count = static_cast<double>(from->size());
    const auto place = [&](double i) { return static_cast<size_t>(std::clamp(i < 0 ? i + count : i, 0.0, count)); };
    const size_t first = place(*start), last = std::max(first, place(*end));
    return std::vector<Length>(from->begin() + static_cast<ptrdiff_t>(first),
                               from->begin() + static_cast<ptrdiff_t>(last));
  }
  if (node.inputs.size() != 2) return std::nullopt;
  const auto a = reader.lengths(node, 0), b = reader.lengths(node, 1);
  if (!a || !b || a->empty() || b->empty() || (a->size() != b->size() && a->size() != 1 && b->size() != 1)) {
    return std::nullopt;
  }
  std::vector<Length> all;
  for (size_t i = 0; i < std::max(a->size(), b->size()); ++i) {
    const auto one = computed(reader, node.op, (*a)[a->size() == 1 ? 0 : i], (*b)[b->size() == 1 ? 0 : i]);
    if (!one) return std::nullopt;
    all.push_back(*one);
  }
  return all;
}

}  // namespace pinnace
