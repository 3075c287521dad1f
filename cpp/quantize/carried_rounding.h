// Rounding of weights with scales: each to the nearest, or so that errors of the products by them are small.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include <pinnace/quantize.h>

namespace pinnace {

/// real = (q - zero) * scale.
struct RoundingStep {
  float scale = 1;
  int32_t zero = 0;
};

/// Lines of weights, each of which makes one element of a product, and what they become.
struct RoundedLines {
  int64_t lines, length;
  int64_t block;                        ///< so many elements of a line, from its beginning, share a step
  int low, high;                        ///< of the integers
  std::span<const double> weights;      ///< [lines][length]
  std::span<const RoundingStep> steps;  ///< [lines][blocks]
  std::span<int32_t> rounded;           ///< [lines][length]
};

void round_to_nearest(const RoundedLines& group);

/// Finds integers q for weights w of rows x that make the sum of (x (w - q))^2 over all rows small, one weight after
/// the other: each is rounded from where it would have to be to make up for the errors of those before it. Sources:
/// Frantar et al., "GPTQ: Accurate post-training quantization for generative pre-trained transformers" (2022); as a
/// search for a near point of a lattice, in terms of one Cholesky factor: Chen et al., "The geometry of LLM
/// quantization: GPTQ as Babai's nearest plane algorithm" (2025).
class CarriedRounding {
 public:
  /// So many lines are best rounded at a time.
  static constexpr int64_t kLines = 8;

  /// Of the sum of the matrices, which are of one length. kOutOfMemory.
  static Result<CarriedRounding> create(std::span<const GramMatrix* const> grams);

  /// Any number of lines.
  void round(const RoundedLines& group) const;

 private:
  std::vector<int64_t> order_;  ///< of a line's elements, by how much they weigh: the least first
  std::vector<double> factor_;  ///< upper triangle U, row-major: U^T U is the matrix in that order, damped
};

}  // namespace pinnace
