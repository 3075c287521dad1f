// Bodies of loops, whose sizes settle by reading them again; graphs that need no body because they run once.
#include "import/onnx/nested.h"

namespace pinnace::onnx {

Status recorded() {
  return Status(Code::kConversion, "a nested graph cannot be imported");
}

Attr graph_of(GraphBuilder& body) {
  body.graph.compact();
  return std::make_shared<Graph>(std::move(body.graph));
}

Result<std::unique_ptr<GraphBuilder>> import_loop_body(SourceNode& node, const proto::GraphProto& body,
                                                       std::vector<TensorType> types, const BindCarried& bind) {
  for (;;) {
    PINNACE_ASSIGN(auto builder,
                   import_body(node.scope(), body, [&](GraphBuilder& b, Scope& s) { return bind(b, s, types); }));
    if (!builder) return recorded();
    bool widened = false;
    for (size_t i = 0; i < types.size(); ++i) {
      const TensorType& after = builder->type(builder->graph.outputs[1 + i]);
      if (after.dtype != types[i].dtype || after.rank() != types[i].rank()) {
        return refuse(
            str_cat("carried value ", i, " must keep its element type and rank, enters as ", to_string(types[i])),
            to_string(after));
      }
      for (size_t d = 0; d < after.shape.size(); ++d) {
        if (after.shape[d] == types[i].shape[d] || types[i].shape[d] == Dim()) continue;
        types[i].shape[d] = Dim();
        widened = true;
      }
    }
    if (!widened) return builder;
  }
}

Result<std::vector<ValueId>> inline_graph(SourceNode& node, const proto::GraphProto& body,
                                          std::span<const ValueId> inputs, const std::string& prefix) {
  Frame frame = node.scope().frame;
  frame.prefix = prefix;
  Scope inner{node.scope().builder, frame, &node.scope(), {}};
  for (size_t i = 0; i < inputs.size(); ++i) {
    PINNACE_TRY(inner.define(body.input(static_cast<int>(i)).name(), inputs[i]));
  }
  PINNACE_TRY(import_initializers(inner, body));
  PINNACE_TRY(import_nodes(inner, body.node(), names_of(body.output())));
  std::vector<ValueId> outputs;
  for (const auto& output : body.output()) {
    PINNACE_ASSIGN(const ValueId id, inner.find(output.name(), node.label()));
    outputs.push_back(id);
  }
  return outputs;
}

}  // namespace pinnace::onnx
