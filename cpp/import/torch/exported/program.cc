// Reader of the program's JSON, on simdjson's DOM: the text is validated as a whole first, then walked.
#include "import/torch/exported/program.h"

#include <simdjson.h>

#include <cmath>
#include <limits>

namespace pinnace::torch_import {
namespace {

using simdjson::dom::array;
using simdjson::dom::element;
using simdjson::dom::object;

constexpr int kMaxGraphDepth = 32;  // nested graphs: each level is a cond or a loop in the source
constexpr int64_t kSchemaMajor = 8;

// What the structs made of a text of n bytes may take, so that the importer as a whole keeps to 16 times the file: the
// document itself takes up to 14. Of what torch writes they take less than once.
constexpr size_t kStructFactor = 2, kFreeStructBytes = 32 << 20;

/// Walks the DOM and remembers where it is for error sentences.
class Reader {
 public:
  Reader(std::string what, size_t length)
      : what_(std::move(what)), budget_(kStructFactor * length + kFreeStructBytes) {}

  /// Counts memory before it is taken.
  Status charge(size_t bytes) const {
    if (bytes > budget_) {
      Status status(Code::kCorruptFile,
                    str_cat(what_, ": its lists would take more memory than a file of its size may"));
      status.with_rule("T-3");
      return status;
    }
    budget_ -= bytes;
    return {};
  }
  /// Makes room for all items of a list at once, counted.
  template <class T>
  Status reserve(std::vector<T>& list, const array& items) const {
    PINNACE_TRY(charge(items.size() * sizeof(T)));
    list.reserve(items.size());
    return {};
  }

  template <class... Parts>
  Status error(const Parts&... parts) const {
    Status status(Code::kCorruptFile, str_cat(what_, ": ", parts...));
    status.with_rule("T-1");
    return status;
  }

  Result<object> as_object(element e, std::string_view where) const {
    object o;
    if (e.get_object().get(o)) return error(where, " is not an object");
    return o;
  }
  Result<array> as_array(element e, std::string_view where) const {
    array a;
    if (e.get_array().get(a)) return error(where, " is not a list");
    return a;
  }
  Result<std::string> as_string(element e, std::string_view where) const {
    std::string_view s;
    if (e.get_string().get(s)) return error(where, " is not a string");
    return std::string(s);
  }
  Result<int64_t> as_int(element e, std::string_view where) const {
    int64_t n;
    if (e.get_int64().get(n)) return error(where, " is not a 64-bit integer");
    return n;
  }
  Result<bool> as_bool(element e, std::string_view where) const {
    bool b;
    if (e.get_bool().get(b)) return error(where, " is not true or false");
    return b;
  }
  /// Floats that JSON cannot write are strings.
  Result<double> as_float(element e, std::string_view where) const {
    double d;
    if (!e.get_double().get(d)) return d;
    std::string_view s;
    if (!e.get_string().get(s)) {
      if (s == "Infinity") return std::numeric_limits<double>::infinity();
      if (s == "-Infinity") return -std::numeric_limits<double>::infinity();
      if (s == "NaN") return std::numeric_limits<double>::quiet_NaN();
    }
    return error(where, " is not a number");
  }

  Result<element> field(object o, std::string_view key, std::string_view where) const {
    element e;
    if (o.at_key(key).get(e)) return error(where, " has no field '", key, "'");
    return e;
  }
  /// The field if it is there and not null.
  static std::optional<element> maybe(object o, std::string_view key) {
    element e;
    if (o.at_key(key).get(e) || e.is_null()) return std::nullopt;
    return e;
  }
  Result<std::string> string_field(object o, std::string_view key, std::string_view where) const {
    PINNACE_ASSIGN(const element e, field(o, key, where));
    return as_string(e, key);
  }

