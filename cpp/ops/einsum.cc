// einsum: sums of products by an equation such as "bij,bjk->bik".
//   inputs    one or more, numbers of one type
//   equation string, required: one term per input, letters a-z A-Z and at most one "..." each, spaces anywhere; "->"
//   and the output's term, or without it the "..." and the letters that occur once, in the order of their codes y as
//   the inputs
// Equal letters have equal sizes, or 1, which repeats; a letter twice in a term walks the diagonal. "..." stands for
// leading dimensions that broadcast. Floats: products and sums in double, one rounding. Integers wrap. A sum of nothing
// is 0. NaN and infinities go through products and sums as IEEE 754 has them. Source: ONNX Einsum, opset 28.
#include "ops/einsum.h"

#include <algorithm>
#include <array>

#include "ops/element.h"

namespace pinnace {

Dim EinsumEquation::size_of(int label) const {
  return sizes[static_cast<size_t>(std::find(labels.begin(), labels.end(), label) - labels.begin())];
}

Result<EinsumEquation> parse_einsum(const NodeView& node) {
  std::string text;
  for (char c : node.attr_string("equation")) {
    if (c != ' ') text.push_back(c);
  }
  const auto bad = [&](const auto&... parts) {
    return node.error("equation '", node.attr_string("equation"), "' ", parts...);
  };
  const size_t arrow = text.find("->");
  std::string left = text.substr(0, arrow);
  EinsumEquation e;
  size_t ellipsis = 0;  // dimensions that "..." stands for at most
  std::array<int, 128> seen{};
  // Reads one term; `rank` is that of its input, or -1 for the output.
  const auto read = [&](std::string_view term, int rank, std::vector<int>& to) -> Status {
    const size_t dots = term.find("...");
    std::string letters(term);
    if (dots != std::string::npos) letters.erase(dots, 3);
    for (char c : letters) {
      if (!((c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z'))) return bad("has '", c, "' where a letter must be");
    }
    const size_t lead = dots == std::string::npos ? letters.size() : dots;
    size_t count = dots == std::string::npos ? 0 : ellipsis;
    if (rank >= 0) {
      if (static_cast<size_t>(rank) < letters.size() ||
          (dots == std::string::npos && static_cast<size_t>(rank) != letters.size())) {
        return bad("gives ", letters.size(), " letters to an input of rank ", rank);
      }
      count = static_cast<size_t>(rank) - letters.size();
      ellipsis = std::max(ellipsis, count);
    }
    for (size_t i = 0; i < lead; ++i) to.push_back(letters[i]);
    for (size_t i = count; i > 0; --i) to.push_back(-static_cast<int>(i));
    for (size_t i = lead; i < letters.size(); ++i) to.push_back(letters[i]);
    return {};
  };
  const size_t terms = static_cast<size_t>(std::count(left.begin(), left.end(), ',')) + 1;
  if (terms != static_cast<size_t>(node.input_count()))
    return bad("has ", terms, " terms for ", node.input_count(), " inputs");
  Shape sizes;
  for (int i = 0; i < node.input_count(); ++i) {
    const size_t comma = left.find(',');
    std::vector<int> term;
    PINNACE_TRY(read(std::string_view(left).substr(0, comma), node.input(i).rank(), term));
    left.erase(0, comma == std::string::npos ? left.size() : comma + 1);
    for (size_t d = 0; d < term.size(); ++d) {
      if (term[d] > 0) ++seen[static_cast<size_t>(term[d])];
      const auto at = std::find(e.labels.begin(), e.labels.end(), term[d]);
      if (at == e.labels.end()) {
        e.labels.push_back(term[d]);
        sizes.push_back(node.input(i).shape[d]);
      } else {
        Dim& size = sizes[static_cast<size_t>(at - e.labels.begin())];
        PINNACE_ASSIGN(const Shape both, broadcast_shapes(node, {size}, {node.input(i).shape[d]}));
        size = both[0];
      }
    }
    e.terms.push_back(std::move(term));
  }
  if (arrow != std::string::npos) {
    PINNACE_TRY(read(std::string_view(text).substr(arrow + 2), -1, e.out));
  } else {
    for (size_t i = ellipsis; i > 0; --i) e.out.push_back(-static_cast<int>(i));
    for (int c = 'A'; c <= 'z'; ++c) {
      if (seen[static_cast<size_t>(c)] == 1) e.out.push_back(c);
    }
  }
  std::vector<int> labels = e.out;
  for (size_t i = 0; i < e.out.size(); ++i) {
    if (std::find(e.labels.begin(), e.labels.end(), e.out[i]) == e.labels.end())
      return bad("gives y a letter that no input has");
    if (std::find(e.out.begin(), e.out.begin() + static_cast<ptrdiff_t>(i), e.out[i]) !=
        e.out.begin() + static_cast<ptrdiff_t>(i)) {
      return bad("gives y a letter twice");
    }
  }
  for (int label : e.labels) {
    if (std::find(labels.begin(), labels.end(), label) == labels.end()) labels.push_back(label);
  }
  for (int label : labels) {
    e.sizes.push_back(
        sizes[static_cast<size_t>(std::find(e.labels.begin(), e.labels.end(), label) - e.labels.begin())]);
  }
  e.labels = std::move(labels);
  return e;
}

namespace {
Result<TensorType> einsum_type(const NodeView& node) {
  if (node.input_count() == 0) return node.error("has no inputs");
  PINNACE_TRY(refuse_quantized(node));
  PINNACE_ASSIGN(const EinsumEquation e, parse_einsum(node));
  return TensorType{node.input(0).dtype, Shape(e.sizes.begin(), e.sizes.begin() + static_cast<ptrdiff_t>(e.out.size())),
                    nullptr};
}

/// Elements [begin, end) of the result.
template <class T>
void sum_products(const StridedLoop& outer, const StridedLoop& inner, std::span<const TensorView> in, T* y,
                  int64_t begin, int64_t end) {
  using Acc = std::conditional_t<is_float<T>, double, uint64_t>;
  outer.run(begin, end, [&](int64_t i, const int64_t* base) {
    Acc sum{};
    inner.run([&](int64_t, const int64_t* at) {
      Acc product = 1;
      for (size_t k = 0; k < in.size(); ++k) product *= static_cast<Acc>(widen(in[k].data<T>()[base[k] + at[k]]));
      sum += product;
    });
    if constexpr (is_float<T>) {
      y[i] = narrow<T>(sum);
    } else {
      y[i] = static_cast<T>(sum);
    }
  });
}

/// What stands for integers of type T: unsigned sums wrap as signed ones would.
template <class T, bool kInteger = std::is_integral_v<T>>
struct Summed {
  using type = T;
};
template <class T>
struct Summed<T, true> {
  using type = std::make_unsigned_t<std::conditional_t<std::is_same_v<T, bool>, uint8_t, T>>;
};

Status einsum_reference(const NodeView& node, std::span<const TensorView> in, std::span<const TensorView> out) {
  PINNACE_ASSIGN(const EinsumEquation e, parse_einsum(node));
  const auto split = static_cast<ptrdiff_t>(e.out.size());
  StridedLoop outer(Shape(e.sizes.begin(), e.sizes.begin() + split)),
      inner(Shape(e.sizes.begin() + split, e.sizes.end()));
  for (size_t k = 0; k < in.size(); ++k) {
    const Shape& shape = in[k].type->shape;
    const std::vector<int64_t> own = row_major_strides(shape);
    std::vector<int64_t> strides(e.labels.size(), 0);
    for (size_t d = 0; d < shape.size(); ++d) {  // a letter twice adds both strides: the diagonal
      const auto at = std::find(e.labels.begin(), e.labels.end(), e.terms[k][d]) - e.labels.begin();
      if (shape[d].size != 1) strides[static_cast<size_t>(at)] += own[d];
    }
    outer.add_strides({strides.begin(), strides.begin() + split});
    inner.add_strides({strides.begin() + split, strides.end()});
  }
  const double cost = 100 + 3 * static_cast<double>(inner.size()) * static_cast<double>(in.size());
  return visit(out[0].dtype(), [&](auto zero) {
    using T = typename Summed<decltype(zero)>::type;
    node.threads().ranges(outer.size(), cost, [&](int64_t begin, int64_t end) {
      sum_products(outer, inner, in, out[0].data<T>(), begin, end);
    });
    return Status();
  });
}
}  // namespace

PINNACE_OP(einsum){
    .name = "einsum",
    .inputs = {{"inputs", kNumbers, 'T', Arity::kVariadic}},
    .attrs = {required_attr("equation", AttrKind::kString)},
    .type = einsum_type,
    .reference = einsum_reference,
    .work = Work::kEinsum,
};
}  // namespace pinnace
