// to_graph: an NNAPI model as a graph of ours, for one set of input shapes. What is an attribute with us but a value
// with NNAPI (strides, axes, sizes) must be known: constants are, inputs of the model can be made constants.
#pragma once

#include <functional>
#include <span>
#include <vector>

#include "graph/graph.h"
#include "nnapi/model.h"

namespace pinnace::nnapi {

/// Our type of an operand with the given dimensions: kBool for BOOL and TENSOR_BOOL8, quantised types as they are
/// stored.
TensorType tensor_type(const Operand& operand, std::span<const uint32_t> dims);

/// What is known of one input of the model.
struct InputSpec {
  std::vector<uint32_t> dims;  ///< all known; empty for scalars
  bool omitted = false;        ///< an optional input without a value
  bool constant = false;       ///< `data` becomes a constant of the graph
  std::span<const std::byte> data = {};
};

/// Stands for an input of the graph that is none of the model's: i32[2], random numbers, others in each run.
inline constexpr uint32_t kEntropyInput = UINT32_MAX;

struct ModelGraph {
  Graph graph;
  /// For each input of the graph the index of the model's, or kEntropyInput. Omitted and constant inputs have none.
  /// Inputs of NNAPI's bool types are u8 in the graph, where every byte but 0 is true.
  std::vector<uint32_t> inputs;
  /// Inputs of the model that must be constants beside those that are; the graph is then not complete.
  std::vector<uint32_t> needed;
};

/// Maps a finished model. The graph's outputs are the model's, in order, with their shapes as far as they can be
/// known before a run. Constants of the model are used where they lie.
///
/// kInvalidArgument: a value or shape breaks a rule of an operation, which is named. kUnsupported: an operation that
/// has no mapping, or whose attributes are known only while the model runs.
///
/// `entropy`: operations that are to seed themselves may do so by a kEntropyInput; else they always draw the same.
Result<ModelGraph> to_graph(const Model& model, std::span<const InputSpec> inputs, bool entropy = false);

/// Whether `holds` is true of the operation and of all in the models that it refers to, each model looked at once.
bool all_operations(const Model& model, const Operation& operation,
                    const std::function<bool(const Operation& operation)>& holds);
/// True if there is a mapping for the operation, and for all of the models that it refers to.
bool has_mapping(const Model& model, const Operation& operation);

}  // namespace pinnace::nnapi