  Result<SizeDef> size(element e) const {
    PINNACE_ASSIGN(const object o, as_object(e, "a size"));
    SizeDef s;
    if (const auto n = maybe(o, "as_int")) {
      PINNACE_ASSIGN(s.value, as_int(*n, "as_int"));
      return s;
    }
    if (const auto x = maybe(o, "as_expr")) {
      PINNACE_ASSIGN(const object expr, as_object(*x, "as_expr"));
      PINNACE_ASSIGN(s.expression, string_field(expr, "expr_str", "as_expr"));
      if (s.expression.empty()) return error("expr_str is empty");
      return s;
    }
    return error("a size is neither as_int nor as_expr");
  }

  Result<std::vector<SizeDef>> sizes(object o, std::string_view key) const {
    std::vector<SizeDef> list;
    PINNACE_ASSIGN(const element e, field(o, key, "tensor"));
    PINNACE_ASSIGN(const array items, as_array(e, key));
    PINNACE_TRY(reserve(list, items));
    for (element item : items) {
      PINNACE_ASSIGN(SizeDef s, size(item));
      list.push_back(std::move(s));
    }
    return list;
  }

  Result<TensorMeta> tensor_meta(element e) const {
    PINNACE_ASSIGN(const object o, as_object(e, "tensor"));
    TensorMeta meta;
    PINNACE_ASSIGN(const element dtype, field(o, "dtype", "tensor"));
    PINNACE_ASSIGN(const int64_t number, as_int(dtype, "dtype"));
    meta.scalar_type = number < 0 || number > 1000 ? 0 : static_cast<int>(number);
    PINNACE_ASSIGN(meta.sizes, sizes(o, "sizes"));
    PINNACE_ASSIGN(meta.strides, sizes(o, "strides"));
    if (meta.strides.size() != meta.sizes.size() && meta.layout == 7) {
      return error("a tensor has ", meta.sizes.size(), " sizes and ", meta.strides.size(), " strides");
    }
    if (const auto offset = maybe(o, "storage_offset")) {
      PINNACE_ASSIGN(const SizeDef s, size(*offset));
      meta.storage_offset = s.expression.empty() ? s.value : -1;
    }
    if (const auto layout = maybe(o, "layout")) {
      PINNACE_ASSIGN(const int64_t n, as_int(*layout, "layout"));
      meta.layout = static_cast<int>(std::clamp<int64_t>(n, 0, 1000));
    }
    return meta;
  }

  Result<Argument> tensor_name(element e) const {
    Argument a;
    a.kind = ArgumentKind::kTensor;
    PINNACE_ASSIGN(const object o, as_object(e, "as_tensor"));
    PINNACE_ASSIGN(a.text, string_field(o, "name", "as_tensor"));
    return a;
  }

  /// {"as_name": "s"} or {literal_key: value}
  Result<Argument> symbolic(element e, ArgumentKind named, std::string_view literal) const {
    PINNACE_ASSIGN(const object o, as_object(e, "a symbolic value"));
    Argument a;
    if (const auto name = maybe(o, "as_name")) {
      a.kind = named;
      PINNACE_ASSIGN(a.text, as_string(*name, "as_name"));
      return a;
    }
    PINNACE_ASSIGN(const element value, field(o, literal, "a symbolic value"));
    if (named == ArgumentKind::kSymInt) {
      a.kind = ArgumentKind::kInt;
      PINNACE_ASSIGN(a.integer, as_int(value, literal));
    } else if (named == ArgumentKind::kSymFloat) {
      a.kind = ArgumentKind::kFloat;
      PINNACE_ASSIGN(a.real, as_float(value, literal));
    } else {
      a.kind = ArgumentKind::kBool;
      PINNACE_ASSIGN(const bool b, as_bool(value, literal));
      a.integer = b;
    }
    return a;
  }

