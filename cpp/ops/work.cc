// Estimates by what operators say of themselves (OpDef::work), and the budget of a thread. Work::kPlain reads inputs
// and writes outputs a fixed number of times. tests/cpp/ops/fold_budget_test.cc times every case of every operator.
#include "ops/work.h"

#include <algorithm>
#include <array>
#include <string_view>

namespace pinnace {
namespace {

constexpr double kCall = 500;         // ns of a node, whatever its size
constexpr double kElement = 4;        // ns of reading or writing an element in one pass, and of a function of it
constexpr double kCopiedElement = 2;  // where it is only moved
constexpr double kSortedElement = 400;
constexpr double kMultiplyAdd = 2;  // ns of a multiplication and addition
constexpr double kMeeting = 10;     // ns of two elements that meet outside of a matrix product

double size_of(const Dim& d) {
  return d.known() ? static_cast<double>(std::max<int64_t>(d.size, 1)) : 1;
}
/// Elements, with sizes of 0 taken for 1: loops may walk the other dimensions.
double volume(const TensorType& type) {
  double all = 1;
  for (const Dim& d : type.shape) all *= size_of(d);
  return all;
}
double last_of(const TensorType& type) {
  return type.shape.empty() ? 1 : size_of(type.shape.back());
}

/// The product of the sizes of all letters, times the inputs. Letters of an ellipsis count once for each input.
double combinations(const NodeView& node) {
  std::array<double, 256> sizes{};
  double all = std::max(node.input_count(), 1);
  std::string_view text = node.attr_string("equation");
  for (int i = 0; i < node.input_count(); ++i) {
    const size_t end = text.find_first_of(",-");
    std::string_view term = text.substr(0, end);
    text.remove_prefix(end == std::string_view::npos ? text.size() : end + 1);
    const Shape& shape = node.input(i).shape;
    if (term.find('.') != std::string_view::npos) {
      all *= volume(node.input(i));
      continue;
    }
    size_t d = 0;
    for (const char c : term) {
      if (c == ' ' || d >= shape.size()) continue;
      double& size = sizes[static_cast<unsigned char>(c)];
      size = std::max(size, size_of(shape[d++]));
    }
  }
  for (const double size : sizes) all *= std::max(size, 1.0);
  return all;
}

double longest(const NodeView& node) {
  double most = 1;
  for (int i = 0; i < node.input_count(); ++i) {
    if (!node.has_input(i)) continue;
    for (const Dim& d : node.input(i).shape) most = std::max(most, size_of(d));
  }
  return most;
}

/// `in` and `out`: elements of all inputs and all outputs. first: of input 0.
double estimate(const NodeView& node, Work work, double in, double out) {
  const double first = node.has_input(0) ? volume(node.input(0)) : 1;
  const double pass = kCall + kElement * (in + out * (1 + node.input_count()));
  const auto weights = [&](size_t channels) {  // of one channel, counted along dimension `channels` of input 1
    if (!node.has_input(1)) return in;
    const TensorType& w = node.input(1);
    return volume(w) / (channels < w.shape.size() ? size_of(w.shape[channels]) : 1);
  };
  switch (work) {
    case Work::kPlain:
      return pass;
    case Work::kConstant:
      return kCall;
    case Work::kCopied:
      return kCall + kCopiedElement * (in + out);
    case Work::kSorted:
      return pass + kSortedElement * (in + out);
    case Work::kMatrix:
      return pass + kMultiplyAdd * out * (node.has_input(0) ? last_of(node.input(0)) : 1);
    case Work::kSquare:
      return pass + kMeeting * (in + out) * (node.has_input(0) ? last_of(node.input(0)) : 1);
    case Work::kWindow: {
      const double images = node.has_input(0) && node.input(0).rank() ? size_of(node.input(0).shape[0]) : 1;
      return pass + kMultiplyAdd * out * weights(0) + kMeeting * images * in;
    }
    case Work::kScattered:
      return pass + kMultiplyAdd * first * weights(0) + kMeeting * first * in / std::max(first, 1.0);
    case Work::kPair:
      return pass + kMeeting * in * out;
    case Work::kSquared:
      return pass + kMeeting * in * in;
    case Work::kResize:
      return pass + kMultiplyAdd * first * out * (node.attr_int("antialias") ? longest(node) : 4);
    case Work::kEinsum:
      return pass + kMeeting * combinations(node);
    case Work::kSamples:
      return pass + kMeeting * in * out * 256;
    case Work::kVectorizer:
      return pass + kMeeting * in * in * (1 + static_cast<double>(node.attr_ints("pool_int64s").size()));
  }
  return pass;
}

double elements_of_inputs(const NodeView& node) {
  double in = 0;
  for (int i = 0; i < node.input_count(); ++i) in += node.has_input(i) ? volume(node.input(i)) : 0;
  return in;
}

thread_local AheadBudget* budget_of_this_thread = nullptr;

}  // namespace

double reference_work(const NodeView& node, std::span<const TensorType> outputs) {
  double out = 0;
  bool nothing = !node.op().context;
  for (const TensorType& type : outputs) {
    out += volume(type);
    nothing &= type.elements() == 0;
  }
  if (!nothing) return estimate(node, node.op().work, elements_of_inputs(node), out);
  double indices = 0;  // which are checked all the same
  for (int i = 0; i < node.input_count(); ++i) {
    indices += node.has_input(i) ? static_cast<double>(std::max<int64_t>(node.input(i).elements(), 0)) : 0;
  }
  return kCall + kElement * indices;
}

double rule_work(const NodeView& node) {
  if (!node.op().has(Trait::kRunsToCount)) return 0;
  const double in = elements_of_inputs(node);
  return estimate(node, node.op().work, in, in);
}

AheadBudget::AheadBudget() : outermost_(!budget_of_this_thread) {
  if (outermost_) budget_of_this_thread = this;
}

AheadBudget::~AheadBudget() {
  if (outermost_) budget_of_this_thread = nullptr;
}

bool AheadBudget::spend(double nanoseconds) {
  AheadBudget* budget = budget_of_this_thread;
  const double left = budget ? budget->left_ : kNanoseconds;
  if (!(nanoseconds <= kShare * left)) return false;
  if (budget) budget->left_ -= nanoseconds;
  return true;
}

void AheadBudget::allow_constants(int64_t bytes) {
  if (budget_of_this_thread) budget_of_this_thread->left_ += kPerConstantByte * static_cast<double>(bytes);
}

}  // namespace pinnace
