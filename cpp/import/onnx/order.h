// The order in which nodes are imported.
#pragma once

#include <span>
#include <string_view>
#include <vector>

#include "import/onnx/tensor.h"

namespace pinnace::onnx {

/// Indices of `nodes` such that each comes after those whose outputs it, or a graph nested in it, reads; the source's
/// own order where that is such an order, which ONNX demands and not every writer gives.
///
/// kCorruptFile: two nodes make the same value (O-21), or nodes wait for each other (O-22, names them).
Result<std::vector<int>> node_order(const google::protobuf::RepeatedPtrField<proto::NodeProto>& nodes);

/// Per node, whether a value of `leaving` follows from what it makes. order: as node_order() gives it.
std::vector<bool> needed_nodes(const google::protobuf::RepeatedPtrField<proto::NodeProto>& nodes,
                               std::span<const int> order, std::span<const std::string_view> leaving);

}  // namespace pinnace::onnx
