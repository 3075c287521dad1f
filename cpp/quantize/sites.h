// Which nodes of a graph can compute in 8-bit integers, and which values need ranges for it.
#pragma once

#include <pinnace/quantize.h>

#include "graph/graph.h"
#include "ops/type_inference.h"

namespace pinnace {

/// Nodes that fold_quantization turns into integer ones when their values are quantised, as far as that pays: products
/// by constant weights, and operators whose every float operand such nodes make. softmax is left out, whose results
/// mostly lie within one step of 0. Nodes of nested graphs stay as they are. Errors: those of the passes.
Result<QuantizationSites> find_sites(const Graph& graph, const OpTable& ops);

/// Whether a node computes in integers only if its input `input` is rounded: not bounds of clip and sizes of resize,
/// which stay as they are, and not a product's bias, which is rounded with the sums.
bool reads_rounded(const OpDef& op, size_t input);

/// A product by constant weights, by what bias correction and equalisation need to know of it.
struct WeightedProduct {
  int64_t outputs = 0, inputs = 0;        ///< channels
  int output_axis = -1, input_axis = -1;  ///< the dimensions of result and operand that count them
  /// The weights' dimension that counts output channels, where it is one: what per-channel scales run along; else -1.
  int axis = -1;
  /// Channels of weight i.
  std::vector<int32_t> output_of, input_of;
};
/// Nothing for other nodes, and for weights that are no float32 constant.
std::optional<WeightedProduct> weighted_product(const Graph& graph, const Node& node);

}  // namespace pinnace
