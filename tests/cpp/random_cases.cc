// Generators of random cases; see random_cases.h.
#include <cmath>

#include "cpp/random_cases.h"

namespace pinnace::testing {

std::string list_of(const Sizes& sizes) {
  std::string s;
  for (size_t i = 0; i < sizes.size(); ++i) s += str_cat(i ? "," : "", sizes[i]);
  return s;
}
std::string tensor(std::string_view dtype, const Sizes& sizes) {
  return str_cat(dtype, "[", list_of(sizes), "]");
}
std::string ints(const Sizes& values) {
  return str_cat("i64{", list_of(values), "}");
}

std::string floats(Draw& d, const Sizes& sizes, int64_t special_once_in) {
  int64_t count = 1;
  for (int64_t n : sizes) count *= n;
  std::string s = tensor("f32", sizes);
  if (count > 300 || count == 0 || !d.once_in(special_once_in)) return s;
  s += "{";
  for (int64_t i = 0; i < count; ++i) {
    constexpr const char* kSpecial[] = {"nan", "inf", "-inf", "0", "-0", "1e30", "1e-40"};
    s += str_cat(i ? "," : "", d.once_in(12) ? std::string(d.of(kSpecial)) : str_cat(d.random.uniform(-3, 3)));
  }
  return s + "}";
}

std::string window(Draw& d, const Sizes& x, bool dilates) {
  Sizes kernel, strides, dilations, before, after;
  for (size_t i = 2; i < x.size(); ++i) {
    const int64_t dilation = dilates && d.once_in(3) ? 2 : 1;
    int64_t k = d.integer(1, 5);
    while ((k - 1) * dilation + 1 > x[i]) --k;
    kernel.push_back(k);
    dilations.push_back(dilation);
    strides.push_back(d.integer(1, 3));
    const int64_t most = (k - 1) * dilation;
    before.push_back(d.once_in(2) ? 0 : d.integer(0, most));
    after.push_back(d.once_in(2) ? 0 : d.integer(0, most));
  }
  before.insert(before.end(), after.begin(), after.end());
  return str_cat("kernel_shape=[", list_of(kernel), "], strides=[", list_of(strides), "], dilations=[",
                 list_of(dilations), "], pads=[", list_of(before), "], ceil_mode=", d.integer(0, 1));
}

std::string moved_type(Draw& d) {
  constexpr const char* kMoved[] = {"f32", "f32", "f32", "f16", "bf16", "u8", "i8", "i32", "i64", "f64", "bool"};
  return d.of(kMoved);
}

namespace {

RandomCase recurrent(Draw& d) {
  constexpr const char* kOps[] = {"gru", "lstm", "rnn"};
  RandomCase c{.op = d.of(kOps), .tolerance = {.abs = 4e-6f, .rel = 4e-6f}};
  const bool lstm = c.op == "lstm", gru = c.op == "gru";
  const int64_t gates = gru ? 3 : lstm ? 4 : 1, D = d.once_in(3) ? 2 : 1, layout = d.integer(0, 1);
  const int64_t T = d.size(12), B = d.once_in(2) ? 1 : d.size(20), I = d.size(30), H = d.size(70);
  const Sizes state = layout ? Sizes{B, D, H} : Sizes{D, B, H};
  const auto optional = [&](bool there, const Sizes& sizes) { return there ? ";" + tensor("f32", sizes) : ";none"; };
  // Weights beyond 1 / sqrt(H) amplify the difference between float and double with every step.
  const std::string scale = H > 20 ? " x0.1" : H > 8 ? " x0.2" : " x0.4";
  c.inputs = floats(d, layout ? Sizes{B, T, I} : Sizes{T, B, I}, 12) + ";" + tensor("f32", {D, gates * H, I}) + scale +
             ";" + tensor("f32", {D, gates * H, H}) + scale;
  c.inputs += optional(d.once_in(2), {D, 2 * gates * H});
  if (d.once_in(3)) {
    Sizes lengths;
    for (int64_t i = 0; i < B; ++i) lengths.push_back(d.integer(0, T));
    c.inputs += ";i32{" + list_of(lengths) + "}";
  } else {
    c.inputs += ";none";
  }
  c.inputs += optional(d.once_in(2), state);
  if (lstm) c.inputs += optional(d.once_in(2), state) + optional(d.once_in(3), {D, 3 * H});
  c.attributes = str_cat("layout=", layout);
  constexpr const char* kOneWay[] = {"forward", "reverse"};
  c.attributes += str_cat(", direction=\"", D == 2 ? "bidirectional" : d.of(kOneWay), "\"");
  if (gru) c.attributes += str_cat(", linear_before_reset=", d.integer(0, 1));
  if (lstm && d.once_in(4)) c.attributes += ", input_forget=1";
  if (d.once_in(5)) c.attributes += ", clip=0.75";
  if (d.once_in(4)) {
    c.attributes += ", activations=[";
    for (int64_t i = 0; i < D * (gru ? 2 : lstm ? 3 : 1); ++i) {
      constexpr const char* kKinds[] = {"tanh", "sigmoid", "relu", "leaky_relu", "hard_sigmoid", "softsign"};
      // What grows without bound, and gates that are no weights, would amplify the difference between float and double.
      constexpr const char *kBounded[] = {"tanh", "sigmoid", "hard_sigmoid"}, *kGates[] = {"sigmoid", "hard_sigmoid"};
      const bool gate = c.op != "rnn" && i % (gru ? 2 : 3) == 0;
      c.attributes += str_cat(i ? "," : "", "\"", gate ? d.of(kGates) : H > 8 ? d.of(kBounded) : d.of(kKinds), "\"");
    }
    c.attributes += "]";
  }
  c.outputs = static_cast<int>(d.integer(1, lstm ? 3 : 2));
  return c;
}

RandomCase resize(Draw& d) {
  RandomCase c{.op = "resize"};
  const int64_t rank = d.once_in(6) ? d.integer(1, 5) : d.integer(3, 4);
  Sizes sizes, out;
  for (int64_t i = 0; i < rank; ++i) sizes.push_back(i + 2 < rank ? d.integer(1, i == 1 ? 20 : 3) : d.size(20));
  out = sizes;
  for (int64_t i = std::max<int64_t>(0, rank == 3 ? 2 : rank - 2); i < rank; ++i) {
    if (!d.once_in(5))
      out[static_cast<size_t>(i)] = d.once_in(3) ? sizes[static_cast<size_t>(i)] * d.integer(1, 4) : d.size(40);
  }
  constexpr const char* kModes[] = {"nearest", "linear", "linear", "cubic"};
  constexpr const char* kCoordinates[] = {"half_pixel", "half_pixel_symmetric", "pytorch_half_pixel", "align_corners",
                                          "asymmetric"};
  constexpr const char* kRoundings[] = {"round_prefer_floor", "round_prefer_ceil", "floor", "ceil"};
  const std::string mode = d.of(kModes);
  c.inputs = floats(d, sizes) + ";none";
  if (d.once_in(3)) {
    c.inputs += str_cat(";f32[", rank, "]{");
    for (int64_t i = 0; i < rank; ++i) {
      c.inputs += str_cat(i ? "," : "", i < rank - 2 || (rank == 3 && i == 1) ? 1.0 : d.integer(1, 12) / 4.0);
    }
    c.inputs += "}";
    for (int64_t i = std::max<int64_t>(0, rank - 2); i < rank; ++i) {  // sizes that a scale of 1/4 would make 0
      if (sizes[static_cast<size_t>(i)] < 4) c.inputs = "";
    }
  }
  if (c.inputs.empty()) c.inputs = floats(d, sizes) + ";none";
  if (c.inputs.ends_with(";none")) c.inputs += ";none;" + ints(out);
  c.attributes = str_cat("mode=\"", mode, "\", coordinate_transformation_mode=\"", d.of(kCoordinates), "\"");
  if (mode == "nearest") c.attributes += str_cat(", nearest_mode=\"", d.of(kRoundings), "\"");
  if (mode != "nearest" && d.once_in(4)) c.attributes += ", antialias=1";
  if (mode != "nearest" && d.once_in(4)) c.attributes += ", exclude_outside=1";
  c.tolerance = {.abs = 1e-6f, .rel = 2e-6f};
  return c;
}

/// conv, gemm and mat_mul, with constant weights in a kernel's own layout and without.
RandomCase product(Draw& d) {
  constexpr const char* kOps[] = {"conv", "conv", "conv", "gemm", "mat_mul", "mat_mul"};
  constexpr const char* kActivations[] = {"", "", "relu", "hard_swish", "sigmoid", "gelu"};
  RandomCase c{.op = d.of(kOps)};
  const auto depth = [&] {
    return d.once_in(12) ? d.integer(1000, 2100) : d.once_in(3) ? 8 * d.integer(1, 20) : d.size();
  };
  if (c.op == "mat_mul") {
    const int64_t K = depth(), N = d.size(70);
    Sizes a = {d.size(30), K};
    if (d.once_in(3)) a.insert(a.begin(), d.integer(1, 3));
    if (d.once_in(6)) a = {K};
    c.inputs = floats(d, a, 12) + ";" + tensor("f32", {K, N});
    if (d.once_in(2)) c.inputs += ";" + tensor("f32", {N});
  } else if (c.op == "gemm") {
    const int64_t K = depth(), N = d.size(70), trans = d.integer(0, 1);
    c.inputs = floats(d, {d.size(30), K}, 12) + ";" + tensor("f32", trans ? Sizes{N, K} : Sizes{K, N});
    if (d.once_in(2)) c.inputs += ";" + tensor("f32", {N});
    c.attributes = str_cat("trans_b=", trans, ", ");
  } else {
    const bool line = d.once_in(6);
    const int64_t groups = d.once_in(4) ? d.integer(2, 4) : 1, in = depth() % 200 / groups + 1,
                  out = d.size(70) / groups + 1;
    Sizes x = {d.integer(1, 2), in * groups, d.size(20), d.size(20)}, w = {out * groups, in, 0, 0};
    if (line) {
      x.pop_back();
      w.pop_back();
    }
    Sizes strides, dilations, before, after;
    for (size_t i = 2; i < x.size(); ++i) {
      const int64_t dilation = d.once_in(4) ? 2 : 1;
      int64_t k = d.once_in(3) ? 1 : d.integer(1, 5);
      while ((k - 1) * dilation + 1 > x[i]) --k;
      w[i] = k;
      dilations.push_back(dilation);
      strides.push_back(d.once_in(3) ? 2 : 1);
      before.push_back(d.once_in(2) ? (k - 1) * dilation / 2 : d.integer(0, 2));
      after.push_back(d.once_in(2) ? (k - 1) * dilation / 2 : d.integer(0, 2));
    }
    before.insert(before.end(), after.begin(), after.end());
    c.inputs = floats(d, x, 12) + ";" + tensor("f32", w);
    if (d.once_in(2)) c.inputs += ";" + tensor("f32", {out * groups});
    c.attributes = str_cat("group=", groups, ", strides=[", list_of(strides), "], dilations=[", list_of(dilations),
                           "], pads=[", list_of(before), "], ");
  }
  c.attributes += str_cat("activation=\"", d.of(kActivations), "\"");
  return c;
}

constexpr const char* kActivations[] = {"", "", "relu", "clip", "hard_swish", "silu", "gelu", "tanh", "leaky_relu"};

std::string activation(Draw& d) {
  const std::string name = d.of(kActivations);
  if (name.empty()) return "";
  const char* params = name == "clip"         ? ", activation_params=[-0.5,2.0]"
                       : name == "leaky_relu" ? ", activation_params=[0.1]"
                                              : "";
  return str_cat(", activation=\"", name, "\"", params);
}

/// So small that sums of k products stay about 1: what is lost in them is then a part of the result, whatever follows.
std::string weights(const Sizes& sizes, int64_t k) {
  return str_cat(tensor("f32", sizes), " x", 1 / std::sqrt(static_cast<double>(std::max<int64_t>(1, k))));
}

/// Dense, grouped and depthwise; some as Winograd takes them, some dilated.
RandomCase convolution(Draw& d) {
  RandomCase c{.op = "conv"};
  const int64_t kind = d.integer(0, 4), rank = d.once_in(4) ? 1 : 2;
  const bool few = kind == 4;  // channels, in each of some groups
  const int64_t groups = kind == 0 ? d.integer(8, 40) : kind == 1 ? d.integer(2, 4) : few ? d.integer(2, 20) : 1;
  const int64_t in = kind == 0      ? 1
                     : few          ? d.of({2, 4, 8, 16, 3, 6})
                     : d.once_in(3) ? d.integer(16, 40)
                                    : d.integer(1, 9);
  const int64_t out = kind == 0 ? 1 : few && !d.once_in(5) ? in : d.once_in(3) ? d.integer(16, 70) : d.integer(1, 9);
  Sizes x = {d.integer(1, 2), groups * in}, w = {groups * out, in}, strides, dilations, before, after;
  const int64_t most = d.of({1, 3, 3, 5, 7}), step = d.once_in(3) ? d.integer(1, 3) : 1;
  const int64_t dilation = d.once_in(3) ? d.integer(2, 3) : 1;
  for (int64_t i = 0; i < rank; ++i) {
    const int64_t k = d.once_in(5) ? d.integer(1, most) : most, span = (k - 1) * dilation + 1;
    x.push_back(d.size(20));
    w.push_back(k);
    strides.push_back(d.once_in(8) ? d.integer(1, 3) : step);
    dilations.push_back(dilation);
    before.push_back(d.once_in(3) ? d.integer(0, span - 1) : span / 2);
    after.push_back(d.once_in(3) ? d.integer(0, span - 1) : span / 2);
    x.back() = std::max(x.back(), span - before.back() - after.back());
  }
  before.insert(before.end(), after.begin(), after.end());
  int64_t taps = in;
  for (size_t i = 2; i < w.size(); ++i) taps *= w[i];
  c.inputs = tensor("f32", x) + ";" + weights(w, taps);
  if (!d.once_in(3)) c.inputs += ";" + tensor("f32", {groups * out});
  c.attributes = str_cat("group=", groups, ", strides=[", list_of(strides), "], dilations=[", list_of(dilations),
                         "], pads=[", list_of(before), "]", activation(d));
  return c;
}

/// [N, C, ...], normalised over what follows the channels.
void channels_normalization(Draw& d, RandomCase& c) {
  const int64_t groups = d.integer(1, 4), channels = c.op == "group_normalization" ? groups * d.size(12) : d.size(40);
  Sizes x = {d.integer(1, 3), channels};
  for (int64_t i = d.once_in(8) ? d.integer(0, 3) : d.integer(1, 2); i > 0; --i) {
    x.push_back(d.once_in(30) ? 0 : d.size(20));
  }
  const std::string each = ";" + tensor("f32", {channels});
  c.inputs = floats(d, x, 12) + each + each;
  if (c.op == "batch_normalization") c.inputs += each + each + " in 0..2";
  c.attributes = str_cat("epsilon=", d.once_in(3) ? "0.1" : "1e-5");
  if (c.op == "group_normalization") c.attributes += str_cat(", num_groups=", groups);
}

/// Dense, grouped and depthwise; phases of the output that no tap reaches, sizes that are asked for.
RandomCase transposed(Draw& d) {
  RandomCase c{.op = "conv_transpose"};
  const int64_t kind = d.integer(0, 3), rank = d.once_in(12) ? 3 : d.once_in(3) ? 1 : 2;
  const int64_t groups = kind == 0 ? d.integer(8, 40) : kind == 1 ? d.integer(2, 6) : 1;
  const int64_t in = kind == 0 ? 1 : d.once_in(3) ? d.integer(16, 40) : d.integer(1, 9);
  const int64_t out = kind == 0 && !d.once_in(5) ? 1 : d.once_in(3) ? d.integer(16, 70) : d.integer(1, 9);
  Sizes x = {d.once_in(25) ? 0 : d.integer(1, 2), groups * in}, w = {groups * in, out};
  Sizes strides, dilations, before, after, adds, wanted;
  const int64_t most = rank == 3 ? 3 : d.of({1, 2, 3, 4, 5}), step = d.integer(1, rank == 3 ? 2 : 3);
  const int64_t dilation = d.once_in(3) ? d.integer(2, 3) : 1;
  int64_t taps = in;
  for (int64_t i = 0; i < rank; ++i) {
    const int64_t k = d.once_in(4) ? d.integer(1, most) : most, stride = d.once_in(6) ? d.integer(1, 5) : step;
    const int64_t span = (k - 1) * dilation + 1;
    x.push_back(rank == 3 ? d.integer(1, 4) : d.size(12));
    w.push_back(k);
    taps *= k;
    strides.push_back(stride);
    dilations.push_back(dilation);
    const int64_t full = (x.back() - 1) * stride + span, most_pads = d.once_in(3) ? full - 1 : (span - 1) / 2;
    before.push_back(d.integer(0, most_pads / 2));
    after.push_back(d.integer(0, most_pads / 2));
    adds.push_back(d.once_in(2) ? 0 : d.integer(0, stride - 1));
    wanted.push_back(d.integer(1, full + stride));
  }
  before.insert(before.end(), after.begin(), after.end());
  c.inputs = (in * taps < 40 ? floats(d, x, 12) : tensor("f32", x)) + ";" + weights(w, taps);
  if (!d.once_in(3)) c.inputs += ";" + tensor("f32", {groups * out});
  c.attributes = str_cat("group=", groups, ", strides=[", list_of(strides), "], dilations=[", list_of(dilations),
                         "], output_padding=[", list_of(adds), "], ");
  if (d.once_in(8)) {
    c.attributes += str_cat("output_shape=[", list_of(wanted), "]");
  } else {
    c.attributes += str_cat("pads=[", list_of(before), "]");
  }
  c.attributes += activation(d);
  return c;
}

RandomCase normalization(Draw& d) {
  constexpr const char* kOps[] = {"layer_normalization",        "rms_normalization",      "batch_normalization",
                                  "group_normalization",        "instance_normalization", "attention",
                                  "mean_variance_normalization"};
  RandomCase c{.op = d.of(kOps)};
  if (c.op == "attention") {
    const int64_t b = d.integer(1, 2), heads = d.integer(1, 3), group = d.once_in(3) ? 2 : 1;
    const bool one = d.once_in(3);  // query, and at times more keys than are taken together
    const int64_t q = one ? 1 : d.size(40), k = one && d.once_in(3) ? d.integer(500, 1600) : d.size(40);
    const int64_t size = d.size(40), value = d.size(40);
    c.inputs = tensor("f32", {b, heads * group, q, size}) + ";" + tensor("f32", {b, heads, k, size}) + ";" +
               tensor("f32", {b, heads, k, value});
    if (d.once_in(2)) {
      const Sizes mask = d.once_in(2) ? Sizes{q, k} : Sizes{b, 1, q, k};
      c.inputs += ";" + (d.once_in(2) ? tensor("bool", mask) : tensor("f32", mask));
    }
    c.attributes = str_cat("is_causal=", d.once_in(3) ? 1 : 0);
    return c;
  }
  if (c.op == "mean_variance_normalization") {
    Sizes x, axes;
    for (int64_t i = d.integer(1, 5); i > 0; --i) x.push_back(d.once_in(40) ? 0 : d.size(20));
    for (int64_t i = 0; i < static_cast<int64_t>(x.size()); ++i) {
      if (x.size() != 4 || d.once_in(2)) axes.push_back(i);
    }
    while (axes.size() > 1 && d.once_in(3)) axes.erase(axes.begin() + d.integer(0, std::ssize(axes) - 1));
    if (axes.empty()) axes = {0};
    c.inputs = d.once_in(6) ? tensor("f32", x) + " in 1234.5..1234.6" : floats(d, x, 12);
    if (x.size() != 4 || d.once_in(2)) c.attributes = str_cat("axes=[", list_of(axes), "]");
    return c;
  }
  c.tolerance = {.rel = 3e-5f};  // of two numbers that are nearly equal, what the mean leaves has few digits
  if (c.op != "layer_normalization" && c.op != "rms_normalization") {
    channels_normalization(d, c);
    return c;
  }
  Sizes x;
  const int64_t rank = d.integer(1, 4);
  for (int64_t i = 0; i < rank; ++i) x.push_back(d.size(80));
  const int64_t axis = d.integer(0, rank - 1);
  const Sizes last(x.begin() + axis, x.end());
  c.inputs = floats(d, x, 12) + ";" + tensor("f32", last);
  if (c.op == "layer_normalization" && d.once_in(2)) c.inputs += ";" + tensor("f32", last);
  c.attributes = str_cat("axis=", axis);
  return c;
}

RandomCase pool(Draw& d) {
  constexpr const char* kOps[] = {"average_pool", "adaptive_average_pool", "global_max_pool", "max_pool",
                                  "global_average_pool"};
  RandomCase c{.op = d.of(kOps)};
  Sizes x = {d.integer(1, 2), d.size(40)};
  for (int64_t i = d.integer(1, d.once_in(8) ? 3 : 2); i > 0; --i) x.push_back(d.size(14));
  c.inputs = floats(d, x);
  if (c.op == "average_pool" || c.op == "max_pool") c.attributes = window(d, x, true);
  if (c.op == "average_pool") c.attributes += str_cat(", count_include_pad=", d.integer(0, 1));
  if (c.op == "adaptive_average_pool") {
    Sizes out;
    for (size_t i = 2; i < x.size(); ++i) out.push_back(d.integer(d.once_in(20) ? 0 : 1, 9));
    c.attributes = str_cat("output_size=[", list_of(out), "]");
  }
  return c;
}

RandomCase reduction(Draw& d) {
  constexpr const char* kOps[] = {"reduce_mean", "reduce_sum",     "reduce_max",         "reduce_min",
                                  "softmax",     "softmax",        "reduce_prod",        "reduce_l1",
                                  "reduce_l2",   "reduce_log_sum", "reduce_sum_square",  "lp_normalization",
                                  "log_softmax", "arg_max",        "reduce_log_sum_exp", "arg_min",
                                  "cum_sum"};
  RandomCase c{.op = d.of(kOps)};
  Sizes x;
  const int64_t rank = d.integer(1, 4);
  for (int64_t i = 0; i < rank; ++i) x.push_back(d.once_in(40) ? 0 : d.size(40) / (rank > 3 ? 2 : 1) + (rank > 3));
  c.inputs = floats(d, x);
  // A logarithm makes much of a sum that cancels to almost 0.
  if (c.op == "reduce_log_sum") c.inputs = tensor("f32", x) + " in 0.1..3";
  const int64_t axis = d.integer(-rank, rank - 1);
  if (c.op == "cum_sum") {
    c.inputs += str_cat(";i64{", axis, "}");
    c.attributes = str_cat("exclusive=", d.integer(0, 1), ", reverse=", d.integer(0, 1));
    return c;
  }
  if (!c.op.starts_with("reduce_")) {
    const bool arg = c.op.starts_with("arg_");
    int64_t& size = x[static_cast<size_t>(axis < 0 ? axis + rank : axis)];
    if (arg && size == 0) {
      size = 1;
      c.inputs = floats(d, x);
    }
    c.attributes = str_cat("axis=", axis);
    if (arg) c.attributes += str_cat(", keepdims=", d.integer(0, 1), ", select_last_index=", d.integer(0, 1));
    if (c.op == "lp_normalization") c.attributes += str_cat(", p=", d.integer(1, 2));
    return c;
  }
  Sizes axes;
  for (int64_t i = 0; i < rank; ++i) {
    if (d.once_in(2)) axes.push_back(d.once_in(2) ? i : i - rank);
  }
  if (rank >= 3 && d.once_in(3)) axes = rank == 3 ? Sizes{2} : Sizes{2, 3};
  if (!d.once_in(6)) c.inputs += ";" + (axes.empty() ? std::string("i64[0]{}") : ints(axes));
  c.attributes = str_cat("keepdims=", d.integer(0, 1));
  return c;
}

RandomCase movement(Draw& d) {
  constexpr const char* kOps[] = {"transpose", "transpose", "concat", "split", "slice",
                                  "pad",       "gather",    "expand", "where", "cast"};
  RandomCase c{.op = d.of(kOps)};
  const std::string dtype = moved_type(d);
  const int64_t rank = d.integer(c.op == "transpose" ? 2 : 1, 4);
  Sizes x;
  for (int64_t i = 0; i < rank; ++i) x.push_back(d.once_in(50) ? 0 : d.size(rank > 2 ? 20 : 80));
  const auto axis = static_cast<size_t>(d.integer(0, rank - 1));
  c.inputs = tensor(dtype, x);
  if (c.op == "transpose") {
    Sizes perm;
    for (int64_t i = 0; i < rank; ++i) perm.insert(perm.begin() + d.integer(0, i), i);
    c.attributes = str_cat("perm=[", list_of(perm), "]");
  } else if (c.op == "concat") {
    for (int64_t i = d.integer(0, 3); i > 0; --i) {
      Sizes more = x;
      more[axis] = d.integer(0, 9);
      c.inputs += ";" + tensor(dtype, more);
    }
    c.attributes = str_cat("axis=", axis);
  } else if (c.op == "split") {
    const int64_t pieces = d.integer(1, 4);
    Sizes sizes(static_cast<size_t>(pieces), 0);
    for (int64_t i = 0; i < x[axis]; ++i) ++sizes[static_cast<size_t>(d.integer(0, pieces - 1))];
    if (d.once_in(2)) c.inputs += ";" + ints(sizes);
    c.attributes = str_cat("axis=", axis);
    c.outputs = static_cast<int>(pieces);
  } else if (c.op == "slice") {
    Sizes starts, ends, axes, steps;
    for (int64_t i = 0; i < rank; ++i) {
      if (d.once_in(3)) continue;
      axes.push_back(i);
      steps.push_back(d.once_in(3) ? d.of({-2, -1, 2, 3}) : 1);
      const int64_t a = d.integer(-3, 12), b = d.once_in(3) ? INT32_MAX : d.integer(-3, 30);
      starts.push_back(steps.back() < 0 ? b : a);
      ends.push_back(steps.back() < 0 ? (d.once_in(2) ? -INT32_MAX : a) : b);
    }
    if (axes.empty()) {
      axes = {0};
      starts = {0};
      ends = {2};
      steps = {1};
    }
    c.inputs += ";" + ints(starts) + ";" + ints(ends) + ";" + ints(axes) + ";" + ints(steps);
  } else if (c.op == "pad") {
    constexpr const char* kModes[] = {"constant", "constant", "edge", "reflect", "wrap"};
    const std::string mode = d.of(kModes);
    Sizes pads;
    for (int64_t i = 0; i < 2 * rank; ++i) {
      const int64_t n = x[static_cast<size_t>(i % rank)];
      pads.push_back(mode == "constant" ? std::max(d.integer(-2, 4), -n / 2)
                     : n > 1            ? d.integer(0, std::min<int64_t>(n - 1, 3))
                                        : 0);
    }
    c.inputs += ";" + ints(pads);
    if (dtype == "f32" && d.once_in(3)) c.inputs += ";f32 2.5";
    c.attributes = str_cat("mode=\"", mode, "\"");
  } else if (c.op == "gather") {
    if (x[axis] == 0) x[axis] = 3;
    c.inputs = tensor(dtype, x);
    Sizes indices;
    for (int64_t i = d.integer(1, 9); i > 0; --i) indices.push_back(d.integer(-x[axis], x[axis] - 1));
    c.inputs += ";" + ints(indices);
    c.attributes = str_cat("axis=", axis);
  } else if (c.op == "expand") {
    Sizes wide = x;
    for (auto& n : x) n = d.once_in(2) ? 1 : n;
    if (d.once_in(3)) x.erase(x.begin());
    c.inputs = (x.empty() ? str_cat(dtype, "[]") : tensor(dtype, x)) + ";" + ints(wide);
  } else if (c.op == "where") {
    const auto some = [&] {
      Sizes s = x;
      for (auto& n : s) n = d.once_in(3) ? 1 : n;
      return s;
    };
    c.inputs = tensor("bool", some()) + ";" + tensor(dtype, some()) + ";" + tensor(dtype, x);
  } else {
    constexpr const char* kTo[] = {"f32", "f16", "bf16", "u8", "i8", "i32", "i64", "bool", "f64"};
    if (dtype == "f32") c.inputs = floats(d, x);
    c.attributes = str_cat("to=\"", d.of(kTo), "\"");
  }
  return c;
}

RandomCase elementwise(Draw& d) {
  constexpr const char* kOps[] = {"add",      "sub",   "mul",   "div",   "pow",  "min",    "max",  "neg",
                                  "abs",      "sqrt",  "erf",   "relu",  "elu",  "log",    "selu", "reciprocal",
                                  "celu",     "mish",  "sign",  "floor", "sin",  "shrink", "ceil", "thresholded_relu",
                                  "softplus", "cos",   "tanh",  "round", "exp",  "gelu",   "silu", "softsign",
                                  "prelu",    "sum",   "tan",   "sinh",  "cosh", "asin",   "acos", "atan",
                                  "asinh",    "acosh", "atanh", "mod",   "pow"};
  RandomCase c{.op = d.of(kOps)};
  const int64_t rank = d.integer(1, 5);
  Sizes y;
  for (int64_t i = 0; i < rank; ++i) y.push_back(d.once_in(50) ? 0 : d.size(rank > 3 ? 10 : 60));
  const auto operand = [&] {
    Sizes s = y;
    for (auto& n : s) n = d.once_in(3) ? 1 : n;
    if (d.once_in(3)) s.erase(s.begin(), s.begin() + d.integer(0, rank - 1));
    return s;
  };
  const std::string_view op = c.op;
  if (op == "prelu") {
    c.inputs = floats(d, y) + ";" + floats(d, operand());
  } else if (op == "add" || op == "sub" || op == "mul" || op == "div" || op == "pow" || op == "mod") {
    c.inputs = floats(d, operand());
    if (op == "pow" && d.once_in(2)) {
      constexpr const char* kPowers[] = {"2", "0.5", "3", "-1", "1", "0", "-0.5", "1.7", "5", "-3", "8", "20"};
      c.inputs += str_cat(";f32 ", d.of(kPowers));
    } else {
      c.inputs += ";" + floats(d, operand());
    }
  } else if (op == "min" || op == "max" || op == "sum") {
    c.inputs = floats(d, operand());
    for (int64_t i = d.integer(0, 3); i > 0; --i) c.inputs += ";" + floats(d, operand());
  } else {
    c.inputs = floats(d, y);
    // Far enough for sines, and for exponentials to end at 0 and infinity.
    if (!c.inputs.ends_with("}") && d.once_in(3)) c.inputs += d.of({" x30", " x1e4"});
    if (op == "elu" || op == "selu" || op == "celu") c.attributes = str_cat("alpha=", d.of({"1.0", "0.3", "2.5"}));
  }
  return c;
}

constexpr RandomFamily kFamilies[] = {{"recurrent", &recurrent},
                                      {"resize", &resize},
                                      {"product", &product},
                                      {"pool", &pool},
                                      {"reduction", &reduction},
                                      {"movement", &movement},
                                      {"elementwise", &elementwise},
                                      {"convolution", &convolution},
                                      {"transposed", &transposed},
                                      {"normalization", &normalization},
                                      {"indexing", &indexing},
                                      {"arrangement", &arrangement},
                                      {"top_k", &top_k},
                                      {"eight_bits", &eight_bits},
                                      {"plain", &plain}};

}  // namespace

std::span<const RandomFamily> random_families() {
  return kFamilies;
}

std::string in_type(const std::string& inputs, const std::string& dtype) {
  std::string out;
  for (size_t i = 0; i < inputs.size(); ++i) {
    if (dtype == "f16" && inputs.compare(i, 4, "1e30") == 0) {
      out += "6e4";
      i += 3;
      continue;
    }
    const bool begins = i == 0 || inputs[i - 1] == ';' || inputs[i - 1] == ' ';
    if (begins && inputs.compare(i, 3, "f32") == 0) {
      out += dtype;
      i += 2;
    } else {
      out += inputs[i];
    }
  }
  return out;
}

}  // namespace pinnace::testing
