// The nodes that Model::preprocessed() puts in front of a graph, one after the other, with arithmetic on sizes that may
// be dynamic until a run.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "graph/graph.h"

namespace pinnace {

/// The module of such nodes: a picture is made of bytes that no other arithmetic gives, so quantisation leaves them
/// out.
inline constexpr std::string_view kPreprocessingModule = "(preprocessing)";

/// A size: a number, or an i64[1] that the graph computes of the sizes of its inputs. Not negative.
struct PictureSize {
  int64_t known = -1;
  ValueId value = kNoValue;
  static PictureSize of(int64_t n) { return {n, kNoValue}; }
  bool is_known() const { return known >= 0; }
};

/// A box of a picture.
struct PictureBox {
  PictureSize top, left, height, width;
};

class PictureNodes {
 public:
  /// base: what names of nodes and values begin with.
  PictureNodes(Graph& graph, std::string base) : graph_(graph), base_(std::move(base)) {}

  using Attrs = std::vector<std::pair<std::string_view, Attr>>;
  /// Appends a node to those in front of the graph's own and returns what it makes. kNoValue inputs at the end are left
  /// out. The type counts for its quantisation alone.
  ValueId add(std::string_view op, std::string_view label, std::vector<ValueId> inputs, Attrs attrs = {},
              TensorType type = {});
  /// Lets the last node make `value`, which was an input of the graph, in place of what it made.
  void make_last(ValueId value) { last_->outputs[0] = value; }
  bool any() const { return last_ != nullptr; }

  Result<ValueId> ints(std::vector<int64_t> values);
  Result<ValueId> floats(Shape shape, std::span<const float> values);
  /// A scalar byte 0.
  Result<ValueId> zero_byte();

  /// The size of dimension d of the value.
  Result<PictureSize> size_of(ValueId id, size_t d);
  /// a OP b with OP one of "add", "sub", "mul", "div" (rounded down), "mod", "min".
  Result<PictureSize> calculate(std::string_view op, PictureSize a, PictureSize b);
  Result<PictureSize> calculate(std::string_view op, PictureSize a, int64_t b) {
    return calculate(op, a, PictureSize::of(b));
  }
  /// a * by / divisor, rounded down.
  Result<PictureSize> times(PictureSize a, int64_t by, PictureSize divisor);
  /// A box in the middle. Half of what is left is rounded half to even, as torchvision has it.
  Result<PictureBox> middle(PictureSize height, PictureSize width, PictureSize box_height, PictureSize box_width);
  /// The box out of the dimensions row_axis and row_axis + 1.
  Result<ValueId> cut(std::string_view label, ValueId x, int64_t row_axis, const PictureBox& box);
  /// As a vector for reshape, slice and resize.
  Result<ValueId> vector(std::span<const PictureSize> sizes);

  /// x[..., start : start + length * step : step, ...] for each of the axes.
  Result<ValueId> slice(std::string_view label, ValueId x, std::vector<int64_t> axes,
                        std::span<const PictureSize> starts, std::span<const PictureSize> ends, int64_t step = 1);
  Result<ValueId> reshape(std::string_view label, ValueId x, std::span<const PictureSize> sizes);
  /// Bytes times a number, as f32.
  Result<ValueId> to_float(std::string_view label, ValueId bytes, float scale = 1);
  /// Numbers rounded half to even and cut to [0, 255], as bytes.
  Result<ValueId> to_bytes(std::string_view label, ValueId numbers);

 private:
  Result<PictureSize> margin(PictureSize whole, PictureSize part);

  Graph& graph_;
  std::string base_;
  size_t count_ = 0;
  Node* last_ = nullptr;
};

}  // namespace pinnace