  Result<Argument> scalar(std::string_view key, element value, int depth) const {
    Argument a;
    if (key == "as_tensor") return tensor_name(value);
    if (key == "as_none") return a;
    if (key == "as_optional_tensor") {
      PINNACE_ASSIGN(const object o, as_object(value, key));
      for (auto [inner, content] : o) return inner == "as_none" ? Result<Argument>(a) : tensor_name(content);
      return a;
    }
    if (key == "as_int") {
      a.kind = ArgumentKind::kInt;
      PINNACE_ASSIGN(a.integer, as_int(value, key));
    } else if (key == "as_float") {
      a.kind = ArgumentKind::kFloat;
      PINNACE_ASSIGN(a.real, as_float(value, key));
    } else if (key == "as_bool") {
      a.kind = ArgumentKind::kBool;
      PINNACE_ASSIGN(const bool b, as_bool(value, key));
      a.integer = b;
    } else if (key == "as_string") {
      a.kind = ArgumentKind::kString;
      PINNACE_ASSIGN(a.text, as_string(value, key));
    } else if (key == "as_sym_int") {
      return symbolic(value, ArgumentKind::kSymInt, "as_int");
    } else if (key == "as_sym_float") {
      return symbolic(value, ArgumentKind::kSymFloat, "as_float");
    } else if (key == "as_sym_bool") {
      return symbolic(value, ArgumentKind::kSymBool, "as_bool");
    } else if (key == "as_scalar_type" || key == "as_layout" || key == "as_memory_format") {
      a.kind = key == "as_scalar_type" ? ArgumentKind::kScalarType
               : key == "as_layout"    ? ArgumentKind::kLayout
                                       : ArgumentKind::kMemoryFormat;
      PINNACE_ASSIGN(a.integer, as_int(value, key));
    } else if (key == "as_device") {
      a.kind = ArgumentKind::kDevice;
      PINNACE_ASSIGN(const object o, as_object(value, key));
      PINNACE_ASSIGN(a.text, string_field(o, "type", key));
    } else if (key == "as_complex") {
      a.kind = ArgumentKind::kComplex;
      PINNACE_ASSIGN(const object o, as_object(value, key));
      PINNACE_ASSIGN(const element real, field(o, "real", key));
      PINNACE_ASSIGN(const element imaginary, field(o, "imag", key));
      PINNACE_ASSIGN(a.real, as_float(real, "real"));
      PINNACE_ASSIGN(a.imaginary, as_float(imaginary, "imag"));
    } else if (key == "as_graph") {
      a.kind = ArgumentKind::kGraph;
      PINNACE_ASSIGN(const object o, as_object(value, key));
      PINNACE_ASSIGN(a.text, string_field(o, "name", key));
      PINNACE_ASSIGN(const element inner, field(o, "graph", key));
      a.graph = std::make_shared<GraphDef>();
      PINNACE_TRY(graph(inner, *a.graph, depth + 1));
    } else {
      a.kind = ArgumentKind::kOther;
      a.text = key;
    }
    return a;
  }

  Result<Argument> argument(element e, int depth) const {
    PINNACE_ASSIGN(const object o, as_object(e, "an argument"));
    std::string_view key;
    element value;
    int fields = 0;
    for (auto [k, v] : o) {
      key = k;
      value = v;
      ++fields;
    }
    if (fields != 1) return error("an argument has ", fields, " kinds, expected one");
    struct ListKind {
      std::string_view list, item;
      ArgumentKind kind;
    };
    static constexpr ListKind kLists[] = {
        {"as_tensors", "as_tensor", ArgumentKind::kTensors}, {"as_optional_tensors", "", ArgumentKind::kTensors},
        {"as_ints", "as_int", ArgumentKind::kInts},          {"as_sym_ints", "as_sym_int", ArgumentKind::kInts},
        {"as_floats", "as_float", ArgumentKind::kFloats},    {"as_sym_floats", "as_sym_float", ArgumentKind::kFloats},
        {"as_bools", "as_bool", ArgumentKind::kBools},       {"as_sym_bools", "as_sym_bool", ArgumentKind::kBools},
        {"as_strings", "as_string", ArgumentKind::kStrings},
    };
    for (const ListKind& list : kLists) {
      if (key != list.list) continue;
      Argument a;
      a.kind = list.kind;
      PINNACE_ASSIGN(const array items, as_array(value, key));
      PINNACE_TRY(reserve(a.items, items));
      for (element item : items) {
        auto one = list.item.empty() ? argument(item, depth) : scalar(list.item, item, depth);
        if (!one) return one.status();
        if (list.item.empty() && one->kind != ArgumentKind::kTensor && one->kind != ArgumentKind::kNone) {
          return error("as_optional_tensors holds something else");
        }
        a.items.push_back(std::move(*one));
      }
      return a;
    }
    return scalar(key, value, depth);
  }

