// Random cases of operators that move elements: by indices, negative ones and the same twice among them; in fixed
// patterns; and top_k, with equal elements.
#include "cpp/random_cases.h"

namespace pinnace::testing {
namespace {

std::string with_contents(std::string_view dtype, const Sizes& sizes, const Sizes& contents) {
  return tensor(dtype, sizes) + "{" + list_of(contents) + "}";
}
int64_t product(const Sizes& sizes) {
  int64_t n = 1;
  for (int64_t size : sizes) n *= size;
  return n;
}
std::string index_type(Draw& d) {
  return d.once_in(3) ? "i32" : "i64";
}

/// One tuple of indices into the leading sizes after another.
std::string tuples(Draw& d, const Sizes& leading, const Sizes& x, size_t first, size_t k) {
  Sizes sizes = leading, contents;
  sizes.push_back(static_cast<int64_t>(k));
  for (int64_t i = product(leading); i > 0; --i) {
    for (size_t j = 0; j < k; ++j) contents.push_back(d.integer(-x[first + j], x[first + j] - 1));
  }
  return with_contents(index_type(d), sizes, contents);
}

/// Sizes, at times with a 0 where `empty` allows it.
Sizes sizes_of(Draw& d, int64_t rank, bool empty) {
  Sizes x;
  for (int64_t i = 0; i < rank; ++i) x.push_back(empty && d.once_in(40) ? 0 : d.size(rank > 2 ? 12 : 60));
  return x;
}

}  // namespace

RandomCase indexing(Draw& d) {
  constexpr const char* kOps[] = {"gather", "gather_elements", "gather_nd", "scatter_elements", "scatter_nd"};
  RandomCase c{.op = d.of(kOps)};
  const int64_t rank = d.integer(1, 4);
  Sizes x = sizes_of(d, rank, false);
  constexpr const char *kJoins[] = {"add", "mul", "max", "min"}, *kNumbers[] = {"f32", "i64", "i32", "f16"};
  const bool joins = c.op.starts_with("scatter") && d.once_in(2);
  const std::string dtype = joins ? d.of(kNumbers) : moved_type(d);
  c.inputs = dtype == "f32" ? floats(d, x) : tensor(dtype, x);
  if (c.op.starts_with("scatter")) c.attributes = str_cat("reduction=\"", joins ? d.of(kJoins) : "none", "\"");
  const auto axis = static_cast<size_t>(d.integer(0, rank - 1));
  if (c.op == "gather") {
    const Sizes sizes = sizes_of(d, d.integer(0, 2), true);
    Sizes contents;
    for (int64_t i = product(sizes); i > 0; --i) contents.push_back(d.integer(-x[axis], x[axis] - 1));
    c.inputs += ";" + (sizes.empty() ? str_cat(index_type(d), "[]{", contents[0], "}")
                                     : with_contents(index_type(d), sizes, contents));
    c.attributes = str_cat("axis=", axis);
  } else if (c.op == "gather_elements" || c.op == "scatter_elements") {
    Sizes sizes = x, contents;
    for (size_t i = 0; i < sizes.size(); ++i) {
      if (i == axis) {
        sizes[i] = d.once_in(30) ? 0 : d.size(30);
      } else if (d.once_in(3)) {
        sizes[i] = d.integer(1, x[i]);
      }
    }
    for (int64_t i = product(sizes); i > 0; --i) contents.push_back(d.integer(-x[axis], x[axis] - 1));
    c.inputs += ";" + with_contents(index_type(d), sizes, contents);
    if (c.op == "scatter_elements") c.inputs += ";" + (dtype == "f32" ? floats(d, sizes) : tensor(dtype, sizes));
    c.attributes += str_cat(c.attributes.empty() ? "" : ", ",
                            "axis=", d.once_in(2) ? static_cast<int64_t>(axis) : static_cast<int64_t>(axis) - rank);
  } else if (c.op == "gather_nd") {
    const auto batch = static_cast<size_t>(d.once_in(3) ? d.integer(0, rank - 1) : 0);
    const auto k = static_cast<size_t>(d.integer(1, rank - static_cast<int64_t>(batch)));
    Sizes leading(x.begin(), x.begin() + static_cast<ptrdiff_t>(batch));
    const Sizes more = sizes_of(d, d.integer(0, 2), batch == 0);
    leading.insert(leading.end(), more.begin(), more.end());
    c.inputs += ";" + tuples(d, leading, x, batch, k);
    c.attributes = str_cat("batch_dims=", batch);
  } else {
    const auto k = static_cast<size_t>(d.integer(1, rank));
    const Sizes leading = sizes_of(d, d.integer(0, 2), true);
    c.inputs += ";" + tuples(d, leading, x, 0, k);
    Sizes updates = leading;
    updates.insert(updates.end(), x.begin() + static_cast<ptrdiff_t>(k), x.end());
    const std::string text = updates.empty() ? str_cat(dtype, "[]") : tensor(dtype, updates);
    c.inputs += ";" + (dtype == "f32" && !updates.empty() ? floats(d, updates) : text);
  }
  return c;
}

RandomCase arrangement(Draw& d) {
  constexpr const char* kOps[] = {"depth_to_space", "space_to_depth", "tile", "reverse_sequence", "trilu", "one_hot"};
  constexpr const char* kModes[] = {"DCR", "CRD"};
  RandomCase c{.op = d.of(kOps)};
  const std::string dtype = moved_type(d);
  if (c.op == "depth_to_space" || c.op == "space_to_depth") {
    const int64_t b = d.once_in(3) ? d.integer(1, 5) : 2;
    Sizes x = sizes_of(d, 4, true);
    const bool deep = c.op == "depth_to_space";
    if (deep) x[1] = std::min<int64_t>(x[1], 4) * b * b;
    if (!deep) x[2] *= b, x[3] *= b;
    c.inputs = tensor(dtype, x);
    c.attributes = str_cat("blocksize=", b, ", mode=\"", d.of(kModes), "\"");
  } else if (c.op == "tile") {
    const Sizes x = sizes_of(d, d.integer(1, 5), true);
    Sizes repeats;
    for (size_t i = 0; i < x.size(); ++i) repeats.push_back(d.once_in(40) ? 0 : d.once_in(2) ? 1 : d.integer(1, 4));
    c.inputs = tensor(dtype, x) + ";" + ints(repeats);
  } else if (c.op == "reverse_sequence") {
    const Sizes x = sizes_of(d, d.integer(2, 4), true);
    const int64_t rank = static_cast<int64_t>(x.size()), batch = d.integer(0, rank - 1);
    const int64_t time = (batch + d.integer(1, rank - 1)) % rank;
    Sizes lengths;
    for (int64_t i = 0; i < x[static_cast<size_t>(batch)]; ++i) {
      lengths.push_back(d.integer(0, x[static_cast<size_t>(time)]));
    }
    c.inputs = tensor(dtype, x) + ";" + with_contents("i64", {x[static_cast<size_t>(batch)]}, lengths);
    c.attributes = str_cat("batch_axis=", batch, ", time_axis=", time - (d.once_in(2) ? rank : 0));
  } else if (c.op == "trilu") {
    const Sizes x = sizes_of(d, d.integer(2, 4), true);
    c.inputs = tensor(dtype, x);
    if (!d.once_in(3)) c.inputs += str_cat(";i64 ", d.once_in(10) ? d.of({INT64_MIN, INT64_MAX}) : d.integer(-9, 9));
    c.attributes = str_cat("upper=", d.integer(0, 1));
  } else {
    const Sizes x = sizes_of(d, d.integer(1, 3), true);
    const int64_t depth = d.once_in(30) ? 0 : d.size(30), rank = static_cast<int64_t>(x.size());
    Sizes contents;
    for (int64_t i = product(x); i > 0; --i) contents.push_back(d.integer(-depth - 2, depth + 1));
    c.inputs = with_contents(index_type(d), x, contents) + str_cat(";i64 ", depth, ";") +
               (dtype == "bool" ? "bool[2]{false,true}" : dtype + "[2]{3,5}");
    c.attributes = str_cat("axis=", d.integer(-rank - 1, rank));
  }
  return c;
}

RandomCase top_k(Draw& d) {
  RandomCase c{.op = "top_k", .outputs = 2};
  const int64_t rank = d.integer(1, 3);
  Sizes x = sizes_of(d, rank, true);
  const auto axis = static_cast<size_t>(d.integer(0, rank - 1));
  if (d.once_in(4)) x[axis] = d.integer(1, rank > 1 ? 700 : 3000);
  const int64_t count = product(x);
  if (count > 0 && count <= 3000 && d.once_in(3)) {
    // Few different numbers, so that many are equal; 0 and -0 are.
    constexpr const char* kFew[] = {"nan", "inf", "-inf", "0", "-0", "1", "-1", "2"};
    c.inputs = tensor("f32", x) + "{";
    for (int64_t i = 0; i < count; ++i) c.inputs += str_cat(i ? "," : "", d.of(kFew));
    c.inputs += "}";
  } else {
    c.inputs = floats(d, x, 3);
  }
  const int64_t n = x[axis];
  c.inputs += str_cat(";i64{",
                      d.once_in(4)   ? n
                      : d.once_in(2) ? std::min<int64_t>(n, d.integer(0, 9))
                                     : d.integer(0, n),
                      "}");
  c.attributes = str_cat("axis=", d.once_in(2) ? static_cast<int64_t>(axis) : static_cast<int64_t>(axis) - rank,
                         ", largest=", d.integer(0, 1), ", sorted=", d.integer(0, 1));
  return c;
}

}  // namespace pinnace::testing
