// Estimates by class of operator, and the budget of a thread. An operator that is not in the table reads its inputs and
// writes its outputs a fixed number of times. tests/cpp/fold_budget_test.cc times every case of every operator.
#include "ops/work.h"

#include <algorithm>
#include <array>
#include <string_view>

namespace pinnace {
namespace {

/// How the time of an operator grows, beyond one pass over its operands.
enum class Growth : uint8_t {
  kPlain,       ///< a pass
  kConstant,    ///< reads no contents
  kCopied,      ///< a pass that only moves or converts, however many inputs there are
  kSorted,      ///< a pass with a logarithm of the sizes in it, or a transcendental function of many terms
  kMatrix,      ///< y times the last dimension of input 0
  kSquare,      ///< elimination: elements times the last dimension
  kWindow,      ///< every output reads what one output channel has of weights; all weights are read for every image
  kScattered,   ///< every input meets what one input channel has of weights
  kPair,        ///< every output may read every input
  kSquared,     ///< every element of the inputs may meet every other
  kResize,      ///< axes one after another: between them the tensor may be larger than both
  kEinsum,      ///< every combination of the letters
  kSamples,     ///< outputs times the samples of a bin
  kVectorizer,  ///< all pairs of places, for every length of n-grams
};

struct Line {
  std::string_view op;
  Growth growth;
};

constexpr auto kTable = std::to_array<Line>({
    {"adaptive_average_pool", Growth::kPair},
    {"attention", Growth::kPair},
    {"average_pool", Growth::kPair},
    {"bessel_i", Growth::kSorted},
    {"box_with_nms_limit", Growth::kSquared},
    {"cast", Growth::kCopied},
    {"cholesky", Growth::kSquare},
    {"compress", Growth::kCopied},
    {"concat", Growth::kCopied},
    {"conv", Growth::kWindow},
    {"conv_integer", Growth::kWindow},
    {"conv_transpose", Growth::kScattered},
    {"deform_conv", Growth::kPair},
    {"depth_to_space", Growth::kCopied},
    {"det", Growth::kSquare},
    {"detection_postprocessing", Growth::kSquared},
    {"dft", Growth::kSorted},
    {"digamma", Growth::kSorted},
    {"einsum", Growth::kEinsum},
    {"erf_inv", Growth::kSorted},
    {"expand", Growth::kCopied},
    {"flatten", Growth::kCopied},
    {"gather", Growth::kCopied},
    {"gemm", Growth::kPair},
    {"generate_proposals", Growth::kSquared},
    {"grid_sample", Growth::kSorted},
    {"gru", Growth::kSquared},
    {"heatmap_max_keypoint", Growth::kSquared},
    {"identity", Growth::kCopied},
    {"linear_attention", Growth::kPair},
    {"log_gamma", Growth::kSorted},
    {"lp_pool", Growth::kPair},
    {"lrn", Growth::kPair},
    {"lsh_projection", Growth::kSquared},
    {"lstm", Growth::kSquared},
    {"mat_mul", Growth::kMatrix},
    {"mat_mul_integer", Growth::kMatrix},
    {"max_pool", Growth::kPair},
    {"max_roi_pool", Growth::kPair},
    {"non_max_suppression", Growth::kSquared},
    {"pad", Growth::kCopied},
    {"quantized_lstm", Growth::kSquared},
    {"quantized_lstm_u8", Growth::kSquared},
    {"random_multinomial", Growth::kSorted},
    {"reshape", Growth::kCopied},
    {"resize", Growth::kResize},
    {"rnn", Growth::kSquared},
    {"roi_align", Growth::kSamples},
    {"search_sorted", Growth::kSorted},
    {"shape", Growth::kConstant},
    {"size", Growth::kConstant},
    {"slice", Growth::kCopied},
    {"solve", Growth::kSquare},
    {"space_to_depth", Growth::kCopied},
    {"split", Growth::kCopied},
    {"squeeze", Growth::kCopied},
    {"stft", Growth::kSorted},
    {"tf_idf_vectorizer", Growth::kVectorizer},
    {"tile", Growth::kCopied},
    {"top_k", Growth::kSorted},
    {"transpose", Growth::kCopied},
    {"unique", Growth::kSorted},
    {"unsqueeze", Growth::kCopied},
    {"zeta", Growth::kSorted},
});

Growth growth_of(const OpDef& op) {
  if (op.context) return Growth::kPlain;  // the application's own
  const auto* at = std::lower_bound(kTable.begin(), kTable.end(), op.name,
                                    [](const Line& line, std::string_view name) { return line.op < name; });
  return at != kTable.end() && at->op == op.name ? at->growth : Growth::kPlain;
}
static_assert(std::is_sorted(kTable.begin(), kTable.end(), [](const Line& a, const Line& b) { return a.op < b.op; }));

constexpr double kCall = 500;         // ns of a node, whatever its size
constexpr double kElement = 4;        // ns of reading or writing an element in one pass, and of a function of it
constexpr double kCopiedElement = 2;  // where it is only moved
constexpr double kSortedElement = 400;
constexpr double kProduct = 2;   // ns of a multiplication and addition
constexpr double kMeeting = 10;  // ns of two elements that meet outside of a matrix product

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
double estimate(const NodeView& node, Growth growth, double in, double out) {
  const double first = node.has_input(0) ? volume(node.input(0)) : 1;
  const double pass = kCall + kElement * (in + out * (1 + node.input_count()));
  const auto weights = [&](size_t channels) {  // of one channel, counted along dimension `channels` of input 1
    if (!node.has_input(1)) return in;
    const TensorType& w = node.input(1);
    return volume(w) / (channels < w.shape.size() ? size_of(w.shape[channels]) : 1);
  };
  switch (growth) {
    case Growth::kPlain:
      return pass;
    case Growth::kConstant:
      return kCall;
    case Growth::kCopied:
      return kCall + kCopiedElement * (in + out);
    case Growth::kSorted:
      return pass + kSortedElement * (in + out);
    case Growth::kMatrix:
      return pass + kProduct * out * (node.has_input(0) ? last_of(node.input(0)) : 1);
    case Growth::kSquare:
      return pass + kMeeting * (in + out) * (node.has_input(0) ? last_of(node.input(0)) : 1);
    case Growth::kWindow: {
      const double images = node.has_input(0) && node.input(0).rank() ? size_of(node.input(0).shape[0]) : 1;
      return pass + kProduct * out * weights(0) + kMeeting * images * in;
    }
    case Growth::kScattered:
      return pass + kProduct * first * weights(0) + kMeeting * first * in / std::max(first, 1.0);
    case Growth::kPair:
      return pass + kMeeting * in * out;
    case Growth::kSquared:
      return pass + kMeeting * in * in;
    case Growth::kResize:
      return pass + kProduct * first * out * (node.attr_int("antialias") ? longest(node) : 4);
    case Growth::kEinsum:
      return pass + kMeeting * combinations(node);
    case Growth::kSamples:
      return pass + kMeeting * in * out * 256;
    case Growth::kVectorizer:
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
  if (!nothing) return estimate(node, growth_of(node.op()), elements_of_inputs(node), out);
  double indices = 0;  // which are checked all the same
  for (int i = 0; i < node.input_count(); ++i) {
    indices += node.has_input(i) ? static_cast<double>(std::max<int64_t>(node.input(i).elements(), 0)) : 0;
  }
  return kCall + kElement * indices;
}

double rule_work(const NodeView& node) {
  static constexpr auto kRunToCount = std::to_array<std::string_view>(
      {"box_with_nms_limit", "compress", "generate_proposals", "non_max_suppression", "non_zero", "unique"});
  if (node.op().context || std::find(kRunToCount.begin(), kRunToCount.end(), node.op().name) == kRunToCount.end()) {
    return 0;
  }
  const double in = elements_of_inputs(node);
  return estimate(node, growth_of(node.op()), in, in);
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
