// tf_idf_vectorizer: how often each n-gram of a list occurs in x, weighted.
//   x                [C] or [N, C]  i32 | i64; [] counts as [1]
//   pool_int64s      ints, required: the n-grams, those of one element first, then those of two, ...
//   ngram_counts     ints, required: where in the pool the n-grams of 1, 2, ... elements begin
//   ngram_indexes    ints, required: the column of each n-gram of the pool
//   weights          floats: a weight per n-gram, as many as ngram_indexes; empty: 1
//   mode             string, required: "TF": counts; "IDF": the weight where the count is not 0; "TFIDF": count times
//                    weight
//   min_gram_length, max_gram_length   ints, required: the n that count
//   max_skip_count   int, required: elements of an n-gram are 1, 2, ... up to max_skip_count + 1 places of x apart, all
//                    equally far; single elements count once
//   y                [columns] or [N, columns]  f32, columns = largest of ngram_indexes + 1
// What has one column is added. An n-gram that the pool has twice counts for its last place. Source: ONNX
// TfIdfVectorizer, opset 9, without strings.
#include <algorithm>
#include <vector>

#include "base/cancel.h"
#include "ops/move.h"

namespace pinnace {
namespace {
using Ints = std::span<const int64_t>;

/// The n-grams of one length, sorted, each with its number in the pool.
struct Grams {
  int64_t length = 0;
  std::vector<std::pair<Ints, int64_t>> sorted;
};

/// The lists of lengths that count; checks that the attributes fit each other.
Result<std::vector<Grams>> read_pool(const NodeView& node) {
  const Ints pool = node.attr_ints("pool_int64s"), begins = node.attr_ints("ngram_counts");
  const Ints columns = node.attr_ints("ngram_indexes");
  const int64_t least = node.attr_int("min_gram_length"), most = node.attr_int("max_gram_length");
  if (least < 1 || most < least) return node.error("lengths of n-grams from ", least, " to ", most);
  std::vector<Grams> all;
  int64_t number = 0;
  for (size_t i = 0; i < begins.size(); ++i) {
    const auto length = static_cast<int64_t>(i) + 1;
    const auto end = i + 1 < begins.size() ? begins[i + 1] : static_cast<int64_t>(pool.size());
    if (begins[i] < 0 || end < begins[i] || end > static_cast<int64_t>(pool.size())) {
      return node.error("ngram_counts ", begins[i], " to ", end, " is no part of the pool, which has ", pool.size());
    }
    if ((end - begins[i]) % length) {
      return node.error(end - begins[i], " elements of the pool do not divide into n-grams of ", length);
    }
    Grams grams{length, {}};
    for (int64_t at = begins[i]; at < end; at += length, ++number) {
      if (number >= static_cast<int64_t>(columns.size())) {
        return node.error("the pool has more n-grams than ngram_indexes, which has ", columns.size());
      }
      if (length < least || length > most) continue;
      grams.sorted.emplace_back(pool.subspan(static_cast<size_t>(at), static_cast<size_t>(length)), number);
    }
    std::sort(grams.sorted.begin(), grams.sorted.end(), [](const auto& a, const auto& b) {
      const auto order =
          std::lexicographical_compare_three_way(a.first.begin(), a.first.end(), b.first.begin(), b.first.end());
      return order != 0 ? order < 0 : a.second < b.second;
    });
    if (!grams.sorted.empty()) all.push_back(std::move(grams));
  }
  return all;
}

Result<TensorType> tf_idf_vectorizer_type(const NodeView& node) {
  const TensorType& x = node.input(0);
  const std::string_view mode = node.attr_string("mode");
  if (mode != "TF" && mode != "IDF" && mode != "TFIDF")
    return node.error("mode is '", mode, "', must be TF, IDF or TFIDF");
  if (x.rank() > 2) return node.error("x must be [C] or [N,C], is ", x);
  PINNACE_TRY(read_pool(node).status());
  const Ints columns = node.attr_ints("ngram_indexes");
  int64_t last = -1;
  for (int64_t column : columns) {
    if (column < 0 || column >= INT32_MAX) return node.error("column ", column, " in ngram_indexes");
    last = std::max(last, column);
  }
  if (last < 0) return node.error("ngram_indexes is empty");
  const size_t weights = node.attr_floats("weights").size();
  if (weights && weights != columns.size()) return node.error(weights, " weights for ", columns.size(), " n-grams");
  if (node.attr_int("max_skip_count") < 0) return node.error("max_skip_count is negative");
  TensorType y{DType::kF32, {last + 1}, nullptr};
  if (x.rank() == 2) y.shape.insert(y.shape.begin(), x.shape[0]);
  return y;
}

/// The number of the n-gram that begins at element `first` of x with elements `apart`, or -1.
int64_t find(const Grams& grams, const TensorView& x, int64_t first, int64_t apart) {
  const auto compare = [&](const Ints& gram) {  // < 0: the n-gram comes before what x has
    for (int64_t i = 0; i < grams.length; ++i) {
      const int64_t element = load_index(x, first + i * apart), own = gram[static_cast<size_t>(i)];
      if (own != element) return own < element ? -1 : 1;
    }
    return 0;
  };
  const auto after = std::partition_point(grams.sorted.begin(), grams.sorted.end(),
                                          [&](const auto& entry) { return compare(entry.first) <= 0; });
  return after != grams.sorted.begin() && compare((after - 1)->first) == 0 ? (after - 1)->second : -1;
}

Status tf_idf_vectorizer_reference(const NodeView& node, std::span<const TensorView> in,
                                   std::span<const TensorView> out) {
  const TensorView x = in[0], y = out[0];
  PINNACE_ASSIGN(const std::vector<Grams> pool, read_pool(node));
  const Ints columns = node.attr_ints("ngram_indexes");
  const auto weights = node.attr_floats("weights");
  const bool counts = node.attr_string("mode") != "IDF",
             weighted = node.attr_string("mode") != "TF" && !weights.empty();
  const int64_t size = y.dim(-1), rows = x.type->rank() == 2 ? x.dim(0) : 1;
  const int64_t length = x.type->rank() ? x.dim(-1) : 1;
  const int64_t farthest = std::min(node.attr_int("max_skip_count"), length) + 1;
  const auto entries = static_cast<int64_t>(columns.size());
  PINNACE_ASSIGN(auto found, Scratch<double>::allocate(entries, node.label()));
  PINNACE_ASSIGN(auto sums, Scratch<double>::allocate(size, node.label()));
  for (int64_t row = 0; row < rows; ++row) {
    std::fill_n(found.data(), entries, 0.0);
    std::fill_n(sums.data(), size, 0.0);
    for (const Grams& grams : pool) {
      for (int64_t apart = 1; apart <= (grams.length == 1 ? 1 : farthest) && !loop_stops(); ++apart) {
        for (int64_t first = 0; first + (grams.length - 1) * apart < length; ++first) {
          const int64_t number = find(grams, x, row * length + first, apart);
          if (number >= 0) ++found.data()[number];
        }
      }
    }
    for (size_t i = 0; i < columns.size(); ++i) {
      const double count = counts ? found.data()[i] : std::min(found.data()[i], 1.0);
      sums.data()[columns[i]] += weighted ? count * weights[i] : count;
    }
    for (int64_t i = 0; i < size; ++i) y.data<float>()[row * size + i] = static_cast<float>(sums.data()[i]);
  }
  return {};
}
}  // namespace

PINNACE_OP(tf_idf_vectorizer){
    .name = "tf_idf_vectorizer",
    .inputs = {{"x", kIndices}},
    .attrs = {required_attr("max_gram_length", AttrKind::kInt), required_attr("max_skip_count", AttrKind::kInt),
              required_attr("min_gram_length", AttrKind::kInt), required_attr("mode", AttrKind::kString),
              required_attr("ngram_counts", AttrKind::kInts), required_attr("ngram_indexes", AttrKind::kInts),
              required_attr("pool_int64s", AttrKind::kInts), floats_attr("weights")},
    .type = tf_idf_vectorizer_type,
    .reference = tf_idf_vectorizer_reference,
    .work = Work::kVectorizer,
};
}  // namespace pinnace