  Status arguments(object o, std::string_view key, std::vector<Argument>& list, int depth) const {
    PINNACE_ASSIGN(const element e, field(o, key, "graph"));
    PINNACE_ASSIGN(const array items, as_array(e, key));
    PINNACE_TRY(reserve(list, items));
    for (element item : items) {
      PINNACE_ASSIGN(Argument a, argument(item, depth));
      list.push_back(std::move(a));
    }
    return {};
  }

  Result<NodeDef> node(element e, int depth) const {
    PINNACE_ASSIGN(const object o, as_object(e, "node"));
    NodeDef n;
    PINNACE_ASSIGN(n.target, string_field(o, "target", "node"));
    if (const auto name = maybe(o, "name")) {
      PINNACE_ASSIGN(n.name, as_string(*name, "name"));
    }
    PINNACE_ASSIGN(const element inputs, field(o, "inputs", "node"));
    PINNACE_ASSIGN(const array list, as_array(inputs, "inputs"));
    PINNACE_TRY(reserve(n.inputs, list));
    for (element item : list) {
      PINNACE_ASSIGN(const object input, as_object(item, "node input"));
      NamedArgument named;
      PINNACE_ASSIGN(named.name, string_field(input, "name", "node input"));
      PINNACE_ASSIGN(const element value, field(input, "arg", "node input"));
      PINNACE_ASSIGN(named.value, argument(value, depth));
      n.inputs.push_back(std::move(named));
    }
    PINNACE_TRY(arguments(o, "outputs", n.outputs, depth));
    if (const auto metadata = maybe(o, "metadata")) {
      PINNACE_ASSIGN(const object m, as_object(*metadata, "metadata"));
      std::string_view text;
      std::vector<std::string_view> files;
      if (const auto trace = maybe(m, "stack_trace"); trace && !trace->get_string().get(text))
        read_trace(text, n.source, files);
      if (const auto stack = maybe(m, "nn_module_stack"); stack && !stack->get_string().get(text)) {
        n.source.module = module_path(text, n.module_call);
        learn_files(text, files);
      }
    }
    return n;
  }

  Status graph(element e, GraphDef& g, int depth) const {
    if (depth > kMaxGraphDepth) return error("graphs are nested more than ", kMaxGraphDepth, " deep");
    PINNACE_ASSIGN(const object o, as_object(e, "graph"));
    PINNACE_TRY(arguments(o, "inputs", g.inputs, depth));
    PINNACE_TRY(arguments(o, "outputs", g.outputs, depth));
    PINNACE_ASSIGN(const element nodes, field(o, "nodes", "graph"));
    PINNACE_ASSIGN(const array list, as_array(nodes, "nodes"));
    PINNACE_TRY(reserve(g.nodes, list));
    for (element item : list) {
      PINNACE_ASSIGN(NodeDef n, node(item, depth));
      g.nodes.push_back(std::move(n));
    }
    PINNACE_ASSIGN(const element values, field(o, "tensor_values", "graph"));
    PINNACE_ASSIGN(const object tensors, as_object(values, "tensor_values"));
    for (auto [name, value] : tensors) {
      PINNACE_TRY(charge(sizeof(TensorMeta) + kMapEntryBytes + name.size()));
      PINNACE_ASSIGN(TensorMeta meta, tensor_meta(value));
      g.tensors.emplace(std::string(name), std::move(meta));
    }
    if (const auto conditions = maybe(o, "sym_bool_values")) {
      PINNACE_ASSIGN(const object all, as_object(*conditions, "sym_bool_values"));
      for (auto [name, value] : all) {
        PINNACE_ASSIGN(const object condition, as_object(value, name));
        const auto x = maybe(condition, "as_expr");
        if (!x) continue;  // as_bool: known when it was exported
        PINNACE_ASSIGN(const object expr, as_object(*x, "as_expr"));
        PINNACE_ASSIGN(std::string text, string_field(expr, "expr_str", "as_expr"));
        PINNACE_TRY(charge(kMapEntryBytes + name.size() + text.size()));
        g.conditions.emplace(std::string(name), std::move(text));
      }
    }
    return {};
  }

