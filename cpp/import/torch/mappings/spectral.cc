// Fourier transforms: torch.fft, stft and istft, whole and as torch decomposes them; windows. Complex tensors are
// pairs, which is the form of our dft and stft.
#include <algorithm>
#include <cmath>

#include "import/torch/mapping.h"

namespace pinnace::torch_import {
namespace {

constexpr int64_t kNone = 0, kByRoot = 1, kByN = 2;  // PyTorch's norm modes

/// x times 1, 1 / sqrt(n) or 1 / n; or, undoing the 1 / n of our inverse transform, times n, sqrt(n) or 1.
ValueId scaled(Call& c, ValueId x, const Scalar& n, int64_t mode, bool inverse) {
  if (mode == (inverse ? kByN : kNone)) return x;
  if (n.known) {
    const auto count = static_cast<double>(n.integer);
    const double factor = mode == kByRoot ? std::sqrt(count) : count;
    return c.paired_like(x, c.add("mul", {x, c.constant(inverse ? factor : 1 / factor, c.dtype_of(x))}));
  }
  ValueId factor = c.cast(c.reshape(n.value, std::vector<int64_t>{}), c.dtype_of(x));
  if (mode == kByRoot) factor = c.add("sqrt", {factor});
  return c.paired_like(x, c.add(inverse ? "mul" : "div", {x, factor}));
}

/// Which of the two kinds of numbers goes in and comes out.
enum class Kind : uint8_t { kComplex, kRealIn, kRealOut };

/// One or several axes; `lengths` empty: the sizes there are. A real x may go into a complex transform. The last axis
/// is the one that is halved.
ValueId transform(Call& c, ValueId x, std::vector<int64_t> axes, std::vector<Scalar> lengths, Kind kind, bool inverse,
                  int64_t mode, bool halved = true) {
  if (!c.ok()) return kNoValue;
  for (int64_t& axis : axes) axis += axis < 0 ? c.rank(x) : 0;
  const int64_t last = static_cast<int64_t>(axes.size()) - 1;
  Scalar count = Scalar::of_int(1);
  if (lengths.empty()) {
    for (int64_t i = 0; i <= last; ++i) {
      const Scalar size = c.size_of(x, axes[static_cast<size_t>(i)]);
      const bool half = kind == Kind::kRealOut && i == last;
      lengths.push_back(half ? c.multiply_sizes(c.add_sizes(size, Scalar::of_int(-1)), Scalar::of_int(2)) : size);
    }
  }
  for (const Scalar& length : lengths) {
    if (length.known && length.integer < 1) c.fail("a Fourier transform of this length", str_cat(length.integer));
    count = c.multiply_sizes(count, length);
  }
  if (!c.is_pair(x)) {
    x = c.unsqueeze(x, {c.rank(x)});  // a last dimension of 1 is a real tensor to dft
    c.mark_pair(x);
  }
  const auto one = [&](int64_t i, bool onesided) {
    const Scalar& n = lengths[static_cast<size_t>(i)];
    const ValueId length = n.known ? c.constant_int(n.integer) : c.reshape(n.value, std::vector<int64_t>{});
    x = c.add("dft", {x, length, c.constant_int(axes[static_cast<size_t>(i)])},
              {{"inverse", inverse ? 1 : 0}, {"onesided", onesided ? 1 : 0}});
    c.mark_pair(x);
  };
  // Real numbers go into the halved axis first, and come out of it last.
  if (kind == Kind::kRealIn) one(last, halved && !inverse);
  for (int64_t i = 0; i < last; ++i) one(i, false);
  if (kind == Kind::kComplex && last >= 0) one(last, false);
  if (kind == Kind::kRealOut) one(last, true);
  if (kind == Kind::kRealOut) x = c.add("squeeze", {x, c.constant_ints({c.rank(x)})});
  return scaled(c, x, count, mode, inverse);
}

void map_r2c(Call& c) {
  const ValueId x = c.tensor("self");
  c.output(transform(c, x, c.ints("dim"), {}, Kind::kRealIn, false, c.integer("normalization"),
                     c.boolean("onesided", true)));
}

void map_c2c(Call& c) {
  const ValueId x = c.tensor("self");
  const bool inverse = !c.boolean("forward", true);
  c.output(transform(c, x, c.ints("dim"), {}, Kind::kComplex, inverse, c.integer("normalization")));
}

void map_c2r(Call& c) {
  const ValueId x = c.tensor("self");
  const std::vector<int64_t> axes = c.ints("dim");
  std::vector<Scalar> lengths;
  for (int64_t axis : axes) lengths.push_back(c.size_of(x, axis));
  if (lengths.empty()) return c.fail("a transform along no axis");
  lengths.back() = c.scalar("last_dim_size");
  c.output(transform(c, x, axes, lengths, Kind::kRealOut, true, c.integer("normalization")));
}

/// "forward", "backward" and "ortho" as a mode.
int64_t mode_of(Call& c, bool inverse) {
  const std::string norm = c.string("norm", "backward");
  if (norm == "ortho") return kByRoot;
  if (norm != "forward" && norm != "backward") c.fail("norm", norm);
  return (norm == "forward") != inverse ? kByN : kNone;
}

// The parameter: c complex to complex, r real input, i inverse to real output, h real output of half a real signal's
// transform and its inverse (H); then 1, 2 or n axes.
void map_fft(Call& c) {
  const char kind = c.parameter()[0], form = c.parameter()[1];
  const bool inverse = kind == 'C' || kind == 'i' || kind == 'H';
  ValueId x = c.tensor("self");
  const int rank = c.rank(x);
  const DType dtype = c.out_dtype();
  x = c.cast(x, dtype);
  std::vector<int64_t> axes;
  std::vector<Scalar> lengths;
  if (form == '1') {
    axes = {c.axis("dim", rank, -1)};
    if (c.given("n")) lengths = {c.scalar("n")};
  } else {
    lengths = c.sizes("s");
    if (c.given("dim")) {
      axes = c.ints("dim");
    } else if (form == '2') {
      axes = {-2, -1};
    } else {
      const int64_t count = c.given("s") ? static_cast<int64_t>(lengths.size()) : rank;
      for (int64_t i = rank - count; i < rank; ++i) axes.push_back(i);
    }
    for (int64_t& axis : axes) {
      if (axis < 0) axis += rank;
      if (axis < 0 || axis >= rank) return c.fail("dim is outside the rank", str_cat(axis));
    }
  }
  const bool real_out = kind == 'i' || kind == 'h';
  if (!lengths.empty() && lengths.size() != axes.size()) return c.fail("s and dim of different lengths");
  for (size_t i = 0; i < lengths.size(); ++i) {
    if (!lengths[i].is(-1)) continue;  // the size there is
    lengths[i] = c.size_of(x, axes[i]);
    if (real_out && i + 1 == lengths.size())
      lengths[i] = c.multiply_sizes(c.add_sizes(lengths[i], Scalar::of_int(-1)), Scalar::of_int(2));
  }
  const int64_t mode = mode_of(c, inverse);
  if (axes.empty()) return c.fail("a transform along no axis");
  switch (kind) {
    case 'c':
    case 'C':
      return c.output(transform(c, x, axes, lengths, Kind::kComplex, inverse, mode));
    case 'r':
      return c.output(transform(c, x, axes, lengths, Kind::kRealIn, false, mode));
    case 'i':
      return c.output(transform(c, x, axes, lengths, Kind::kRealOut, true, mode));
    case 'h':  // forwards as the inverse of the conjugate
      return c.output(transform(c, c.is_pair(x) ? conjugate(c, x) : x, axes, lengths, Kind::kRealOut, true, mode));
    default:  // inverse as the conjugate of the forward transform
      return c.output(conjugate(c, transform(c, x, axes, lengths, Kind::kRealIn, false, mode)));
  }
}

// fftshift, ifftshift: the first half changes places with the second
void map_shift(Call& c) {
  ValueId x = c.tensor("self");
  const std::vector<int64_t> axes = c.axes("dim", c.rank(x));
  for (int64_t axis : axes) {
    const Dim size = c.dim(x, axis);
    if (!size.known()) return c.fail("a shift of a symbolic dimension");
    const int64_t cut = c.parameter() == "back" ? size.size / 2 : (size.size + 1) / 2;
    if (size.size < 2) continue;
    x = c.concat({c.slice(x, axis, Scalar::of_int(cut), Scalar::of_int(INT64_MAX)),
                  c.slice(x, axis, Scalar::of_int(0), Scalar::of_int(cut))},
                 axis);
  }
  c.output(x);
}

struct Frames {
  int64_t length, step;
  ValueId window;  // [length], or kNoValue
};

/// n_fft, hop_length and the window, with zeros on both sides where it is shorter than a frame.
Frames frames_of(Call& c, DType dtype) {
  Frames f{c.integer("n_fft"), 0, c.optional_tensor("window")};
  f.step = c.integer("hop_length", f.length / 4);
  const int64_t width = c.integer("win_length", f.length);
  if (!c.ok()) return f;
  if (f.length < 1 || f.step < 1 || width < 1 || width > f.length || f.length > (1 << 24)) {
    c.fail("frames of this size", str_cat(f.length, " with hop ", f.step, " and window ", width));
    return f;
  }
  if (c.is_pair(f.window)) c.fail("a complex window");
  if (f.window == kNoValue && width < f.length) {
    f.window = c.full({Scalar::of_int(width)}, c.constant(1, dtype));
  }
  if (f.window == kNoValue) return f;
  f.window = c.cast(f.window, dtype);
  const int64_t before = (f.length - width) / 2, behind = f.length - width - before;
  if (width < f.length) f.window = c.add("pad", {f.window, c.constant_ints({before, behind}), c.constant(0, dtype)});
  return f;
}

void map_stft(Call& c) {
  ValueId x = c.tensor("self");
  const DType dtype = c.out_dtype();
  const Frames f = frames_of(c, dtype);
  const bool normalized = c.boolean("normalized", false), onesided = c.boolean("onesided", !c.is_pair(x));
  c.ignore({"return_complex"});  // the result's type says it
  c.refuse_true("align_to_window", "frames aligned to the window");
  if (!c.ok()) return;
  if (onesided && c.is_pair(x)) return c.fail("one side of the transform of a complex signal");
  if (c.rank(x) != 1 && c.rank(x) != 2) return c.fail("a signal of this rank", str_cat(c.rank(x)));
  const bool single = c.rank(x) == 1;
  if (single) x = c.unsqueeze(x, {0});
  if (c.overload() == "center" && c.boolean("center", true)) {
    const std::string mode = c.string("pad_mode", "reflect");
    if (mode != "reflect" && mode != "constant" && mode != "replicate") return c.fail("padding mode", mode);
    std::vector<int64_t> pads = {0, f.length / 2};
    if (c.is_pair(x)) pads.push_back(0);
    pads.insert(pads.end(), pads.begin(), pads.end());
    x = c.paired_like(x, c.add("pad", {x, c.constant_ints(pads)}, {{"mode", mode == "replicate" ? "edge" : mode}}));
  }
  c.ignore({"center", "pad_mode"});
  const Dim length = c.dim(x, 1);
  if (length.known() && length.size < f.length) return c.fail("a signal that is shorter than a frame");
  ValueId y = c.add("stft", {x, c.constant_int(f.step), f.window, c.constant_int(f.length)},
                    {{"onesided", onesided ? 1 : 0}});  // [B, frames, bins, 2]
  c.mark_pair(y);
  y = c.swap(y, 1, 2);
  if (normalized) y = scaled(c, y, Scalar::of_int(f.length), kByRoot, false);
  c.output(single ? c.squeeze(y, {0}) : y);
}

/// Frames [B, n, T] laid over each other at their places: [B, length].
ValueId overlapped(Call& c, ValueId frames, const Frames& f, const Scalar& length) {
  const ValueId image = c.size_values({Scalar::of_int(1), length});
  const ValueId y =
      c.add("col2im", {frames, image, c.constant_ints({1, f.length})}, {{"strides", std::vector<int64_t>{1, f.step}}});
  return c.squeeze(y, {1, 2});
}

// The frames back from their transforms, times the window, added up; divided by the same sum of squared windows.
void map_istft(Call& c) {
  ValueId z = c.tensor("self");
  const DType dtype = c.out_dtype();
  const Frames f = frames_of(c, dtype);
  const bool center = c.boolean("center", true), normalized = c.boolean("normalized", false);
  c.refuse_true("return_complex", "istft with a complex result");
  if (!c.ok()) return;
  const int rank = c.rank(z);
  if (!c.is_pair(z) || (rank != 2 && rank != 3)) return c.fail("a spectrogram of this form", to_string(c.type(z)));
  const Dim bins = c.dim(z, rank - 2);
  if (!bins.known()) return c.fail("a symbolic number of frequencies");
  const bool onesided = c.boolean("onesided", bins.size != f.length);
  if (bins.size != (onesided ? f.length / 2 + 1 : f.length))
    return c.fail("this number of frequencies", str_cat(bins.size));
  if (rank == 2) z = c.unsqueeze(z, {0});
  z = c.slice(z, 1, Scalar::of_int(0), Scalar::of_int(f.length / 2 + 1));  // the other half is taken for its mirror
  ValueId frames = transform(c, z, {1}, {Scalar::of_int(f.length)}, Kind::kRealOut, true,
                             normalized ? kByRoot : kByN);  // [B, n, T]
  const Scalar count = c.size_of(frames, 2);
  const Scalar length = c.add_sizes(c.multiply_sizes(c.add_sizes(count, Scalar::of_int(-1)), Scalar::of_int(f.step)),
                                    Scalar::of_int(f.length));
  ValueId window = f.window == kNoValue ? c.constant(1, dtype, {1}) : f.window;
  window = c.reshape(window, std::vector<int64_t>{1, -1, 1});
  frames = c.add("mul", {frames, window});
  const ValueId squares =
      c.expand(c.add("mul", {window, window}), {Scalar::of_int(1), Scalar::of_int(f.length), count});
  const int64_t skip = center ? f.length / 2 : 0;
  const bool cut = c.given("length");
  const Scalar start = Scalar::of_int(skip), wanted = cut ? c.scalar("length") : Scalar{};
  const Scalar end = cut      ? c.add_sizes(start, wanted)
                     : center ? c.add_sizes(length, Scalar::of_int(-skip))
                              : Scalar::of_int(INT64_MAX);
  const auto middle = [&](ValueId id) { return c.slice(overlapped(c, id, f, length), 1, start, end); };
  ValueId y = c.add("div", {middle(frames), middle(squares)});
  if (cut) {  // behind the last frame there is silence
    const Scalar have = c.add_sizes(length, Scalar::of_int(-skip));
    Scalar missing = c.add_sizes(wanted, c.multiply_sizes(have, Scalar::of_int(-1)));
    if (!missing.known) {
      missing = Scalar::of_value(Scalar::Kind::kInt, c.add("max", {missing.value, c.constant_ints({0})}));
    }
    if (!missing.known || missing.integer > 0) {
      const Scalar none = Scalar::of_int(0);
      y = c.add("pad", {y, c.size_values({none, none, none, missing}), c.constant(0, dtype)});
    }
  }
  c.output(rank == 2 ? c.squeeze(y, {0}) : y);
}

/// The modified Bessel function of the first kind and order 0.
double bessel_i0(double x) {
  double sum = 1, term = 1;
  for (int k = 1; k < 500 && term > sum * 1e-17; ++k) {
    term *= x / (2 * k) * (x / (2 * k));
    sum += term;
  }
  return sum;
}

// Windows are constants, computed in double. A periodic one is a symmetric one of one more element, without its last.
void map_window(Call& c) {
  c.ignore({"dtype", "layout", "device", "pin_memory"});
  const DType dtype = c.out_dtype();
  const int64_t count = c.integer("window_length");
  const bool periodic = c.boolean("periodic", true);
  const std::string_view form = c.parameter();
  const double alpha = form == "hamming" ? c.number("alpha", 0.54) : 0.5;
  const double beta = form == "hamming" ? c.number("beta", 0.46) : form == "kaiser" ? c.number("beta", 12) : 0.5;
  if (count < 0 || count > (1 << 22)) return c.fail("a window of this length", str_cat(count));
  if (count == 0) return c.output(c.constant_floats({}, {0}));
  const double last = static_cast<double>(periodic ? count : count - 1);
  std::vector<float> values;
  for (int64_t i = 0; i < count; ++i) {
    const double t = last > 0 ? static_cast<double>(i) / last : 0.5, angle = 2 * M_PI * t;
    double w = alpha - beta * std::cos(angle);
    if (form == "blackman") w = 0.42 - 0.5 * std::cos(angle) + 0.08 * std::cos(2 * angle);
    if (form == "bartlett") w = 1 - std::fabs(2 * t - 1);
    if (form == "kaiser")
      w = bessel_i0(beta * std::sqrt(std::max(0.0, 1 - (2 * t - 1) * (2 * t - 1)))) / bessel_i0(beta);
    values.push_back(static_cast<float>(count == 1 ? 1 : w));
  }
  if (dtype == DType::kF64) return c.fail("a window in float64");
  c.output(c.cast(c.constant_floats(values, {count}), dtype));
}

constexpr Mapping kTransforms[] = {
    {"aten._fft_c2c", map_c2c, ""},       {"aten._fft_c2r", map_c2r, ""},
    {"aten._fft_r2c", map_r2c, ""},       {"aten.fft_fft", map_fft, "c1"},
    {"aten.fft_fft2", map_fft, "c2"},     {"aten.fft_fftn", map_fft, "cn"},
    {"aten.fft_fftshift", map_shift, ""}, {"aten.fft_hfft", map_fft, "h1"},
    {"aten.fft_hfft2", map_fft, "h2"},    {"aten.fft_hfftn", map_fft, "hn"},
    {"aten.fft_ifft", map_fft, "C1"},     {"aten.fft_ifft2", map_fft, "C2"},
    {"aten.fft_ifftn", map_fft, "Cn"},    {"aten.fft_ifftshift", map_shift, "back"},
    {"aten.fft_ihfft", map_fft, "H1"},    {"aten.fft_ihfft2", map_fft, "H2"},
    {"aten.fft_ihfftn", map_fft, "Hn"},   {"aten.fft_irfft", map_fft, "i1"},
    {"aten.fft_irfft2", map_fft, "i2"},   {"aten.fft_irfftn", map_fft, "in"},
    {"aten.fft_rfft", map_fft, "r1"},     {"aten.fft_rfft2", map_fft, "r2"},
    {"aten.fft_rfftn", map_fft, "rn"},    {"aten.istft", map_istft, ""},
    {"aten.stft", map_stft, ""},
};
static_assert(sorted(kTransforms));

// What is real throughout: stft without a complex result, half a real signal's transform of real numbers, windows.
constexpr Mapping kMappings[] = {
    {"aten.bartlett_window", map_window, "bartlett"},
    {"aten.blackman_window", map_window, "blackman"},
    {"aten.fft_fftshift", map_shift, ""},
    {"aten.fft_hfft", map_fft, "h1"},
    {"aten.fft_hfft2", map_fft, "h2"},
    {"aten.fft_hfftn", map_fft, "hn"},
    {"aten.fft_ifftshift", map_shift, "back"},
    {"aten.fft_irfft", map_fft, "i1"},
    {"aten.fft_irfft2", map_fft, "i2"},
    {"aten.fft_irfftn", map_fft, "in"},
    {"aten.hamming_window", map_window, "hamming"},
    {"aten.hann_window", map_window, "hann"},
    {"aten.kaiser_window", map_window, "kaiser"},
    {"aten.stft", map_stft, ""},
};
static_assert(sorted(kMappings));

}  // namespace

std::span<const Mapping> spectral_mappings() {
  return kMappings;
}

std::span<const Mapping> complex_spectral_mappings() {
  return kTransforms;
}

}  // namespace pinnace::torch_import
