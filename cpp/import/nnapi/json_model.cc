// The reader of NNAPI models in JSON, on simdjson's DOM: the text is validated as a whole first, then walked. Values
// are kept once per buffer and operand type, so that a small text cannot ask for much memory.
#include "import/nnapi/json_model.h"

#include <simdjson.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <map>

#include "base/files/mapped_file.h"
#include "base/half.h"
#include "nnapi/operations.h"

namespace pinnace::nnapi {
namespace {

using simdjson::dom::array;
using simdjson::dom::element;

constexpr size_t kMostBytes = size_t{1} << 30;  // of the text; the document takes up to 14 times as many
constexpr int kDeepestReference = 64;

/// A number, or the string that stands for what JSON has no number for.
bool real_of(element e, double& to) {
  if (!e.get_double().get(to)) return true;
  std::string_view text;
  if (e.get_string().get(text)) return false;
  constexpr double infinity = std::numeric_limits<double>::infinity();
  if (text == "nan") return to = std::numeric_limits<double>::quiet_NaN(), true;
  if (text == "inf") return to = infinity, true;
  if (text == "-inf") return to = -infinity, true;
  return false;
}

template <class T>
bool put_integer(element e, std::byte* to) {
  int64_t n;
  if (e.get_int64().get(n)) return false;
  if (n < std::numeric_limits<T>::min() || n > std::numeric_limits<T>::max()) return false;
  const T value = static_cast<T>(n);
  std::memcpy(to, &value, sizeof value);
  return true;
}

bool put(OperandCode type, element e, std::byte* to) {
  double real;
  switch (type) {
    case OperandCode::kFloat32:
    case OperandCode::kTensorFloat32: {
      if (!real_of(e, real)) return false;
      const auto value = static_cast<float>(real);
      std::memcpy(to, &value, sizeof value);
      return true;
    }
    case OperandCode::kFloat16:
    case OperandCode::kTensorFloat16: {
      if (!real_of(e, real)) return false;
      const uint16_t value = float_to_half(static_cast<float>(real));
      std::memcpy(to, &value, sizeof value);
      return true;
    }
    case OperandCode::kInt32:
    case OperandCode::kTensorInt32:
      return put_integer<int32_t>(e, to);
    case OperandCode::kUint32:
      return put_integer<uint32_t>(e, to);
    case OperandCode::kTensorQuant16Symm:
      return put_integer<int16_t>(e, to);
    case OperandCode::kTensorQuant16Asymm:
      return put_integer<uint16_t>(e, to);
    case OperandCode::kTensorQuant8Symm:
    case OperandCode::kTensorQuant8SymmPerChannel:
    case OperandCode::kTensorQuant8AsymmSigned:
      return put_integer<int8_t>(e, to);
    default:
      return put_integer<uint8_t>(e, to);
  }
}

/// One case, and where in it the reader is, for its sentences.
class CaseReader {
 public:
  explicit CaseReader(std::string path) : path_(std::move(path)) {}

  Result<JsonModel> read(element root, const std::string& name) {
    std::string_view format;
    if (root["format"].get(format) || format != "nnapi-vectors-1") {
      return corrupt("format is not \"nnapi-vectors-1\"");
    }
    PINNACE_ASSIGN(buffers_, list(root, "buffers"));
    PINNACE_TRY(find_case(root, name));
    bool relaxed = false;
    PINNACE_TRY(optional(case_, "relaxed", relaxed));
    PINNACE_ASSIGN(refs_, list(case_, "refs"));
    referenced_.resize(refs_.size());
    element main;
    if (case_["main"].get(main)) return corrupt("there is no main graph");
    where_ = "main";
    auto model = std::make_shared<Model>();
    PINNACE_TRY(read_graph(main, *model, 0));
    model->relaxed = relaxed;
    JsonModel made;
    PINNACE_TRY(read_inputs(main, *model, made.values));
    made.model = std::move(*model);
    made.feature_level = feature_level_;
    return made;
  }

