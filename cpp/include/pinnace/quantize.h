// Quantisation of a float model to 8-bit integers after training: which nodes can compute in them, what their values
// are like over the runs of a calibration, the ranges that follow, and the model with these ranges in it. Host library
// only. Python's pinnace.Model.build(quantize=...) is made of these parts, in that order:
//
//   Model ready = *model.ready_to_quantize({.equalize = true});   // activations apart, scales of channels evened out
//   QuantizationSites sites = *ready.quantization_sites();        // what can be quantised, what to observe
//   ... run ready.build() on each sample with Options::keep = sites' values, statistics.add(name, value) ...
//   Model in_integers = *ready.quantized(choices);                // a range for each value, nodes that take part
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include <pinnace/tensor.h>

#pragma GCC visibility push(default)
namespace pinnace {

/// Real numbers from `low` to `high`.
struct ValueRange {
  double low = 0, high = 0;
};

/// How the range of a value follows from its statistics.
enum class RangeRule : uint8_t {
  kMinMax,      ///< the least and the greatest element
  kPercentile,  ///< without the tails on either side
  kMse,         ///< the range whose 256 steps have the least mean square error, outliers cut off
  kEntropy,     ///< the range whose 256 steps lose the least information: Kullback-Leibler divergence of histograms
};

/// What the elements of one value were like, over any number of runs. Its size does not grow with their number. Adding
/// and merging gives the same bytes in any order and however the samples are grouped into batches, as long as the value
/// itself is the same to the bit.
class ValueStatistics {
 public:
  ValueStatistics();
  ~ValueStatistics();
  ValueStatistics(ValueStatistics&&) noexcept;
  ValueStatistics& operator=(ValueStatistics&&) noexcept;

  /// Adds a value of one run: float32, dense. The first dimension counts samples, whatever is behind it belongs to one
  /// (a tensor of rank 0 or 1 is one sample). channel_axis: the axis whose indices get a mean each, -1: none; the same
  /// in all calls. kInvalidArgument: another type, an element that is NaN or infinite (says which sample), another
  /// number of channels than before. Then nothing is added.
  Status add(const Tensor& value, int channel_axis = -1);
  /// Adds what another object has seen. kInvalidArgument: it has another number of channels, or both have seen more
  /// samples than can be counted. Then nothing is added.
  Status merge(const ValueStatistics& other);

  /// 0 before the first add().
  int64_t samples() const;
  /// Least and greatest element of all.
  ValueRange extremes() const;
  /// The mean of each channel over all samples; empty where none were asked for.
  std::vector<double> channel_means() const;
  /// The range by that rule. percentile: of kPercentile, in (50, 100], the part of elements on either side that stays
  /// inside. Empty statistics give {0, 0}.
  ValueRange range(RangeRule rule, double percentile = 99.99) const;

  /// Of sampled elements, at most 16,384 of each sample of a tensor: how many lie in [low + i * step, low + (i + 1) *
  /// step). step is a power of 2.
  struct Histogram {
    double low = 0, step = 0;
    std::vector<uint64_t> counts;
  };
  Histogram histogram() const;

  /// All of it as bytes, and back; for statistics that are gathered in several processes. kCorruptFile.
  std::vector<std::byte> to_bytes() const;
  static Result<ValueStatistics> from_bytes(std::span<const std::byte> bytes);

 private:
  struct Data;
  std::unique_ptr<Data> data_;
};

/// X^T X of rows that products by weights multiply, over any number of runs: by it an error of a rounded weight can be
/// weighed, and carried to others. One row is added after the other, in float64, so that the bits do not depend on how
/// rows are grouped into calls, only on their order. Memory: 8 bytes for each pair of a row's elements.
class GramMatrix {
 public:
  GramMatrix();
  ~GramMatrix();
  GramMatrix(GramMatrix&&) noexcept;
  GramMatrix& operator=(GramMatrix&&) noexcept;

  /// Adds the rows, of the last dimension, of a value of one run: float32, dense, rank 1 at least. kInvalidArgument:
  /// another type, rows of another length than before, an element that is NaN or infinite; kOutOfMemory. Then nothing
  /// is added.
  Status add(const Tensor& value);

  /// How many were added.
  int64_t rows() const;
  /// Of a row; 0 before the first add().
  int64_t length() const;
  /// Sum over all rows of element i times element j.
  double at(int64_t i, int64_t j) const;

