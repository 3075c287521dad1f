// try_shapes: what the shape rules say of a graph at given shapes of its inputs. Whoever has to make up inputs searches
// sizes with it, and reads from the details what each input is used for.
#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <map>

#include "base/exception_boundary.h"
#include "convert/model_data.h"
#include "ops/type_inference_counted.h"
#include "program/program_data.h"

namespace pinnace {
namespace {

/// Contents of more elements are not shown to whoever asks what an input is compared with: an encoding of classes has a
/// few thousand at most.
constexpr int64_t kShownElements = 4096;

Result<std::vector<TensorType>> sized(const Graph& graph, std::span<const std::vector<int64_t>> shapes) {
  if (shapes.size() != graph.inputs.size()) {
    return invalid("shapes of ", shapes.size(), " inputs, the graph has ", graph.inputs.size());
  }
  std::vector<TensorType> types;
  types.reserve(shapes.size());
  for (size_t i = 0; i < shapes.size(); ++i) {
    const Value& input = graph.value(graph.inputs[i]);
    TensorType type = input.type;
    if (shapes[i].size() != type.shape.size()) {
      return invalid("input '", input.name, "' has rank ", type.rank(), ", the shape given has ", shapes[i].size());
    }
    int64_t bits = dtype_bits(type.dtype);
    for (size_t d = 0; d < shapes[i].size(); ++d) {
      const int64_t size = shapes[i][d];
      if (size < 0 || (type.shape[d].known() && type.shape[d].size != size)) {
        return invalid("input '", input.name, "' is ", to_string(input.type, graph.symbols), ", its dimension ", d,
                       " cannot be ", size);
      }
      if (size > 0 && bits > INT64_MAX / 16 / size) return invalid("input '", input.name, "' is larger than memory");
      bits *= std::max<int64_t>(size, 1);
      type.shape[d] = size;
    }
    types.push_back(std::move(type));
  }
  return types;
}

template <class T>
void read_as(const std::byte* from, std::vector<int64_t>& to) {
  for (size_t i = 0; i < to.size(); ++i) {
    T element;
    std::memcpy(&element, from + i * sizeof(T), sizeof(T));
    to[i] = static_cast<int64_t>(+element);  // int8_t is a number here, not a character
  }
}

/// The range of more floats is not looked for.
constexpr int64_t kRangedElements = 4096;

template <class T>
void read_range(const Constant& data, int64_t count, ValueAt& to) {
  for (int64_t i = 0; i < count; ++i) {
    T element;
    std::memcpy(&element, data.data() + static_cast<size_t>(i) * sizeof(T), sizeof(T));
    if (!std::isfinite(element)) continue;
    const double value = element;
    if (!to.range) to.range = {value, value};
    to.range = {std::min(to.range->first, value), std::max(to.range->second, value)};
  }
}

void read_range(const TensorType& type, const ConstantPtr& data, ValueAt& to) {
  if (!data || !type.concrete() || type.elements() > kRangedElements || !data->check().ok()) return;
  if (type.dtype == DType::kF32) read_range<float>(*data, type.elements(), to);
  if (type.dtype == DType::kF64) read_range<double>(*data, type.elements(), to);
}

/// The contents of a small value of whole numbers.
void read_contents(const TensorType& type, const ConstantPtr& data, ValueAt& to) {
  if (!data || !type.concrete() || type.elements() > kShownElements || !data->check().ok()) return;
  to.contents.resize(static_cast<size_t>(type.elements()));
  to.known = true;
  switch (type.dtype) {
    case DType::kI8:
      return read_as<int8_t>(data->data(), to.contents);
    case DType::kU8:
    case DType::kBool:
      return read_as<uint8_t>(data->data(), to.contents);
    case DType::kI16:
      return read_as<int16_t>(data->data(), to.contents);
    case DType::kU16:
      return read_as<uint16_t>(data->data(), to.contents);
    case DType::kI32:
      return read_as<int32_t>(data->data(), to.contents);
    case DType::kU32:
      return read_as<uint32_t>(data->data(), to.contents);
    case DType::kI64:
    case DType::kU64:
      return read_as<int64_t>(data->data(), to.contents);
    default:
      to.contents.clear();
      to.known = false;
  }
}

template <class T>
Result<ConstantPtr> written_as(std::span<const int64_t> values, const std::string& input) {
  std::vector<T> elements;
  for (int64_t value : values) {
    if constexpr (sizeof(T) < 8) {
      if (value < std::numeric_limits<T>::min() || value > std::numeric_limits<T>::max()) {
        return invalid("input '", input, "' cannot hold ", value);
      }
    }
    elements.push_back(static_cast<T>(value));
  }
  return Constant::copy_of(elements.data(), elements.size() * sizeof(T));
}

Result<ConstantPtr> constant_of(const TensorType& type, std::span<const int64_t> values, const std::string& input) {
  if (type.elements() != static_cast<int64_t>(values.size()) || type.elements() > kShownElements) {
    return invalid("input '", input, "' is ", to_string(type), ", the contents given are ", values.size(),
                   " of at most ", kShownElements);
  }
  switch (type.dtype) {
    case DType::kI8:
      return written_as<int8_t>(values, input);
    case DType::kBool:
      for (int64_t value : values) {
        if (value != 0 && value != 1) return invalid("input '", input, "' cannot hold ", value);
      }
      [[fallthrough]];
    case DType::kU8:
      return written_as<uint8_t>(values, input);
    case DType::kI16:
      return written_as<int16_t>(values, input);
    case DType::kU16:
      return written_as<uint16_t>(values, input);
    case DType::kI32:
      return written_as<int32_t>(values, input);
    case DType::kU32:
      return written_as<uint32_t>(values, input);
    case DType::kI64:
    case DType::kU64:
      return written_as<int64_t>(values, input);
    default:
      return invalid("input '", input, "' is ", to_string(type), ", contents are given of integers and bools alone");
  }
}

/// One entry for each input, null where nothing is known of its contents; empty where nothing is given.
Result<std::vector<ConstantPtr>> known_contents(const Graph& graph, std::span<const TensorType> types,
                                                std::span<const InputContents> contents) {
  std::vector<ConstantPtr> data(contents.empty() ? 0 : types.size());
  for (const InputContents& given : contents) {
    if (given.input >= types.size()) return invalid("contents of input ", given.input, " of ", types.size());
    const std::string& name = graph.value(graph.inputs[given.input]).name;
    PINNACE_ASSIGN(data[given.input], constant_of(types[given.input], given.values, name));
  }
  return data;
}

/// Writes the nodes and values of a graph, and of those nested in it, under names that tell them apart.
class Details {
 public:
  Details(const OpTable& ops, ShapeTrial& trial) : ops_(ops), trial_(trial) {}

