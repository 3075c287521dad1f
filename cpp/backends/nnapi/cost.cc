// The cost model of partition: rough figures of phones, fixed so that placements do not depend on the day.
#include "backends/nnapi/cost.h"

namespace pinnace::nnapi_client {
namespace {

constexpr double kProduct = 0.02;  // ns of a multiplication and addition: 50 billion a second
constexpr double kElement = 0.25;  // ns of an element of anything else
constexpr double kCall = 50000;    // ns of an execution: two changes of process
constexpr double kByte = 0.25;     // ns of a byte copied there or back: 4 GB/s
constexpr double kGain = 2;        // how much faster a device is

double elements(const TensorType& type) {
  return static_cast<double>(std::max<int64_t>(0, type.elements()));
}

/// Products of a node, or 0 where it is no product.
double products(const Node& node, const OpDef& op, const std::vector<TensorType>& types) {
  if (!op.has(Trait::kProduct | Trait::kRecurrent)) return 0;
  std::vector<const TensorType*> inputs;
  for (ValueId id : node.inputs) inputs.push_back(id == kNoValue ? nullptr : &types[static_cast<size_t>(id)]);
  return op.multiply_adds(inputs, types[static_cast<size_t>(node.outputs[0])]);
}

constexpr double kRounds = 16;  // of a loop whose count is not known

double work_of(const Node& node, const TypeInference& type_inference, const OpTable& ops);

double work_of(const Graph& graph, const TypeInference& type_inference, const OpTable& ops) {
  double work = 0;
  for (size_t k = 0; k < graph.nodes.size(); ++k) {
    if (!type_inference.computed[k]) work += work_of(*graph.nodes[k], type_inference, ops);
  }
  return work;
}

/// Bodies run with the sizes that the node's inputs have: a loop as often as is known, of two branches the longer one.
double work_of(const Node& node, const TypeInference& type_inference, const OpTable& ops) {
  const std::vector<TensorType>& types = type_inference.types;
  double work = kProduct * products(node, *ops.find(node.op), types);
  for (ValueId id : node.outputs) work += kElement * elements(types[static_cast<size_t>(id)]);
  const bool loop = node.op == "loop";
  double rounds = 1, bodies = 0;
  std::vector<TensorType> given;
  if (loop) {
    const ValueId count = node.inputs[0];
    const ConstantPtr known = count == kNoValue ? nullptr : type_inference.data[static_cast<size_t>(count)];
    rounds = known ? std::max(0.0, static_cast<double>(*reinterpret_cast<const int64_t*>(known->data()))) : kRounds;
    given = {{DType::kI64, {}, nullptr}, {DType::kBool, {}, nullptr}};
  }
  for (const auto& [name, attr] : node.attrs) {
    const auto* body = std::get_if<GraphPtr>(&attr);
    if (!body) continue;
    std::vector<TensorType> inputs = given;
    for (size_t i = loop ? 2 : 1; i < node.inputs.size(); ++i) {
      inputs.push_back(types[static_cast<size_t>(node.inputs[i])]);
    }
    if (const auto inner = infer_types(**body, inputs, {}, ops))
      bodies = std::max(bodies, work_of(**body, *inner, ops));
  }
  return work + rounds * bodies;
}

}  // namespace

Cost cost_of(const Segment& segment) {
  Cost cost{0, kCall, 0};
  const std::vector<TensorType>& types = segment.type_inference.types;
  for (int32_t k : segment.nodes) {
    cost.work += work_of(*segment.graph.nodes[static_cast<size_t>(k)], segment.type_inference, segment.ops);
  }
  for (const auto* list : {&segment.inputs, &segment.outputs}) {
    for (ValueId id : *list) cost.bytes += std::max<int64_t>(0, types[static_cast<size_t>(id)].bytes());
  }
  cost.call += kByte * static_cast<double>(cost.bytes);
  return cost;
}

std::vector<Verdict> too_little_work(const Segment& segment) {
  const Cost cost = cost_of(segment);
  if (cost.work * (1 - 1 / kGain) >= cost.call) return {};
  const auto microseconds = [](double ns) { return static_cast<int64_t>(ns / 1000); };
  const std::string value =
      str_cat(segment.nodes.size(), " nodes, about ", microseconds(cost.work), " us of work here; a call with ",
              cost.bytes, " bytes about ", microseconds(cost.call), " us");
  return std::vector<Verdict>(segment.nodes.size(), refusal(Rule::kWork, value));
}

}  // namespace pinnace::nnapi_client