 private:
  template <class... Parts>
  Status corrupt(const Parts&... parts) const {
    return Status(Code::kCorruptFile, str_cat(path_, ": ", where_, where_.empty() ? "" : ": ", parts...));
  }

  /// Items of a list, which the document finds only one after the other.
  Result<std::vector<element>> list(element of, const char* key) const {
    array items;
    if (of[key].get(items)) return corrupt("there is no list of ", key);
    return std::vector<element>(items.begin(), items.end());
  }

  /// A field that may be missing: `to` stays what it is then.
  template <class T>
  Status optional(element of, const char* key, T& to) const {
    const simdjson::error_code code = of[key].get(to);
    if (code == simdjson::SUCCESS || code == simdjson::NO_SUCH_FIELD) return {};
    return corrupt("\"", key, "\": ", simdjson::error_message(code));
  }

  template <class T>
  Result<T> number(element e, const char* what) const {
    int64_t n;
    if (e.get_int64().get(n) || n < std::numeric_limits<T>::min() || n > std::numeric_limits<T>::max()) {
      return corrupt(what, " is not an integer of its range");
    }
    return static_cast<T>(n);
  }

  Result<std::vector<uint32_t>> numbers(element of, const char* key) const {
    PINNACE_ASSIGN(const std::vector<element> items, list(of, key));
    std::vector<uint32_t> made;
    for (element e : items) {
      PINNACE_ASSIGN(const uint32_t n, number<uint32_t>(e, key));
      made.push_back(n);
    }
    return made;
  }

  Status find_case(element root, const std::string& name) {
    PINNACE_ASSIGN(const std::vector<element> cases, list(root, "cases"));
    if (name.empty() && cases.size() != 1) {
      return invalid(path_, ": holds ", cases.size(), " models, say by name which one");
    }
    for (element e : cases) {
      std::string_view is;
      if (e["name"].get(is)) return corrupt("a case has no name");
      if (!name.empty() && is != name) continue;
      case_ = e;
      return {};
    }
    return invalid(path_, ": there is no model '", name, "'");
  }

  /// The values of buffer `index` as a type has them.
  Result<ConstantPtr> values(size_t index, OperandCode type) {
    ConstantPtr& made = values_[{index, type}];
    if (made) return made;
    array items;
    if (index >= buffers_.size() || buffers_[index].get(items)) return corrupt("there is no buffer ", index);
    const size_t size = info(type).bytes;
    size_t count = 0;  // the document's own counter stops at 2^24
    for ([[maybe_unused]] element e : items) ++count;
    PINNACE_ASSIGN(Buffer bytes, Buffer::allocate(count * size, "values of a buffer"));
    std::byte* to = bytes.data();
    for (element e : items) {
      if (!put(type, e, to)) return corrupt("buffer ", index, " holds what is no value of ", info(type).name);
      to += size;
    }
    made = Constant::of(std::move(bytes));
    return made;
  }

  Result<ConstantPtr> value_of(element e, const Operand& operand) {
    size_t index;
    if (e["buf"].get(index)) return corrupt("there is no buffer");
    PINNACE_ASSIGN(ConstantPtr made, values(index, operand.type));
    if (made->bytes() > 0 && (!operand.shape_known() || operand.bytes() != made->bytes())) {
      return corrupt("buffer ", index, " has ", made->bytes(), " bytes, the operand ",
                     operand.shape_known() ? operand.bytes() : 0);
    }
    return made;
  }

  Status read_channels(element e, Operand& operand) const {
    element channels;
    if (e["pc"].get(channels)) return corrupt("there are no scales per channel");
    element dim;
    if (channels["dim"].get(dim)) return corrupt("scales per channel have no dimension");
    PINNACE_ASSIGN(operand.channel_dim, number<uint32_t>(dim, "the dimension of channels"));
    PINNACE_ASSIGN(const std::vector<element> scales, list(channels, "scales"));
    if (operand.channel_dim >= operand.dims.size() || scales.size() != operand.dims[operand.channel_dim] ||
        scales.size() == 0) {
      return corrupt(scales.size(), " scales along dimension ", operand.channel_dim);
    }
    for (element s : scales) {
      double scale;
      const bool fits =
          !s.get_double().get(scale) && static_cast<float>(scale) > 0 && std::isfinite(static_cast<float>(scale));
      if (!fits) return corrupt("a scale of a channel is not positive");
      operand.channel_scales.push_back(static_cast<float>(scale));
    }
    return {};
  }