  static constexpr size_t kFramesHeld = 16;

  /// The last frame that is not torch's own, and the files of the first such ones.
  static void read_trace(std::string_view trace, SourceLocation& source, std::vector<std::string_view>& files) {
    size_t at = 0;
    while ((at = trace.find("File \"", at)) != std::string_view::npos) {
      at += 6;
      const size_t quote = trace.find('"', at);
      if (quote == std::string_view::npos) return;
      const std::string_view file = trace.substr(at, quote - at);
      constexpr std::string_view kLine = "\", line ";
      if (trace.substr(quote, kLine.size()) != kLine) continue;
      int32_t line = 0;
      for (size_t i = quote + kLine.size(); i < trace.size() && trace[i] >= '0' && trace[i] <= '9' && line < 100000000;
           ++i) {
        line = line * 10 + (trace[i] - '0');
      }
      const auto within = [&](std::string_view part) { return file.find(part) != std::string_view::npos; };
      const bool torchs = within("-packages/torch/") || within("-packages\\torch\\") || within("/torch/nn/modules/") ||
                          file.starts_with("torch/");
      if (!torchs && line > 0) {
        source.file = file;
        source.line = line;
        if (files.size() < kFramesHeld && (files.empty() || files.back() != file)) files.push_back(file);
      }
    }
  }

  /// Holds files of a node's trace against the classes of
  /// "L__self__,,mypkg.net.Net;L__self__c,c,torch.nn.modules.conv.Conv2d".
  void learn_files(std::string_view stack, const std::vector<std::string_view>& files) const {
    for (size_t at = 0; at < stack.size();) {
      const size_t end = std::min(stack.find(';', at), stack.size());
      const std::string_view entry = stack.substr(at, end - at);
      const std::string_view class_name = entry.substr(entry.rfind(',') + 1);  // npos + 1 is 0
      for (const std::string_view file : files) files_.learn(file, class_name);
      at = end + 1;
    }
  }

  /// "L__self__,,C;L__self__c@1,c,torch.nn.modules.conv.Conv2d" -> "c", its call 1. Empty where torch says that it
  /// knows no module.
  static std::string module_path(std::string_view stack, int64_t& call) {
    const std::string_view last = stack.substr(stack.rfind(';') + 1);  // npos + 1 is 0
    const size_t first = last.find(',');
    if (first == std::string_view::npos) return {};
    const size_t mark = last.substr(0, first).rfind('@');
    for (size_t i = mark == std::string_view::npos ? first : mark + 1; i < first && call < 1000000; ++i) {
      if (last[i] < '0' || last[i] > '9') break;
      call = call * 10 + (last[i] - '0');
    }
    const std::string_view path = last.substr(first + 1, last.find(',', first + 1) - first - 1);
    return path == "_empty_nn_module_stack_from_metadata_hook" ? std::string() : std::string(path);
  }

