// Seeded inputs, a reference run, and the distance between two lists of results.
#include "passes/compare_runs.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <random>

#include "ops/element.h"

namespace pinnace {
namespace {

/// Values of about unit size for floats; 0 and 1 for integers, which are indices or masks more often than numbers.
void fill(const TensorView& t, std::mt19937_64& random) {
  if (!(dtypes(t.dtype()) & kAny)) {  // types that are only stored: small numbers in each of them
    std::generate_n(t.bytes, t.type->bytes(), [&] { return static_cast<std::byte>(random() & 0x11); });
    return;
  }
  visit(t.dtype(), [&](auto zero) {
    using T = decltype(zero);
    std::normal_distribution<double> normal;
    for (int64_t i = 0; i < t.elements(); ++i) {
      if constexpr (is_float<T>) {
        t.data<T>()[i] = narrow<T>(normal(random));
      } else {
        t.data<T>()[i] = static_cast<T>(random() & 1);
      }
    }
  });
}

double distance(const ReferenceOutput& a, const ReferenceOutput& b) {
  constexpr double kFar = std::numeric_limits<double>::infinity();
  if (a.type.dtype != b.type.dtype || a.type.shape != b.type.shape) return kFar;
  if (!(dtypes(a.type.dtype) & kAny)) {
    // Neighbouring floats of 8 bits have neighbouring codes: which of the two it is may hang on the last bit before.
    const int step = dtypes(a.type.dtype) & kFloats8 ? 1 : 0;
    const auto near = [&](std::byte p, std::byte q) {
      return std::abs(static_cast<int>(p) - static_cast<int>(q)) <= step;
    };
    return std::equal(a.bytes.data(), a.bytes.data() + a.type.bytes(), b.bytes.data(), near) ? 0 : kFar;
  }
  double largest = 0, difference = 0;
  bool apart = false;
  visit(a.type.dtype, [&](auto zero) {
    using T = decltype(zero);
    const auto* x = reinterpret_cast<const T*>(a.bytes.data());
    const auto* y = reinterpret_cast<const T*>(b.bytes.data());
    for (int64_t i = 0; i < a.type.elements(); ++i) {
      const auto p = static_cast<double>(widen(x[i])), q = static_cast<double>(widen(y[i]));
      if (!std::isfinite(p) || !std::isfinite(q)) {
        apart |= !(p == q || (std::isnan(p) && std::isnan(q)));
        continue;
      }
      largest = std::max(largest, std::fabs(p));
      difference = std::max(difference, std::fabs(p - q));
    }
  });
  if (apart) return kFar;
  return difference == 0 ? 0 : difference / std::max(largest, std::numeric_limits<double>::min());
}

}  // namespace

const Tensor* CompareRuns::given(size_t input) const {
  return input < examples_.size() && examples_[input] ? &*examples_[input] : nullptr;
}

std::vector<int64_t> CompareRuns::symbol_sizes(const Graph& graph) const {
  std::vector<int64_t> sizes;
  for (const Symbol& s : graph.symbols) {
    sizes.push_back((std::clamp<int64_t>(2, s.min, s.max) + s.multiple_of - 1) / s.multiple_of * s.multiple_of);
  }
  for (size_t i = 0; i < graph.inputs.size(); ++i) {
    const Tensor* example = given(i);
    if (!example) continue;
    const Shape& shape = graph.value(graph.inputs[i]).type.shape;
    for (size_t d = 0; d < shape.size(); ++d) {
      if (shape[d].symbol >= 0) sizes[static_cast<size_t>(shape[d].symbol)] = example->type.shape[d].size;
    }
  }
  return sizes;
}

Result<std::vector<ReferenceOutput>> CompareRuns::run(const Graph& graph) {
  std::mt19937_64 random(seed_);
  const std::vector<int64_t> sizes = symbol_sizes(graph);
  std::vector<TensorType> types;
  for (size_t i = 0; i < graph.inputs.size(); ++i) {
    const Tensor* example = given(i);
    TensorType type = example ? example->type : graph.value(graph.inputs[i]).type;
    for (Dim& d : type.shape) {
      if (!d.known()) d = d.symbol >= 0 ? sizes[static_cast<size_t>(d.symbol)] : 2;
    }
    types.push_back(std::move(type));
  }
  std::vector<Buffer> buffers;
  std::vector<TensorView> views;
  for (size_t i = 0; i < types.size(); ++i) {
    const TensorType& type = types[i];
    PINNACE_ASSIGN(Buffer bytes, Buffer::allocate(static_cast<size_t>(type.bytes()), "an input"));
    views.push_back({&type, bytes.data()});
    if (const Tensor* example = given(i)) {
      std::copy_n(static_cast<const std::byte*>(example->memory.host), type.bytes(), bytes.data());
    } else {
      fill(views.back(), random);
    }
    buffers.push_back(std::move(bytes));
  }
  std::vector<ConstantPtr> states;
  for (const State& s : graph.states) states.push_back(s.initial);
  PINNACE_ASSIGN(std::vector<ReferenceOutput> outputs, run_graph_reference(graph, views, &states, ops_));
  for (size_t i = 0; i < states.size(); ++i) {
    PINNACE_ASSIGN(Buffer copy, Buffer::allocate(states[i]->bytes(), "a state"));
    std::copy_n(states[i]->data(), states[i]->bytes(), copy.data());
    outputs.push_back({graph.value(graph.states[i].input).type, std::move(copy)});
  }
  return outputs;
}

Status CompareRuns::start(const Graph& graph) {
  auto outputs = run(graph);
  if (!outputs) {
    const bool any = std::any_of(examples_.begin(), examples_.end(), [](const auto& e) { return e.has_value(); });
    return Status(Code::kVerification, str_cat("the model refuses ", any ? "the examples" : "seeded inputs",
                                               ", so passes cannot be checked: ", outputs.status().message()));
  }
  before_ = std::move(*outputs);
  return {};
}

Result<double> CompareRuns::error_of(const Graph& graph) {
  PINNACE_ASSIGN(std::vector<ReferenceOutput> after, run(graph));
  if (after.size() != before_.size()) return std::numeric_limits<double>::infinity();
  double error = 0;
  for (size_t i = 0; i < after.size(); ++i) error = std::max(error, distance(before_[i], after[i]));
  return error;
}

}  // namespace pinnace