  /// Where its value comes from; inputs and outputs of the graph are marked later.
  Status read_life(element e, Operand& operand, int depth) {
    std::string_view life;
    if (e["life"].get(life)) return corrupt("nothing says where its value comes from");
    if (life == "input" || life == "output" || life == "temp") return {};
    if (life == "none") {
      operand.lifetime = Lifetime::kOmitted;
      return {};
    }
    if (life == "graph") {
      size_t index;
      if (e["ref"].get(index) || index >= refs_.size()) return corrupt("it refers to no graph");
      if (operand.type != OperandCode::kModel) return corrupt("only a MODEL can be a graph");
      PINNACE_ASSIGN(operand.model, referenced(index, depth));
      operand.lifetime = Lifetime::kModel;
      return {};
    }
    if (life != "const" && life != "const_ref") return corrupt("'", life, "' is no origin of a value");
    if (operand.type == OperandCode::kModel) return corrupt("a MODEL has no value");
    PINNACE_ASSIGN(ConstantPtr value, value_of(e, operand));
    if (value->bytes() == 0) {  // as calls say it: no bytes is no value
      operand.lifetime = Lifetime::kOmitted;
      return {};
    }
    operand.lifetime = Lifetime::kConstant;
    operand.data = {value->data(), value->bytes()};
    operand.owner = std::move(value);
    return {};
  }

  Result<Operand> read_operand(element e, int depth) {
    Operand operand;
    element code;
    if (e["code"].get(code)) return corrupt("there is no type");
    PINNACE_ASSIGN(const int32_t type, number<int32_t>(code, "the type"));
    PINNACE_ASSIGN(operand.dims, numbers(e, "dims"));
    double scale = 0;
    int64_t zero_point = 0;
    PINNACE_TRY(optional(e, "scale", scale));
    PINNACE_TRY(optional(e, "zp", zero_point));
    operand.type = static_cast<OperandCode>(type);
    operand.scale = static_cast<float>(scale);
    if (zero_point != static_cast<int32_t>(zero_point)) return corrupt("\"zp\" is not an integer of its range");
    operand.zero_point = static_cast<int32_t>(zero_point);
    const uint32_t* dims = operand.dims.empty() ? nullptr : operand.dims.data();
    const Status status =
        validate_operand(type, static_cast<uint32_t>(operand.dims.size()), dims, operand.scale, operand.zero_point);
    if (!status.ok()) return corrupt(status.message());
    feature_level_ = std::max<int>(feature_level_, info(operand.type).since);
    if (operand.type == OperandCode::kTensorQuant8SymmPerChannel) PINNACE_TRY(read_channels(e, operand));
    PINNACE_TRY(read_life(e, operand, depth));
    if (operand.type == OperandCode::kModel && !operand.model) return corrupt("a MODEL without its graph");
    return operand;
  }

  Status read_operations(element graph, Model& model) {
    PINNACE_ASSIGN(const std::vector<element> operations, list(graph, "operations"));
    for (element e : operations) {
      Operation operation;
      element code;
      if (e["code"].get(code)) return corrupt("an operation has no code");
      PINNACE_ASSIGN(operation.code, number<int32_t>(code, "the code of an operation"));
      PINNACE_ASSIGN(operation.inputs, numbers(e, "in"));
      PINNACE_ASSIGN(operation.outputs, numbers(e, "out"));
      const Result<int> level = validate_operation(model, operation);
      if (!level.ok()) {
        return level.status().with_prefix(str_cat(path_, ": ", where_, ": operation ", model.operations.size(), ": "));
      }
      feature_level_ = std::max(feature_level_, *level);
      model.operations.push_back(std::move(operation));
    }
    return {};
  }

