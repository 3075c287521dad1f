// The JSON of a dumped model.
#include "nnapi_host/test_bed/dump.h"

#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstring>

#include "base/files/atomic_file.h"
#include "base/files/mapped_file.h"
#include "base/half.h"
#include "base/text.h"
#include "nnapi/operations.h"
#include "nnapi_host/execution.h"

namespace pinnace::nnapi_host {
namespace {

using nnapi::Lifetime;
using nnapi::Operand;
using nnapi::OperandCode;

/// What is known of one input or output of the main model.
struct Value {
  std::vector<uint32_t> dims;
  std::vector<std::byte> bytes;  ///< empty: omitted
  bool compared = false;
};

template <class T>
T load(const std::byte* at) {
  T value;
  std::memcpy(&value, at, sizeof value);
  return value;
}

/// Strings stand for what JSON has no numbers for.
void append_real(std::string& to, double value, int digits) {
  if (std::isnan(value)) {
    to += "\"nan\"";
  } else if (std::isinf(value)) {
    to += value < 0 ? "\"-inf\"" : "\"inf\"";
  } else {
    char text[32];
    const auto end = std::to_chars(text, text + sizeof text, value, std::chars_format::general, digits);
    to.append(text, end.ptr);
  }
}

std::string numbers(OperandCode type, std::span<const std::byte> bytes) {
  const size_t size = nnapi::info(type).bytes;
  std::string text = "[";
  for (size_t at = 0; size > 0 && at + size <= bytes.size(); at += size) {
    if (at > 0) text += ", ";
    const std::byte* element = bytes.data() + at;
    switch (type) {
      case OperandCode::kFloat32:
      case OperandCode::kTensorFloat32:
        append_real(text, load<float>(element), 9);
        break;
      case OperandCode::kFloat16:
      case OperandCode::kTensorFloat16:
        append_real(text, half_to_float(load<uint16_t>(element)), 9);
        break;
      case OperandCode::kInt32:
      case OperandCode::kTensorInt32:
        append_text(text, load<int32_t>(element));
        break;
      case OperandCode::kUint32:
        append_text(text, load<uint32_t>(element));
        break;
      case OperandCode::kTensorQuant16Symm:
        append_text(text, load<int16_t>(element));
        break;
      case OperandCode::kTensorQuant16Asymm:
        append_text(text, load<uint16_t>(element));
        break;
      case OperandCode::kTensorQuant8Symm:
      case OperandCode::kTensorQuant8SymmPerChannel:
      case OperandCode::kTensorQuant8AsymmSigned:
        append_text(text, static_cast<int>(load<int8_t>(element)));
        break;
      default:
        append_text(text, static_cast<int>(load<uint8_t>(element)));
    }
  }
  return text + "]";
}

/// The case of one model: its graph, those that it refers to, and all buffers.
class Case {
 public:
  Case(const nnapi::Model& main, const std::vector<Value>& inputs, const std::vector<Value>& outputs)
      : inputs_(inputs), outputs_(outputs) {
    graphs_.push_back(&main);
    for (size_t g = 0; g < graphs_.size(); ++g) texts_.push_back(graph(g));
  }

  std::string text(const std::string& name) const {
    std::string out = str_cat("{\"format\": \"nnapi-vectors-1\", \"spec\": \"", name, "\", \"folder\": \"dump\",\n",
                              "\"buffers\": [");
    for (size_t i = 0; i < buffers_.size(); ++i) out += str_cat(i ? ",\n" : "\n", buffers_[i]);
    out += str_cat("],\n\"cases\": [{\"name\": \"", name,
                   "\", \"variations\": [], \"min_level\": ", nnapi::feature_level_code(feature_level_),
                   ", \"relaxed\": ", graphs_[0]->relaxed,
                   ", \"expect_failure\": false, \"multinomial_tolerance\": 0, \"any_fp16\": ", any_fp16_,
                   ",\n\"main\": ", texts_[0], ",\n\"refs\": [");
    for (size_t g = 1; g < texts_.size(); ++g) out += str_cat(g > 1 ? ",\n" : "\n", texts_[g]);
    return out + "]}]}\n";
  }

 private:
  size_t buffer(OperandCode type, std::span<const std::byte> bytes) {
    buffers_.push_back(numbers(type, bytes));
    return buffers_.size() - 1;
  }
  size_t reference(const nnapi::Model* model) {
    const auto found = std::find(graphs_.begin() + 1, graphs_.end(), model);
    if (found == graphs_.end()) graphs_.push_back(model);
    return static_cast<size_t>(std::find(graphs_.begin() + 1, graphs_.end(), model) - graphs_.begin()) - 1;
  }

  std::string value_of(size_t g, const Operand& operand, uint32_t index, const Value* value) {
    switch (operand.lifetime) {
      case Lifetime::kTemporary:
        return "\"life\": \"temp\"";
      case Lifetime::kOmitted:
        return "\"life\": \"none\"";
      case Lifetime::kConstant:
        return str_cat("\"life\": \"const\", \"buf\": ", buffer(operand.type, operand.data));
      case Lifetime::kModel:
        return str_cat("\"life\": \"graph\", \"ref\": ", reference(operand.model.get()));
      default:
        break;
    }
    const nnapi::Model& model = *graphs_[g];
    const bool input = std::find(model.inputs.begin(), model.inputs.end(), index) != model.inputs.end();
    std::string text = input ? "\"life\": \"input\"" : "\"life\": \"output\"";
    if (!value) return text;
    text += str_cat(", \"buf\": ", buffer(operand.type, value->bytes));
    return !input && !value->compared ? text + ", \"ignored\": true" : text;
  }

