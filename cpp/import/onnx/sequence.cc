// Sequences and optional values. What is in them is known while the model is read: they are lists of values inside the
// importer, and a graph has only their elements. What depends on data is refused, but for SequenceAt of elements of
// one shape, which are stacked and gathered from.
#include <algorithm>
#include <iterator>
#include <optional>

#include "import/onnx/nested.h"

namespace pinnace::onnx {
namespace {
// Every piece is a value of the graph: as many as nodes of a large model, not as elements of a tensor.
constexpr int64_t kMaxPieces = 10'000;

const Import& import_of(SourceNode& node) {
  return node.scope().builder.import;
}

Status set_list(SourceNode& node, int output, Listed list) {
  return node.set_output(output, node.scope().builder.import.add_list(std::move(list)));
}

/// The elements of a sequence at input i; a copy, as making another list moves them.
Result<std::vector<ValueId>> sequence_input(SourceNode& node, int i) {
  const ValueId id = node.in(i);
  if (!is_listed(id) || import_of(node).list(id).optional) {
    return refuse(str_cat("input ", i, " must be a sequence"), id == kNoValue  ? "left out"
                                                               : is_listed(id) ? "an optional value"
                                                                               : to_string(node.type(id)));
  }
  return import_of(node).list(id).elements;
}

Status check_element(SourceNode& node, ValueId id, std::span<const ValueId> others) {
  if (is_listed(id)) return refuse("elements of sequences must be tensors");
  if (others.empty() || node.type(others[0]).dtype == node.type(id).dtype) return {};
  return refuse(str_cat("elements must be of one type, the first is ", to_string(node.type(others[0]))),
                to_string(node.type(id)));
}

/// The position that input i gives, counted from the front: `fallback` where it is left out, nothing where it is known
/// only at run time. It must be from -length to end.
Result<std::optional<int64_t>> position(SourceNode& node, int i, int64_t length, int64_t end, int64_t fallback) {
  std::optional<int64_t> at = fallback;
  if (node.has(i)) {
    if (is_listed(node.in(i))) return refuse("the position must be a tensor");
    const auto known = node.known_ints(i);
    if (!known) return std::optional<int64_t>();
    if (known->size() != 1) return refuse("the position must be a scalar", to_string(node.in_type(i)));
    at = (*known)[0];
  }
  if (*at < -length || *at > end) {
    return refuse(str_cat("the position must be from ", -length, " to ", end, " in a sequence of ", length),
                  str_cat(*at));
  }
  return std::optional<int64_t>(*at < 0 ? *at + length : *at);
}

/// All of `elements` in one tensor, with a new dimension for their number.
Result<ValueId> stack(SourceNode& node, std::span<const ValueId> elements, int64_t axis) {
  PINNACE_ASSIGN(const ValueId axes, node.constant_ints(std::vector<int64_t>{axis}));
  std::vector<ValueId> rows;
  for (ValueId id : elements) {
    PINNACE_ASSIGN(const ValueId row, node.emit("unsqueeze", {id, axes}));
    rows.push_back(row);
  }
  return node.emit("concat", std::move(rows), {{"axis", axis}});
}

/// The first element whose shape may not be that of element 0, or the number of elements.
size_t first_other_shape(SourceNode& node, std::span<const ValueId> elements) {
  const Shape& shape = node.type(elements[0]).shape;
  const bool settled = std::all_of(shape.begin(), shape.end(), [](const Dim& d) { return d.known() || d.symbol >= 0; });
  for (size_t i = 0; i < elements.size(); ++i) {
    if (!settled || node.type(elements[i]).shape != shape) return i;
  }
  return elements.size();
}
}  // namespace

bool takes_listed(MapFn map) {
  static constexpr MapFn kTaking[] = {
      map_concat_from_sequence, map_identity,        map_optional,           map_optional_get_element,
      map_optional_has_element, map_sequence_at,     map_sequence_construct, map_sequence_erase,
      map_sequence_insert,      map_sequence_length, map_sequence_map};
  return std::find(std::begin(kTaking), std::end(kTaking), map) != std::end(kTaking);
}

// ------------------------------------------------------------------------------------------------------- sequences

Status map_sequence_empty(SourceNode& node) {
  return set_list(node, 0, {});
}

Status map_sequence_construct(SourceNode& node) {
  PINNACE_TRY(node.need_inputs(std::max(node.input_count(), 1)));
  for (ValueId id : node.inputs()) PINNACE_TRY(check_element(node, id, {node.inputs().data(), 1}));
  return set_list(node, 0, {false, node.inputs()});
}

Status map_sequence_length(SourceNode& node) {
  PINNACE_ASSIGN(const std::vector<ValueId> elements, sequence_input(node, 0));
  PINNACE_ASSIGN(const ValueId length, node.constant_int(static_cast<int64_t>(elements.size())));
  return node.set_output(0, length);
}

Status map_sequence_insert(SourceNode& node) {
  PINNACE_ASSIGN(std::vector<ValueId> elements, sequence_input(node, 0));
  PINNACE_TRY(node.need_inputs(2));
  PINNACE_TRY(check_element(node, node.in(1), elements));
  const auto length = static_cast<int64_t>(elements.size());
  PINNACE_ASSIGN(const auto at, position(node, 2, length, length, length));
  if (!at) return refuse("the position must be known when the model is imported", node.proto().input(2));
  elements.insert(elements.begin() + *at, node.in(1));
  return set_list(node, 0, {false, std::move(elements)});
}

Status map_sequence_erase(SourceNode& node) {
  PINNACE_ASSIGN(std::vector<ValueId> elements, sequence_input(node, 0));
  const auto length = static_cast<int64_t>(elements.size());
  PINNACE_ASSIGN(const auto at, position(node, 1, length, length - 1, length - 1));
  if (!at) return refuse("the position must be known when the model is imported", node.proto().input(1));
  elements.erase(elements.begin() + *at);
  return set_list(node, 0, {false, std::move(elements)});
}

/// Where the position is known only at run time the elements are stacked; gather checks the position.
Status map_sequence_at(SourceNode& node) {
  PINNACE_ASSIGN(const std::vector<ValueId> elements, sequence_input(node, 0));
  PINNACE_TRY(node.need_inputs(2));
  const auto length = static_cast<int64_t>(elements.size());
  PINNACE_ASSIGN(const auto at, position(node, 1, length, length - 1, 0));
  if (at) return node.set_output(0, elements[static_cast<size_t>(*at)]);
  if (elements.empty()) return refuse("the sequence has no element");
  if (const size_t other = first_other_shape(node, elements); other < elements.size()) {
    return refuse("a position known only at run time needs elements of one shape",
                  str_cat("element ", other, " is ", to_string(node.type(elements[other])), ", element 0 ",
                          to_string(node.type(elements[0]))));
  }
  PINNACE_ASSIGN(const ValueId index, node.as_scalar(node.in(1)));
  PINNACE_ASSIGN(const ValueId all, stack(node, elements, 0));
  return node.finish("gather", {all, index});
}

Status map_concat_from_sequence(SourceNode& node) {
  PINNACE_ASSIGN(const std::vector<ValueId> elements, sequence_input(node, 0));
  if (elements.empty()) return refuse("the sequence has no element");
  if (!node.attr("axis")) return refuse("attribute 'axis' is required");
  PINNACE_ASSIGN(int64_t axis, node.int_attr("axis", 0));
  PINNACE_ASSIGN(const int64_t fresh, node.int_attr("new_axis", 0));
  const int64_t rank = node.type(elements[0]).rank() + (fresh != 0);
  if (axis < -rank || axis >= rank) return refuse(str_cat("axis must be within rank ", rank), str_cat(axis));
  if (axis < 0) axis += rank;
  if (!fresh) return node.finish("concat", elements, {{"axis", axis}});
  PINNACE_ASSIGN(const ValueId all, stack(node, elements, axis));
  return node.set_output(0, all);
}

/// Pieces of one size, the last smaller; of sizes in a list; or, without `split`, of size 1, which keepdims 0 removes.
Status map_split_to_sequence(SourceNode& node) {
  PINNACE_TRY(node.need_inputs(1));
  const TensorType x = node.in_type(0);
  PINNACE_ASSIGN(int64_t axis, node.int_attr("axis", 0));
  PINNACE_ASSIGN(const int64_t keep, node.int_attr("keepdims", 1));
  if (axis < -x.rank() || axis >= x.rank()) {
    return refuse(str_cat("axis must be within rank ", x.rank()), str_cat(axis));
  }
  if (axis < 0) axis += x.rank();
  const Dim dim = x.shape[static_cast<size_t>(axis)];
  int64_t pieces = 0;
  ValueId sizes = node.in(1);
  if (sizes != kNoValue && node.type(sizes).rank() == 1) {
    const Dim count = node.type(sizes).shape[0];
    if (!count.known()) return refuse("the number of pieces must be known when the model is imported");
    pieces = count.size;
  } else {
    int64_t each = 1;
    if (sizes != kNoValue) {
      const auto known = node.known_ints(1);
      if (!known) return refuse("the size of pieces must be known when the model is imported", node.proto().input(1));
      if (known->size() != 1 || (*known)[0] < 1) {
        return refuse("pieces must have a size of 1 or more", known->empty() ? "none" : str_cat((*known)[0]));
      }
      each = (*known)[0];
    }
    if (!dim.known()) return refuse(str_cat("dimension ", axis, " must be known to count the pieces"), to_string(x));
    pieces = dim.size / each + (dim.size % each != 0);
    if (pieces > 0 && pieces <= kMaxPieces) {
      std::vector<int64_t> all(static_cast<size_t>(pieces), each);
      all.back() = dim.size - (pieces - 1) * each;
      PINNACE_ASSIGN(sizes, node.constant_ints(all));
    }
  }
  if (pieces > kMaxPieces) return refuse(str_cat("at most ", kMaxPieces, " pieces are supported"), str_cat(pieces));
  if (pieces == 0) return set_list(node, 0, {});
  if (node.type(sizes).dtype == DType::kI32) {
    PINNACE_ASSIGN(sizes, node.emit("cast", {sizes}, {{"to", std::string("i64")}}));
  }
  PINNACE_ASSIGN(std::vector<ValueId> elements,
                 node.emit_many("split", {node.in(0), sizes}, {{"axis", axis}}, static_cast<int>(pieces)));
  if (!keep && !node.has(1)) {
    PINNACE_ASSIGN(const ValueId axes, node.constant_ints(std::vector<int64_t>{axis}));
    for (ValueId& id : elements) {
      PINNACE_ASSIGN(id, node.emit("squeeze", {id, axes}));
    }
  }
  return set_list(node, 0, {false, std::move(elements)});
}

/// The body once for each element of the first sequence. Other sequences have its length, tensors are the same for all.
Status map_sequence_map(SourceNode& node) {
  PINNACE_ASSIGN(const proto::GraphProto* body, node.graph_attr("body"));
  PINNACE_ASSIGN(const std::vector<ValueId> first, sequence_input(node, 0));
  PINNACE_TRY(node.need_inputs(node.input_count()));
  if (body->input_size() != node.input_count() || body->output_size() < node.output_count()) {
    return refuse(
        str_cat("a body with ", node.input_count(), " inputs and ", node.output_count(), " outputs is needed"),
        str_cat(body->input_size(), " and ", body->output_size()));
  }
  for (ValueId id : node.inputs()) {
    if (!is_listed(id)) continue;
    const Listed& list = import_of(node).list(id);
    if (list.optional) return refuse("inputs must be sequences and tensors", "an optional value");
    if (list.elements.size() != first.size()) {
      return refuse(str_cat("all sequences must have the length of the first, ", first.size()),
                    str_cat(list.elements.size()));
    }
  }
  std::vector<Listed> lists(static_cast<size_t>(node.output_count()));
  for (size_t i = 0; i < first.size(); ++i) {
    // Maps within maps multiply a file faster than functions do: what they make counts three times.
    node.scope().builder.import.nodes += 2 * (1 + body->node_size());
    std::vector<ValueId> inputs = node.inputs();
    for (ValueId& id : inputs) {
      if (is_listed(id)) id = import_of(node).list(id).elements[i];
    }
    PINNACE_ASSIGN(const std::vector<ValueId> outputs,
                   inline_graph(node, *body, inputs, str_cat(node.name(), "/", i, "/")));
    for (size_t k = 0; k < lists.size(); ++k) {
      if (outputs[k] == kPoisoned) return recorded();
      if (outputs[k] == kNoValue) return refuse("an output of the body has no name");
      PINNACE_TRY(check_element(node, outputs[k], lists[k].elements));
      lists[k].elements.push_back(outputs[k]);
    }
  }
  for (size_t k = 0; k < lists.size(); ++k) PINNACE_TRY(set_list(node, static_cast<int>(k), std::move(lists[k])));
  return {};
}

// -------------------------------------------------------------------------------------------------- optional values

Status map_optional(SourceNode& node) {
  if (!node.has(0)) return set_list(node, 0, {true, {}});
  if (is_listed(node.in(0)) && import_of(node).list(node.in(0)).optional) {
    return refuse("an optional value must hold a tensor or a sequence", "an optional value");
  }
  return set_list(node, 0, {true, {node.in(0)}});
}

/// A tensor or a sequence always has an element, itself.
Status map_optional_has_element(SourceNode& node) {
  bool has = node.has(0);
  if (is_listed(node.in(0))) {
    const Listed& list = import_of(node).list(node.in(0));
    has = !list.optional || !list.elements.empty();
  }
  PINNACE_ASSIGN(const ValueId answer, node.constant_scalar(DType::kBool, has));
  return node.set_output(0, answer);
}

Status map_optional_get_element(SourceNode& node) {
  PINNACE_TRY(node.need_inputs(1));
  ValueId id = node.in(0);
  if (is_listed(id) && import_of(node).list(id).optional) {
    const Listed& list = import_of(node).list(id);
    if (list.elements.empty()) return refuse("the optional value must have an element", "it is empty");
    id = list.elements[0];
  }
  return node.set_output(0, id);
}

}  // namespace pinnace::onnx
