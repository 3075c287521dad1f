// What a mapping function is given: one node of the source, and the means to put nodes of ours in its place.
#pragma once

#include <initializer_list>
#include <optional>
#include <span>
#include <string_view>

#include "import/onnx/importer.h"

namespace pinnace::onnx {

/// Attributes of the source that a mapping has dealt with itself.
using Names = std::initializer_list<std::string_view>;
using Attrs = std::vector<std::pair<std::string, Attr>>;

/// A refusal: which rule, and the value that breaks it.
Status refuse(std::string rule, std::string value = {});

/// One node of the source while it is mapped.
class SourceNode {
 public:
  SourceNode(Scope& scope, const proto::NodeProto& proto, std::string name, int64_t opset, std::vector<ValueId> inputs);

  const proto::NodeProto& proto() const { return proto_; }
  Scope& scope() { return scope_; }
  /// Version of the operator's domain.
  int64_t opset() const { return opset_; }
  const std::string& name() const { return name_; }
  std::string label() const { return str_cat(proto_.op_type(), " '", name_, "'"); }

  // Inputs. Left-out ones at the end are dropped.
  int input_count() const { return static_cast<int>(inputs_.size()); }
  bool has(int i) const { return i < input_count() && inputs_[static_cast<size_t>(i)] != kNoValue; }
  /// kNoValue if left out.
  ValueId in(int i) const { return i < input_count() ? inputs_[static_cast<size_t>(i)] : kNoValue; }
  const std::vector<ValueId>& inputs() const { return inputs_; }
  /// kInvalidArgument unless the node has at least so many inputs, none of the first `count` left out.
  Status need_inputs(int count) const;
  const TensorType& type(ValueId id) const { return scope_.builder.type(id); }
  const TensorType& in_type(int i) const { return type(in(i)); }
  /// Contents of an integer input, if they are known.
  std::optional<std::vector<int64_t>> known_ints(int i) const;

  // Outputs.
  int output_count() const;
  /// True if the source names output i, so that something may read it.
  bool wants(int i) const { return i < proto_.output_size() && !proto_.output(i).empty(); }

  // Attributes. A function's references are resolved. A wrong kind is an error.
  const proto::AttributeProto* attr(std::string_view name) const;
  Result<int64_t> int_attr(std::string_view name, int64_t fallback) const;
  Result<double> float_attr(std::string_view name, double fallback) const;
  /// Lives as long as the model of the source, or as `fallback`.
  Result<std::string_view> string_attr(std::string_view name, std::string_view fallback) const;
  Result<std::vector<int64_t>> ints_attr(std::string_view name) const;
  Result<std::vector<double>> floats_attr(std::string_view name) const;
  Result<const proto::GraphProto*> graph_attr(std::string_view name) const;
  /// All attributes, references resolved, by the names that the node itself gives them.
  std::vector<std::pair<std::string_view, const proto::AttributeProto*>> attributes() const;

  // Constants.
  Result<ValueId> constant_ints(std::span<const int64_t> values);
  Result<ValueId> constant_int(int64_t value);
  /// A scalar of the given element type.
  Result<ValueId> constant_scalar(DType dtype, double value);
  /// A tensor of one element as a scalar; others as they are.
  Result<ValueId> as_scalar(ValueId id);
  Result<ValueId> constant_tensor(const proto::TensorProto& tensor, std::string name);

  // Nodes. Attributes that say what the operator does anyway are dropped.
  /// A node within the mapping, with one output.
  Result<ValueId> emit(std::string_view op, std::vector<ValueId> inputs, Attrs attrs = {});
  Result<std::vector<ValueId>> emit_many(std::string_view op, std::vector<ValueId> inputs, Attrs attrs, int outputs);
  /// The node that makes the source's outputs, at least `outputs` of them.
  Status finish(std::string_view op, std::vector<ValueId> inputs, Attrs attrs = {}, int outputs = 0);
  /// The source's output i is `id`.
  Status set_output(int i, ValueId id);

  /// The operator of this build, or a refusal that names the source's operator.
  Result<const OpDef*> find(std::string_view op) const;

 private:
  /// What an attribute of the node stands for: itself, or what the function's call binds it to, null if nothing.
  const proto::AttributeProto* resolve(const proto::AttributeProto& a) const;
  Result<Node*> add(const OpDef& op, std::string name, std::vector<ValueId> inputs, Attrs attrs,
                    std::vector<ValueId> outputs);

  Scope& scope_;
  const proto::NodeProto& proto_;
  std::string name_;
  int64_t opset_;
  std::vector<ValueId> inputs_;
  int made_ = 0;  ///< nodes emitted so far, for their names
};

/// The oldest opset whose every operator is read.
inline constexpr int64_t kOldestOpset = 6;
/// True if the operator's form of `opset`, an older one, is that of opset 6.
bool unchanged_since(std::string_view op_type, int64_t opset);

/// FlexAttention of domain ai.onnx.preview.
Status map_flex_attention(SourceNode& node);

using MapFn = Status (*)(SourceNode& node);
/// The function for an operator of the standard domain, or null.
MapFn find_mapping(std::string_view op_type);
/// The function for an operator of domain com.microsoft, or null.
MapFn find_microsoft_mapping(std::string_view op_type);

/// True if the function takes sequences and optional values (Listed); others are given tensors only.
bool takes_listed(MapFn map);

/// "ReduceL1" -> "reduce_l1", "transB" -> "trans_b": the rule by which our names come from ONNX's.
std::string snake_case(std::string_view name);

/// Attributes of the source as those of `op`: kinds checked, element types by name. `skip` lists the source's names
/// that the caller has dealt with. Attributes that `op` lacks are dropped where they change nothing, else refused.
Result<Attrs> convert_attributes(const SourceNode& node, const OpDef& op, Names skip = {});

/// The rule for operators whose newest form is ours: same inputs, same attributes, name in snake_case.
Status map_generic(SourceNode& node);
/// As map_generic, with other inputs, attributes that are already converted, and without those that `skip` lists.
Status map_as(SourceNode& node, std::string_view op, std::vector<ValueId> inputs, Attrs attrs = {}, Names skip = {});

// One per entry of mappings.inc and microsoft.inc.
#define MAP(op_type, function) Status map_##function(SourceNode& node);
#include "import/onnx/mappings.inc"
#include "import/onnx/microsoft.inc"
#undef MAP

}  // namespace pinnace::onnx