  /// `inside`: names that values of this graph have outside it, by id; `prefix` goes before all others.
  void append(const Graph& graph, const TypeInference& found, std::map<ValueId, std::string> inside,
              const std::string& prefix) {
    const auto name = [&](ValueId id) -> std::string {
      if (id == kNoValue) return {};
      const auto at = inside.find(id);
      return at == inside.end() ? prefix + graph.value(id).name : at->second;
    };
    for (size_t i = 0; i < graph.values.size(); ++i) {
      const auto id = static_cast<ValueId>(i);
      if (inside.contains(id)) continue;
      ValueAt value{name(id), found.types[i], false, {}};
      read_contents(found.types[i], found.data[i], value);
      read_range(found.types[i], found.data[i], value);
      trial_.values.push_back(std::move(value));
    }
    for (const auto& node : graph.nodes) {
      NodeAt at{node->name, node->op, {}, {}, {}, multiply_adds(*node, found.types)};
      for (ValueId id : node->inputs) at.inputs.push_back(name(id));
      for (ValueId id : node->outputs) at.outputs.push_back(name(id));
      if (const OpDef* op = ops_.find(node->op)) {
        for (const AttrDef& attr : op->attrs) {
          if (attr.kind == AttrKind::kInt && !node->attr(attr.name)) {
            if (!attr.required) at.attrs.emplace_back(attr.name, attr.int_default());
          }
        }
      }
      for (const auto& [key, attr] : node->attrs) {
        if (const auto* number = std::get_if<int64_t>(&attr)) at.attrs.emplace_back(key, *number);
      }
      trial_.nodes.push_back(at);
      for (const auto& [key, attr] : node->attrs) {
        if (const auto* body = std::get_if<GraphPtr>(&attr)) {
          append(**body, begin_type_inference(**body), entering(*node, at.inputs, **body),
                 str_cat(prefix, node->name, ".", key, "/"));
        }
      }
    }
  }