  std::string operand(size_t g, uint32_t index) {
    const Operand& o = graphs_[g]->operands[index];
    const nnapi::OperandCodeInfo& type = nnapi::info(o.type);
    const Value* value = nullptr;
    const auto look = [&](const std::vector<uint32_t>& list, const std::vector<Value>& values) {
      const auto found = std::find(list.begin(), list.end(), index);
      if (g == 0 && found != list.end()) value = &values[static_cast<size_t>(found - list.begin())];
    };
    look(graphs_[g]->inputs, inputs_);
    look(graphs_[g]->outputs, outputs_);
    feature_level_ = std::max<int>(feature_level_, type.since);
    any_fp16_ |= o.type == OperandCode::kTensorFloat16;
    const bool subgraph = o.type == OperandCode::kModel;
    std::string text = str_cat("{\"name\": \"o", index, "\", \"type\": \"", subgraph ? "SUBGRAPH" : type.name,
                               "\", \"code\": ", static_cast<int32_t>(o.type),
                               ", \"dims\": ", list_text(std::span(value ? value->dims : o.dims)));
    if (o.scale != 0) {
      text += ", \"scale\": ";
      append_real(text, o.scale, 9);
    }
    if (o.zero_point != 0) text += str_cat(", \"zp\": ", o.zero_point);
    if (!o.channel_scales.empty()) {
      const auto bytes = std::as_bytes(std::span(o.channel_scales));
      text +=
          str_cat(", \"pc\": {\"dim\": ", o.channel_dim, ", \"scales\": ", numbers(OperandCode::kFloat32, bytes), "}");
    }
    return str_cat(text, ", ", value_of(g, o, index, value), "}");
  }

  std::string graph(size_t g) {
    const nnapi::Model& model = *graphs_[g];
    std::string text = "{\"operands\": [";
    for (uint32_t i = 0; i < model.operands.size(); ++i) text += str_cat(i ? ",\n" : "\n", operand(g, i));
    text += "],\n\"operations\": [";
    for (size_t k = 0; k < model.operations.size(); ++k) {
      const nnapi::Operation& operation = model.operations[k];
      const nnapi::OperationInfo* known = nnapi::operation_info(operation.code);
      if (const auto level = nnapi::validate_operation(model, operation); level.ok())
        feature_level_ = std::max(feature_level_, *level);
      text += str_cat(k ? ",\n" : "\n", "{\"op\": \"", known ? known->name : "OEM_OPERATION",
                      "\", \"code\": ", operation.code, ", \"in\": ", list_text(std::span(operation.inputs)),
                      ", \"out\": ", list_text(std::span(operation.outputs)), "}");
    }
    return str_cat(text, "],\n\"inputs\": ", list_text(std::span(model.inputs)),
                   ", \"outputs\": ", list_text(std::span(model.outputs)), "}");
  }

  const std::vector<Value>&inputs_, &outputs_;
  std::vector<const nnapi::Model*> graphs_;  ///< the main one first
  std::vector<std::string> texts_, buffers_;
  int feature_level_ = 1;
  bool any_fp16_ = false;
};

/// Of the type's size, zero; nothing where the shape is dynamic.
Value blank(const Operand& operand) {
  return {operand.dims, std::vector<std::byte>(static_cast<size_t>(operand.bytes())), false};
}

std::vector<Value> blanks(const nnapi::Model& model, const std::vector<uint32_t>& list) {
  std::vector<Value> values;
  for (uint32_t i : list) values.push_back(blank(model.operands[i]));
  return values;
}

}  // namespace

Dump::Dump(std::string folder, const Sink& errors) : folder_(std::move(folder)), errors_(errors) {
  ::mkdir(folder_.c_str(), 0777);  // if it is not there; writing says what is wrong
}

void Dump::write(const std::string& name, const std::string& text) {
  const Status status = write_file_atomically(str_cat(folder_, "/", name, ".json"), std::as_bytes(std::span(text)));
  if (!status.ok()) errors_.line(status.message());
}

void Dump::model(const nnapi::Model& model, const std::string& name) {
  const std::string unique = str_cat(name, "_", ::getpid());
  write(unique, Case(model, blanks(model, model.inputs), blanks(model, model.outputs)).text(unique));
  std::lock_guard lock(mutex_);
  files_[&model] = {unique};
}

void Dump::computation(const ANeuralNetworksExecution& execution,
                       const std::vector<std::vector<uint32_t>>& output_dims) {
  const nnapi::Model& model = execution.engine->model();
  std::string name;
  {
    std::lock_guard lock(mutex_);
    const auto file = files_.find(&model);
    if (file == files_.end() || file->second.has_values) return;
    file->second.has_values = true;
    name = file->second.name;
  }
  const auto values = [&](const std::vector<Binding>& bindings, const std::vector<uint32_t>& list, bool outputs) {
    std::vector<Value> found;
    for (size_t i = 0; i < bindings.size(); ++i) {
      Operand operand = model.operands[list[i]];
      if (bindings[i].data) operand.dims = outputs ? output_dims[i] : bindings[i].dims;
      Value value = blank(operand);
      if (bindings[i].data) std::memcpy(value.bytes.data(), bindings[i].data, value.bytes.size());
      if (!bindings[i].data && !outputs) value.bytes.clear();
      value.compared = bindings[i].data != nullptr;
      found.push_back(std::move(value));
    }
    return found;
  };
  write(name, Case(model, values(execution.inputs, model.inputs, false), values(execution.outputs, model.outputs, true))
                  .text(name));
}

}  // namespace pinnace::nnapi_host
