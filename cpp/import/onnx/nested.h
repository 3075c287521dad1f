// Nested graphs, as If, Loop, Scan and FlexAttention have them: bodies with inputs of their own, and graphs that are
// put in place of their node.
#pragma once

#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "import/onnx/mapping.h"

namespace pinnace::onnx {

/// What could not be imported inside has been recorded: the node itself is no further problem.
Status recorded();

/// The finished graph as an attribute.
Attr graph_of(GraphBuilder& body);

/// Imports a loop's body, whose outputs after the first, the condition, are the carried values. Where a carried value
/// leaves the body with another size than it entered, that size becomes unknown and the body is imported again.
using BindCarried = std::function<Status(GraphBuilder&, Scope&, std::span<const TensorType> carried)>;
Result<std::unique_ptr<GraphBuilder>> import_loop_body(SourceNode& node, const proto::GraphProto& body,
                                                       std::vector<TensorType> types, const BindCarried& bind);

/// The nodes of `body` in place of the node, with `inputs` for its inputs: the values of its outputs, kPoisoned for
/// those that could not be imported. `prefix` is put before the names of what is made.
Result<std::vector<ValueId>> inline_graph(SourceNode& node, const proto::GraphProto& body,
                                          std::span<const ValueId> inputs, const std::string& prefix);

}  // namespace pinnace::onnx