  Result<InputSpec> input_spec(element e) const {
    PINNACE_ASSIGN(const object o, as_object(e, "input_spec"));
    InputSpec spec;
    for (auto [key, value] : o) {
      PINNACE_ASSIGN(const object body, as_object(value, key));
      const auto argument_name = [&]() -> Status {
        PINNACE_ASSIGN(const element arg, field(body, "arg", key));
        PINNACE_ASSIGN(const object name, as_object(arg, "arg"));
        PINNACE_ASSIGN(spec.argument, string_field(name, "name", "arg"));
        return {};
      };
      if (key == "user_input") {
        PINNACE_ASSIGN(const element arg, field(body, "arg", key));
        PINNACE_ASSIGN(spec.fixed, argument(arg, 0));
        const ArgumentKind kind = spec.fixed.kind;
        spec.argument = spec.fixed.text;
        if (kind != ArgumentKind::kTensor) {
          spec.kind = kind == ArgumentKind::kNone ? InputSpec::Kind::kFixed : InputSpec::Kind::kRefused;
          spec.target = "user_input that is no tensor";
          if (kind == ArgumentKind::kSymInt) spec.kind = InputSpec::Kind::kUser;
        }
      } else if (key == "parameter") {
        spec.kind = InputSpec::Kind::kParameter;
        PINNACE_TRY(argument_name());
        PINNACE_ASSIGN(spec.target, string_field(body, "parameter_name", key));
      } else if (key == "buffer") {
        spec.kind = InputSpec::Kind::kBuffer;
        PINNACE_TRY(argument_name());
        PINNACE_ASSIGN(spec.target, string_field(body, "buffer_name", key));
        if (const auto p = maybe(body, "persistent")) {
          PINNACE_ASSIGN(spec.persistent, as_bool(*p, "persistent"));
        }
      } else if (key == "tensor_constant") {
        spec.kind = InputSpec::Kind::kConstant;
        PINNACE_TRY(argument_name());
        PINNACE_ASSIGN(spec.target, string_field(body, "tensor_constant_name", key));
      } else if (key == "constant_input") {
        spec.kind = InputSpec::Kind::kFixed;
        PINNACE_ASSIGN(spec.argument, string_field(body, "name", key));
        PINNACE_ASSIGN(const element fixed, field(body, "value", key));
        PINNACE_ASSIGN(spec.fixed, argument(fixed, 0));
      } else {
        spec.kind = InputSpec::Kind::kRefused;
        spec.target = key;
      }
      return spec;
    }
    return error("an empty input_spec");
  }

  Result<OutputSpec> output_spec(element e) const {
    PINNACE_ASSIGN(const object o, as_object(e, "output_spec"));
    OutputSpec spec;
    for (auto [key, value] : o) {
      PINNACE_ASSIGN(const object body, as_object(value, key));
      if (key == "user_output") {
        PINNACE_ASSIGN(const element arg, field(body, "arg", key));
        PINNACE_ASSIGN(spec.argument, argument(arg, 0));
        return spec;
      }
      struct Row {
        std::string_view key, target;
        OutputSpec::Kind kind;
      };
      static constexpr Row kRows[] = {
          {"buffer_mutation", "buffer_name", OutputSpec::Kind::kBufferMutation},
          {"parameter_mutation", "parameter_name", OutputSpec::Kind::kParameterMutation},
          {"user_input_mutation", "user_input_name", OutputSpec::Kind::kInputMutation},
      };
      spec.kind = OutputSpec::Kind::kRefused;
      spec.target = key;
      for (const Row& row : kRows) {
        if (key != row.key) continue;
        spec.kind = row.kind;
        PINNACE_ASSIGN(const element arg, field(body, "arg", key));
        PINNACE_ASSIGN(spec.argument, tensor_name(arg));
        PINNACE_ASSIGN(spec.target, string_field(body, row.target, key));
      }
      return spec;
    }
    return error("an empty output_spec");
  }