  Status read_edges(element graph, const char* key, Lifetime lifetime, Model& model, std::vector<uint32_t>& edges) {
    PINNACE_ASSIGN(edges, numbers(graph, key));
    if (edges.empty()) return corrupt("a graph without ", key);
    for (uint32_t i : edges) {
      const bool free = i < model.operands.size() && model.operands[i].lifetime == Lifetime::kTemporary;
      if (!free) return corrupt("operand ", i, " cannot be one of the ", key);
      model.operands[i].lifetime = lifetime;
    }
    return {};
  }

  Status read_graph(element graph, Model& model, int depth) {
    if (depth > kDeepestReference) return corrupt("graphs refer to graphs more than ", kDeepestReference, " deep");
    PINNACE_ASSIGN(const std::vector<element> operands, list(graph, "operands"));
    const std::string own = where_;
    for (element e : operands) {
      where_ = str_cat(own, ": operand ", model.operands.size());
      PINNACE_ASSIGN(Operand operand, read_operand(e, depth));
      model.operands.push_back(std::move(operand));
    }
    where_ = own;
    PINNACE_TRY(read_operations(graph, model));
    PINNACE_TRY(read_edges(graph, "inputs", Lifetime::kInput, model, model.inputs));
    PINNACE_TRY(read_edges(graph, "outputs", Lifetime::kOutput, model, model.outputs));
    return finish_model(model).with_prefix(str_cat(path_, ": ", where_, ": "));
  }

  /// Referenced graph `index`, read when it is first needed: it must be whole before an operation that refers to it is
  /// checked. Graphs that refer to each other run into the limit of depth.
  Result<std::shared_ptr<const Model>> referenced(size_t index, int depth) {
    if (referenced_[index]) return referenced_[index];
    const std::string own = std::exchange(where_, str_cat("graph ", index));
    auto model = std::make_shared<Model>();
    PINNACE_TRY(read_graph(refs_[index], *model, depth + 1));
    where_ = own;
    referenced_[index] = model;
    return referenced_[index];
  }

  Status read_inputs(element main, const Model& model, std::vector<ConstantPtr>& to) {
    PINNACE_ASSIGN(const std::vector<element> operands, list(main, "operands"));
    for (uint32_t i : model.inputs) {
      where_ = str_cat("main: operand ", i);
      PINNACE_ASSIGN(ConstantPtr value, value_of(operands[i], model.operands[i]));
      if (value->bytes() == 0) value = nullptr;
      to.push_back(std::move(value));
    }
    return {};
  }

  std::string path_, where_;
  element case_;
  std::vector<element> buffers_, refs_;
  std::map<std::pair<size_t, OperandCode>, ConstantPtr> values_;
  std::vector<std::shared_ptr<const Model>> referenced_;
  int feature_level_ = 1;
};

}  // namespace

Result<JsonModel> parse_json_model(const std::string& path, const std::string& name) {
  PINNACE_ASSIGN(const std::shared_ptr<const MappedFile> file, MappedFile::open(path));
  const size_t length = file->bytes().size();
  if (length > kMostBytes) return Status(Code::kCorruptFile, str_cat(path, ": ", length, " bytes of JSON"));
  // The parser reads whole vectors beyond the end.
  PINNACE_ASSIGN(Buffer text, Buffer::allocate(length + simdjson::SIMDJSON_PADDING, "JSON"));
  std::memcpy(text.data(), file->bytes().data(), length);
  std::memset(text.data() + length, 0, simdjson::SIMDJSON_PADDING);
  simdjson::dom::parser parser;
  element root;
  const auto code = parser.parse(reinterpret_cast<const uint8_t*>(text.data()), length, false).get(root);
  if (code == simdjson::MEMALLOC) return out_of_memory("parsing ", length, " bytes of JSON");
  if (code) return Status(Code::kCorruptFile, str_cat(path, ": not JSON: ", simdjson::error_message(code)));
  return CaseReader(path).read(root, name);
}

}  // namespace pinnace::nnapi