 private:
  struct Data;
  std::unique_ptr<Data> data_;
};

struct QuantizeReadyOptions {
  /// Divides channels of a product's weights by numbers with which it multiplies the next product's, so that the ranges
  /// of channels come closer to each other; the function of both together stays. Source: Nagel et al., "Data-free
  /// quantization through weight equalization and bias correction" (2019), section 4.1.
  bool equalize = false;
};

/// A node that can compute in 8-bit integers.
struct QuantizationNode {
  std::string name, op;
  std::string source, module;       ///< as NodeInfo has them
  std::vector<std::string> inputs;  ///< values that have to be quantised for it, constants left out
  std::string output;               ///< the value that it makes
  bool weighted = false;            ///< a product by constant weights
  int64_t weights = 0;              ///< their elements
};

/// A value that a range is needed for.
struct QuantizationValue {
  std::string name;
  int group = 0;          ///< values of one group have to have one range: operators that only move elements
  int channel_axis = -1;  ///< whose means bias correction needs; -1: none
};

struct QuantizationSites {
  std::vector<QuantizationNode> nodes;
  std::vector<QuantizationValue> values;
  std::vector<std::string> float_only;  ///< nodes of operators that compute in floats alone here
};

/// What Model::quantized() is told of a value: real = (q - zero_point) * scale, q an unsigned byte.
struct ByteScale {
  std::string value;
  float scale = 1;
  int32_t zero_point = 0;
};
/// The scale and zero point whose 256 steps cover the range, widened to have 0 in it; 0 is a step exactly.
std::pair<float, int32_t> byte_scale(const ValueRange& range);

struct QuantizeChoices {
  std::vector<std::string> nodes;  ///< of QuantizationSites: those that compute in integers
  std::vector<ByteScale> values;   ///< for each value that these nodes read or make
  bool per_channel = true;         ///< weights have a scale for each output channel, else one
  /// By value, the mean of each channel of what enters a product: the error of its rounded weights at these means is
  /// taken off its bias. Source: as for equalize, section 4.2. Values that are left out: nothing is corrected.
  std::vector<std::pair<std::string, std::vector<double>>> means;
  /// False: quantize_linear and dequantize_linear stay where they are put, between operators on floats. What the
  /// integers are compared with.
  bool fold = true;
};

/// A node whose weights can be stored as integers while it computes in float.
struct WeightSite {
  std::string name, op, module;
  int64_t weights = 0;
  std::string matrix;           ///< the value that holds them, of a cell the first; nodes may share it
  std::string rows;             ///< the value whose rows the weights multiply; empty: none, or not rows
  int64_t length = 0;           ///< of such a row, of one that is gathered, of a cell's input
  std::string why_not_dynamic;  ///< why its product cannot be of integers (WeightChoices::dynamic); empty: it can
};

struct WeightChoices {
  std::vector<std::string> nodes;  ///< of weight sites
  int bits = 8;                    ///< 8 or 4; gathered rows of an odd length have 8
  /// So many weights, along what a product or a gate sums or a gathered row, share a scale: a multiple of 8; 0: all.
  int64_t block = 0;
  bool symmetric = true;  ///< without zero points: signed integers from -127 or -8 on
  /// Products are of integers: each row of what they multiply is rounded to unsigned bytes when it is there, with a
  /// scale and a zero point of its own, from its least and its largest number. For 8 bits, symmetric, without blocks.
  /// What is gathered stays as it is.
  bool dynamic = false;
  /// False: the floats that the integers stand for, as plain constants. What the integers are compared with.
  bool integers = true;
  /// False: no pass runs over the result, which quantized() or this is then called on.
  bool passes = true;
  /// By node, of the rows that it multiplies; borrowed for the call. Its weights are rounded so that errors of products
  /// are small, the scales being what they are: what rounding one weight adds is carried to those that are not rounded
  /// yet. The weights of other nodes are rounded to the nearest. Weights that several nodes share go by all of theirs.
  std::vector<std::pair<std::string, const GramMatrix*>> grams;
};

/// A node that has float32 operands.
struct Float16Site {
  std::string name, op, module;
  int64_t weights = 0;  ///< elements of its float32 constants
  std::string why_not;  ///< why it stays in float32; empty: it can compute in float16
};

}  // namespace pinnace
#pragma GCC visibility pop