  Result<ProgramDef> program(element root) const {
    ProgramDef p;
    PINNACE_ASSIGN(const object o, as_object(root, "the program"));
    PINNACE_ASSIGN(const element schema, field(o, "schema_version", "the program"));
    PINNACE_ASSIGN(const object version, as_object(schema, "schema_version"));
    PINNACE_ASSIGN(const element major_field, field(version, "major", "schema_version"));
    PINNACE_ASSIGN(const int64_t major, as_int(major_field, "major"));
    if (const auto torch = maybe(o, "torch_version")) {
      PINNACE_ASSIGN(p.torch_version, as_string(*torch, "torch_version"));
    }
    if (major != kSchemaMajor) {
      return unsupported(what_, ": schema version ", major, p.torch_version.empty() ? "" : " (torch ", p.torch_version,
                         p.torch_version.empty() ? "" : ")", ", this importer reads version ", kSchemaMajor,
                         " (torch 2.8 and newer): export the model again with such a torch");
    }
    if (const auto verifiers = maybe(o, "verifiers")) {
      PINNACE_ASSIGN(const array list, as_array(*verifiers, "verifiers"));
      for (element item : list) {
        PINNACE_ASSIGN(p.dialect, as_string(item, "verifiers"));
      }
    }
    if (const auto ranges = maybe(o, "range_constraints")) {
      PINNACE_ASSIGN(const object all, as_object(*ranges, "range_constraints"));
      for (auto [name, value] : all) {
        PINNACE_ASSIGN(const object range, as_object(value, "a range"));
        RangeDef r;
        // Bounds beyond 64 bits and null are no bounds.
        if (const auto min = maybe(range, "min_val"); min && min->is_int64()) {
          PINNACE_ASSIGN(r.min, as_int(*min, "min_val"));
        }
        if (const auto max = maybe(range, "max_val"); max && max->is_int64()) {
          PINNACE_ASSIGN(r.max, as_int(*max, "max_val"));
        }
        r.min = std::max<int64_t>(r.min, 0);
        if (r.max < r.min) return error("the range of ", name, " ends before it starts");
        p.ranges.emplace(std::string(name), r);
      }
    }
    PINNACE_ASSIGN(const element module_field, field(o, "graph_module", "the program"));
    PINNACE_ASSIGN(const object module, as_object(module_field, "graph_module"));
    PINNACE_ASSIGN(const element graph_field, field(module, "graph", "graph_module"));
    PINNACE_TRY(graph(graph_field, p.graph, 0));
    PINNACE_ASSIGN(const element signature_field, field(module, "signature", "graph_module"));
    PINNACE_ASSIGN(const object signature, as_object(signature_field, "signature"));
    PINNACE_ASSIGN(const element ins, field(signature, "input_specs", "signature"));
    PINNACE_ASSIGN(const array in_list, as_array(ins, "input_specs"));
    for (element item : in_list) {
      PINNACE_ASSIGN(InputSpec spec, input_spec(item));
      p.inputs.push_back(std::move(spec));
    }
    PINNACE_ASSIGN(const element outs, field(signature, "output_specs", "signature"));
    PINNACE_ASSIGN(const array out_list, as_array(outs, "output_specs"));
    for (element item : out_list) {
      PINNACE_ASSIGN(OutputSpec spec, output_spec(item));
      p.outputs.push_back(std::move(spec));
    }
    if (p.inputs.size() != p.graph.inputs.size() || p.outputs.size() != p.graph.outputs.size()) {
      return error("the graph has ", p.graph.inputs.size(), " inputs and ", p.graph.outputs.size(),
                   " outputs, its signature ", p.inputs.size(), " and ", p.outputs.size());
    }
    if (const auto calls = maybe(module, "module_call_graph")) {
      array list;
      if (!calls->get_array().get(list)) {
        for (element item : list) {
          object call, call_signature;
          if (item.get_object().get(call) || call["signature"].get_object().get(call_signature)) break;
          std::string_view spec;
          if (!call_signature["in_spec"].get_string().get(spec)) p.in_spec = spec;
          if (!call_signature["out_spec"].get_string().get(spec)) p.out_spec = spec;
          array names;
          if (call_signature["forward_arg_names"].get_array().get(names)) break;
          PINNACE_TRY(reserve(p.argument_names, names));
          for (element name : names) {
            PINNACE_ASSIGN(std::string text, as_string(name, "forward_arg_names"));
            p.argument_names.push_back(std::move(text));
          }
          break;
        }
      }
    }
    p.files = files_;
    return p;
  }

