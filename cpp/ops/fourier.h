// The discrete Fourier transform of one line of complex numbers in double, for dft and stft.
#pragma once

#include <cmath>

#include "base/memory.h"
#include "base/status.h"

namespace pinnace {

/// Transforms of one length, whose tables are made once. Lengths that are powers of two take n log n steps at once,
/// others three such transforms of more than twice the length (Bluestein's way).
class Fourier {
 public:
  /// n >= 1. kOutOfMemory: the tables, about 8 n numbers.
  static Result<Fourier> make(int64_t n, std::string_view what);

  /// About how long one transform takes.
  double nanoseconds() const { return (m_ == n_ ? 3 : 6) * static_cast<double>(m_) * std::log2(m_ + 1); }
  /// How many numbers of work space a transform needs; each thread has its own.
  int64_t work_size() const { return m_ == n_ ? 0 : 2 * m_; }
  /// X[k] = sum over t of x[t] e^(-2 pi i t k / n), in place on n real and n imaginary parts.
  void forward(double* re, double* im, double* work) const;
  /// x[t] = 1/n sum over k of X[k] e^(2 pi i t k / n).
  void inverse(double* re, double* im, double* work) const;

 private:
  Fourier(int64_t n, int64_t m, Scratch<double> tables) : n_(n), m_(m), tables_(std::move(tables)) {}
  const double* table(int i) const { return tables_.data() + i * m_; }
  void powers(double* re, double* im) const;  ///< forward, of m_ numbers

  int64_t n_, m_;  ///< m_: the power of two that is transformed
  /// Each of m_ numbers. 0, 1: cos and -sin of 2 pi k / m. Where n is no power of two, 2, 3: cos and -sin of
  /// pi k^2 / n; 4, 5: the transform of their conjugate.
  Scratch<double> tables_;
};

}  // namespace pinnace
