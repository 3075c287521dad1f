// Types of every value of a graph from the types of its inputs, and the contents of those small values that do not
// depend on the inputs' contents (shapes and arithmetic on them). Used by importers, passes and the planner alike.
#pragma once

#include <span>
#include <vector>

#include "ops/op.h"

namespace pinnace {

/// Operators by name: the built-in ones and, before them, an application's own.
class OpTable {
 public:
  OpTable() = default;
  explicit OpTable(std::span<const OpDef* const> extra) : extra_(extra.begin(), extra.end()) {}
  const OpDef* find(std::string_view name) const;

 private:
  std::vector<const OpDef*> extra_;
};

/// Values of at most this many elements are computed ahead where all inputs of their node are known.
inline constexpr int64_t kKnownElements = 4096;
/// What is computed ahead in one graph. Sizes and their arithmetic take some bytes a node; beyond this a graph was made
/// to take memory, and its values wait until it runs.
inline constexpr int64_t kComputedBytes = 4 << 20;

/// What type and shape inference found; indexed by ValueId.
struct TypeInference {
  std::vector<TensorType> types;
  /// Contents, dense: of constants, and of values computed ahead. Null where unknown.
  std::vector<ConstantPtr> data;
  /// Partial knowledge of integer values whose data is null; empty where nothing is known.
  std::vector<std::vector<KnownInt>> known;
  /// True for nodes all of whose outputs have data: they need not run.
  std::vector<bool> computed;
  /// True for values whose rule asked for integers that are not known yet: it has to be asked again when they are, even
  /// if the type is concrete, because these integers may not fit the inputs.
  std::vector<bool> asks_again;
  int64_t computed_bytes = 0;  ///< of what was computed ahead so far
};

/// Infers the whole graph. input_types are in the order of Graph::inputs and replace the declared ones (sizes may be
/// concrete where the declaration has symbols); empty: the declared types. input_data likewise may give contents (null:
/// unknown). Values whose size depends on data end with unknown dimensions. The first node whose rule fails is the
/// error. Ranges of symbols are not checked here: the session does that.
Result<TypeInference> infer_types(const Graph& graph, std::span<const TensorType> input_types = {},
                                  std::span<const ConstantPtr> input_data = {}, const OpTable& ops = {});

/// What a NodeView is given for a tensor that is there: its bytes, and where it has none some address, because null
/// stands for contents that are unknown. Null for a left-out input.
const void* contents_of(const TensorView& tensor);

/// Shape rules know symbols only by number and print them as s0, s1. The same status with the symbols' names in the
/// shapes of its message; as it is where `symbols` does not have them.
Status name_symbols(Status status, std::span<const Symbol> symbols);

/// Infers one node of a graph whose inputs have been inferred into `state` and stores its outputs there (grown as
/// needed). Importers call it after adding each node.
Status infer_into(const Graph& graph, const Node& node, TypeInference& state, const OpTable& ops = {});

/// A TypeInference that holds what the declared types of inputs and states and the constants of `graph` say, for
/// infer_into.
TypeInference begin_type_inference(const Graph& graph);

/// infer_types() with the declared inputs, then writes the found types into graph.value(i).type; nested graphs too.
Status update_types(Graph& graph, const OpTable& ops = {});

/// What failed in a graph that `node` holds, with that node's name before it; a cancelled run stays as it is.
Status inside(const NodeView& node, const Status& status);

/// Runs one node's reference code on given bytes, after inferring its output types from these very inputs. inputs[i] is
/// not present for a left-out one. Control flow runs through its bodies. Returns types and bytes of the outputs.
struct ReferenceOutput {
  TensorType type;
  Buffer bytes;
};
Result<std::vector<ReferenceOutput>> run_reference(const Node& node, const OpDef& op,
                                                   std::span<const TensorView> inputs,
                                                   std::span<const TensorType* const> declared = {},
                                                   const OpTable& ops = {}, const Threads& threads = {});

/// Runs a whole graph by reference code, node after node: the oracle of every other way to run it. Inputs in order,
/// dense; `states` holds the current contents of the graph's states and receives the new ones (may be empty for graphs
/// without).
Result<std::vector<ReferenceOutput>> run_graph_reference(const Graph& graph, std::span<const TensorView> inputs,
                                                         std::vector<ConstantPtr>* states = nullptr,
                                                         const OpTable& ops = {}, const Threads& threads = {});

}  // namespace pinnace