  Result<Payloads> payloads(element root) const {
    PINNACE_ASSIGN(const object o, as_object(root, "the configuration"));
    PINNACE_ASSIGN(const element config, field(o, "config", "the configuration"));
    PINNACE_ASSIGN(const object all, as_object(config, "config"));
    Payloads result;
    for (auto [name, value] : all) {
      PINNACE_TRY(charge(sizeof(PayloadDef) + kMapEntryBytes + name.size()));
      PINNACE_ASSIGN(const object body, as_object(value, name));
      PayloadDef p;
      PINNACE_ASSIGN(p.path_name, string_field(body, "path_name", name));
      if (const auto pickle = maybe(body, "use_pickle")) {
        PINNACE_ASSIGN(p.use_pickle, as_bool(*pickle, "use_pickle"));
      }
      if (const auto meta = maybe(body, "tensor_meta")) {
        PINNACE_ASSIGN(p.meta, tensor_meta(*meta));
        p.has_meta = true;
      }
      result.emplace(std::string(name), std::move(p));
    }
    return result;
  }

 private:
  static constexpr size_t kMapEntryBytes = 80;  // a node of a tree, the string of its key, malloc's own

  std::string what_;
  mutable size_t budget_;
  mutable SourceFiles files_;
};

/// Parses the text; `parser` owns the document.
Result<element> parse_json(simdjson::dom::parser& parser, const Buffer& json, size_t length, const Reader& reader) {
  static_assert(kJsonPadding >= simdjson::SIMDJSON_PADDING);
  element root;
  const auto code = parser.parse(reinterpret_cast<const uint8_t*>(json.data()), length, false).get(root);
  if (code == simdjson::MEMALLOC) return out_of_memory("parsing ", length, " bytes of JSON");
  if (code) return reader.error("not JSON: ", simdjson::error_message(code));
  return root;
}

}  // namespace

std::optional<DType> dtype_of_scalar_type(int64_t number) {
  switch (number) {
    case 1:
      return DType::kU8;
    case 2:
      return DType::kI8;
    case 3:
      return DType::kI16;
    case 4:
      return DType::kI32;
    case 5:
      return DType::kI64;
    case 6:
      return DType::kF16;
    case 7:
      return DType::kF32;
    case 8:
      return DType::kF64;
    case 12:
      return DType::kBool;
    case 13:
      return DType::kBF16;
    case 28:
      return DType::kU16;
    case 34:
      return DType::kU32;
    case 35:
      return DType::kU64;
    default:
      return std::nullopt;
  }
}

std::string scalar_type_name(int64_t number) {
  switch (number) {
    case 9:
      return "complex32";
    case 10:
      return "complex64";
    case 11:
      return "complex128";
    case 29:
      return "float8_e4m3fn";
    case 30:
      return "float8_e5m2";
    case 31:
      return "float8_e4m3fnuz";
    case 32:
      return "float8_e5m2fnuz";
    case 33:
      return "float8_e8m0fnu";
    default:
      break;
  }
  const auto dtype = dtype_of_scalar_type(number);
  return dtype ? std::string(dtype_name(*dtype)) : str_cat("scalar type ", number);
}

std::optional<DType> TensorMeta::dtype() const {
  return dtype_of_scalar_type(scalar_type);
}

std::optional<DType> TensorMeta::part_dtype() const {
  if (scalar_type == 10) return DType::kF32;
  if (scalar_type == 11) return DType::kF64;
  return std::nullopt;
}

const Argument* NodeDef::input(std::string_view wanted) const {
  for (const NamedArgument& named : inputs) {
    if (named.name == wanted) return &named.value;
  }
  return nullptr;
}

Result<ProgramDef> parse_program(const Buffer& json, size_t length, const std::string& what) {
  const Reader reader(what, length);
  simdjson::dom::parser parser;
  PINNACE_ASSIGN(const element root, parse_json(parser, json, length, reader));
  return reader.program(root);
}

Result<Payloads> parse_payloads(const Buffer& json, size_t length, const std::string& what) {
  const Reader reader(what, length);
  simdjson::dom::parser parser;
  PINNACE_ASSIGN(const element root, parse_json(parser, json, length, reader));
  return reader.payloads(root);
}

}  // namespace pinnace::torch_import
