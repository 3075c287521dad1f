// The fast Fourier transform: by halves for powers of two, as a circular convolution for other lengths.
#include "ops/fourier.h"

#include <algorithm>
#include <numbers>

#include "base/cancel.h"
#include "ops/threads.h"

namespace pinnace {
namespace {
/// (a, b) *= (c, d)
void multiply(double& a, double& b, double c, double d) {
  const double re = a * c - b * d;
  b = a * d + b * c;
  a = re;
}

/// Calls f(k) for [0, count), as long as the call goes on.
template <class F>
void each(int64_t count, double cost, F f) {
  Threads().ranges(count, cost, [&](int64_t first, int64_t last) {
    for (int64_t k = first; k < last; ++k) f(k);
  });
}

/// Steps of a transform between two looks at whether the call is to end.
constexpr int64_t kBetweenLooks = 32768;
}  // namespace

Result<Fourier> Fourier::make(int64_t n, std::string_view what) {
  constexpr int64_t kMost = int64_t{1} << 31;  // squares of indices stay within int64
  if (n > kMost) return out_of_memory(what, " needs a Fourier transform of ", n, " elements, ", kMost, " are the most");
  int64_t m = 1;
  while (m < n) m *= 2;
  const bool direct = m == n;
  if (!direct) m *= 2;
  PINNACE_ASSIGN(auto tables, Scratch<double>::allocate((direct ? 2 : 6) * m, what));
  const auto table = [&](int i) { return tables.data() + i * m; };
  each(m, 40, [&](int64_t k) {
    const double angle = 2 * std::numbers::pi * static_cast<double>(k) / static_cast<double>(m);
    table(0)[k] = std::cos(angle);
    table(1)[k] = -std::sin(angle);
  });
  if (loop_stops()) return stop_status(what);  // before anybody touches more memory
  if (direct) return Fourier(n, m, std::move(tables));
  each(4 * m, 1, [to = table(2)](int64_t k) { to[k] = 0; });
  each(n, 60, [&](int64_t k) {
    // The angle of k^2 repeats after 2n: reduced first, it keeps its digits.
    const double angle = std::numbers::pi * static_cast<double>(k * k % (2 * n)) / static_cast<double>(n);
    const double re = std::cos(angle), im = -std::sin(angle);
    table(2)[k] = re;
    table(3)[k] = im;
    table(4)[k] = re;
    table(5)[k] = -im;
    if (k == 0) return;
    table(4)[m - k] = re;
    table(5)[m - k] = -im;
  });
  double *re = table(4), *im = table(5);
  Fourier f(n, m, std::move(tables));
  f.powers(re, im);
  if (loop_stops()) return stop_status(what);
  return f;
}

void Fourier::powers(double* re, double* im) const {
  for (int64_t i = 1, j = 0; i < m_; ++i) {  // j is i with its bits in reverse
    int64_t bit = m_ / 2;
    for (; j & bit; bit /= 2) j ^= bit;
    j ^= bit;
    if (i >= j) continue;
    if (i % kBetweenLooks == 1 && loop_stops()) return;
    std::swap(re[i], re[j]);
    std::swap(im[i], im[j]);
  }
  for (int64_t half = 1; half < m_; half *= 2) {
    const int64_t step = m_ / (2 * half);
    const auto pairs = [&](int64_t first, int64_t begin, int64_t end) {
      for (int64_t k = begin; k < end; ++k) {
        const int64_t a = first + k, b = a + half;
        double x = re[b], y = im[b];
        multiply(x, y, table(0)[k * step], table(1)[k * step]);
        re[b] = re[a] - x;
        im[b] = im[a] - y;
        re[a] += x;
        im[a] += y;
      }
    };
    if (half < kBetweenLooks) {
      if (m_ > kBetweenLooks && loop_stops()) return;
      for (int64_t first = 0; first < m_; first += 2 * half) pairs(first, 0, half);
      continue;
    }
    for (int64_t first = 0; first < m_; first += 2 * half) {
      for (int64_t k = 0; k < half && !loop_stops(); k += kBetweenLooks) pairs(first, k, k + kBetweenLooks);
    }
  }
}

void Fourier::forward(double* re, double* im, double* work) const {
  if (m_ == n_) return powers(re, im);
  double *u = work, *v = u + m_;
  for (double* part : {u, v}) std::fill(part + n_, part + m_, 0.0);
  each(n_, 4, [&](int64_t k) {
    u[k] = re[k];
    v[k] = im[k];
    multiply(u[k], v[k], table(2)[k], table(3)[k]);
  });
  powers(u, v);
  each(m_, 4, [&](int64_t k) { multiply(u[k], v[k], table(4)[k], table(5)[k]); });
  powers(v, u);  // with the parts exchanged: the inverse, times m
  const double scale = 1 / static_cast<double>(m_);
  each(n_, 4, [&](int64_t k) {
    re[k] = u[k] * scale;
    im[k] = v[k] * scale;
    multiply(re[k], im[k], table(2)[k], table(3)[k]);
  });
}

void Fourier::inverse(double* re, double* im, double* work) const {
  forward(im, re, work);
  each(n_, 4, [&](int64_t k) {
    re[k] /= static_cast<double>(n_);
    im[k] /= static_cast<double>(n_);
  });
}

}  // namespace pinnace