 private:
  std::optional<int64_t> multiply_adds(const Node& node, std::span<const TensorType> types) const {
    const OpDef* op = ops_.find(node.op);
    if (!op || !op->multiply_adds) return 0;
    const auto of = [&](ValueId id) { return id == kNoValue ? nullptr : &types[static_cast<size_t>(id)]; };
    std::vector<const TensorType*> inputs;
    bool known = of(node.outputs[0])->concrete();
    for (ValueId id : node.inputs) {
      inputs.push_back(of(id));
      known &= !inputs.back() || inputs.back()->concrete();
    }
    constexpr double kExact = 9007199254740992;  // 2^53
    const double count = known ? op->multiply_adds(inputs, *of(node.outputs[0])) : kExact;
    return count < kExact ? std::optional(static_cast<int64_t>(count)) : std::nullopt;
  }

  /// Names of a nested graph's inputs: a branch has those behind the condition, a loop's body those behind trip count
  /// and condition, where the values that it carries enter in the first round.
  static std::map<ValueId, std::string> entering(const Node& node, const std::vector<std::string>& names,
                                                 const Graph& body) {
    std::map<ValueId, std::string> inside;
    const size_t own = node.op == "loop" ? 2 : 0, skipped = node.op == "loop" ? 2 : node.op == "if" ? 1 : 0;
    for (size_t i = own; i < body.inputs.size() && i - own + skipped < names.size(); ++i) {
      if (!names[i - own + skipped].empty()) inside.emplace(body.inputs[i], names[i - own + skipped]);
    }
    return inside;
  }

  const OpTable& ops_;
  ShapeTrial& trial_;
};

Result<ShapeTrial> try_graph(const Graph& graph, std::span<const std::vector<int64_t>> shapes, bool details,
                             const OpTable& ops, std::span<const InputContents> contents) {
  PINNACE_ASSIGN(const std::vector<TensorType> types, sized(graph, shapes));
  PINNACE_ASSIGN(const std::vector<ConstantPtr> data, known_contents(graph, types, contents));
  ShapeTrial trial;
  const Result<TypeInference> found = infer_types_counted(graph, types, data, ops, trial.inferred);
  if (!found.ok()) {
    const Code code = found.status().code();
    if (code == Code::kCancelled || code == Code::kOutOfMemory) return found.status();
    trial.failure = found.status().message();
    return trial;
  }
  trial.fits = true;
  if (details) Details(ops, trial).append(graph, *found, {}, "");
  return trial;
}

/// The symbol as narrowed by `range`. kInvalidArgument: it admits no size, or one that the symbol does not.
Result<Symbol> narrowed(const Symbol& symbol, const Symbol& range) {
  const auto text = [](const Symbol& s) {
    return str_cat(s.min, "..", s.max == Symbol::kUnbounded ? std::string() : str_cat(s.max), " by ", s.multiple_of);
  };
  if (range.min < 0 || range.multiple_of < 1 || range.max / range.multiple_of * range.multiple_of < range.min) {
    return invalid("dimension '", symbol.name, "': no size is in ", text(range));
  }
  if (range.min < symbol.min || range.max > symbol.max || range.multiple_of % symbol.multiple_of != 0) {
    return invalid("dimension '", symbol.name, "': range ", text(range), " is not within ", text(symbol));
  }
  return range;
}

}  // namespace

Result<ShapeTrial> try_shapes(const Program& program, std::span<const std::vector<int64_t>> shapes, bool details,
                              std::span<const CustomOp* const> ops, std::span<const InputContents> contents) {
  return exception_boundary([&]() -> Result<ShapeTrial> {
    PINNACE_ASSIGN(const std::shared_ptr<const CustomOps> custom, CustomOps::create(ops));
    return try_graph(program.data().graph, shapes, details, custom->table(), contents);
  });
}

Result<ShapeTrial> Model::try_shapes(std::span<const std::vector<int64_t>> shapes, bool details,
                                     std::span<const InputContents> contents) const {
  return exception_boundary([&] { return try_graph(data_->graph, shapes, details, data_->custom->table(), contents); });
}

Result<Model> Model::with_ranges(std::span<const Symbol> ranges) const {
  return exception_boundary([&]() -> Result<Model> {
    std::shared_ptr<Data> data = data_->clone();
    for (const Symbol& range : ranges) {
      auto& symbols = data->graph.symbols;
      const auto at =
          std::find_if(symbols.begin(), symbols.end(), [&](const Symbol& s) { return s.name == range.name; });
      if (at == symbols.end()) return invalid("the model has no dynamic dimension '", range.name, "'");
      PINNACE_ASSIGN(*at, narrowed(*at, range));
    }
    return Model(std::move(data));
  });
}

}  // namespace pinnace
