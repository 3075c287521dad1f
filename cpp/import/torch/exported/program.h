// Plain structs for models/NAME.json: the exported program as torch.export writes it (schema 8), with names, sizes and
// arguments but no meaning. Unknown fields are ignored; a wrong type of a known field is kCorruptFile.
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "graph/graph.h"
#include "import/source_files.h"
#include "import/torch/exported/expression.h"

namespace pinnace::torch_import {

struct GraphDef;

/// A size: a number, or an expression's text.
struct SizeDef {
  int64_t value = 0;
  std::string expression;  ///< empty: value
};

/// What the archive says of a tensor.
struct TensorMeta {
  int scalar_type = 0;  ///< torch's number in archives
  int layout = 7;       ///< 7 is strided
  std::vector<SizeDef> sizes;
  std::vector<SizeDef> strides;
  int64_t storage_offset = 0;
  std::optional<DType> dtype() const;
  /// The element type of the real and imaginary parts of complex64 and complex128; nothing for all else.
  std::optional<DType> part_dtype() const;
};

/// The element type of torch's number in archives; nothing for complex, 8-bit floats and unknown numbers.
std::optional<DType> dtype_of_scalar_type(int64_t number);
/// "complex64": what to call a number that dtype_of_scalar_type does not take.
std::string scalar_type_name(int64_t number);

enum class ArgumentKind : uint8_t {
  kNone,
  kTensor,        // text
  kTensors,       // items: kTensor or kNone
  kInt,           // integer
  kSymInt,        // text: the name of a symbolic value
  kInts,          // items: kInt or kSymInt
  kFloat,         // real
  kSymFloat,      // text
  kFloats,        // items: kFloat
  kBool,          // integer
  kSymBool,       // text
  kBools,         // items: kBool
  kString,        // text
  kStrings,       // items: kString
  kScalarType,    // integer
  kLayout,        // integer
  kMemoryFormat,  // integer
  kDevice,        // text
  kGraph,         // graph, text: its name
  kComplex,       // real, imaginary
  kOther,         // text: the key of the union, "as_operator"
};

struct Argument {
  ArgumentKind kind = ArgumentKind::kNone;
  int64_t integer = 0;
  double real = 0, imaginary = 0;
  std::string text;
  std::vector<Argument> items;
  std::shared_ptr<GraphDef> graph;
};

struct NamedArgument {
  std::string name;
  Argument value;
};

struct NodeDef {
  std::string target;  ///< "torch.ops.aten.add.Tensor"
  std::string name;
  std::vector<NamedArgument> inputs;
  std::vector<Argument> outputs;
  int64_t module_call = 0;  ///< how often the innermost module was called before, 2 of "L__self__relu@2,relu,…"
  SourceLocation source;    ///< with the path that the archive has, for errors; what is stored: ProgramDef::files

  const Argument* input(std::string_view wanted) const;
};

struct GraphDef {
  std::vector<Argument> inputs, outputs;
  std::vector<NodeDef> nodes;
  std::map<std::string, TensorMeta, std::less<>> tensors;
  std::map<std::string, std::string, std::less<>> conditions;  ///< on sizes, by the names of their values: expressions
};

struct InputSpec {
  enum class Kind : uint8_t { kUser, kParameter, kBuffer, kConstant, kFixed, kRefused };
  Kind kind = Kind::kUser;
  std::string argument;  ///< the graph input's name; kFixed: the name of the argument
  std::string target;    ///< key of the weights or constants config; kRefused: the spec's key
  bool persistent = true;
  Argument fixed;  ///< kFixed
};

struct OutputSpec {
  enum class Kind : uint8_t { kUser, kBufferMutation, kParameterMutation, kInputMutation, kRefused };
  Kind kind = Kind::kUser;
  Argument argument;
  std::string target;  ///< buffer, parameter or input; kRefused: the spec's key
};

struct RangeDef {
  int64_t min = 0;
  int64_t max = INT64_MAX;
};

/// One tensor of data/weights or data/constants.
struct PayloadDef {
  std::string path_name;
  bool use_pickle = false;
  bool has_meta = false;
  TensorMeta meta;
};
using Payloads = std::map<std::string, PayloadDef, std::less<>>;

struct ProgramDef {
  GraphDef graph;
  std::vector<InputSpec> inputs;    ///< parallel to graph.inputs
  std::vector<OutputSpec> outputs;  ///< parallel to graph.outputs
  std::map<std::string, RangeDef, std::less<>> ranges;
  std::string dialect;                      ///< "TRAINING" or "ATEN"
  std::string torch_version;                ///< may be empty
  std::string in_spec;                      ///< the nest of arguments, may be empty
  std::string out_spec;                     ///< the nest of results, may be empty
  std::vector<std::string> argument_names;  ///< of forward(), positional ones first
  SourceFiles files;                        ///< what graphs record of the nodes' files
  std::vector<std::string> notes;
};

/// `json` is a whole entry with at least kJsonPadding zero bytes after its `length`. Errors name `what` and the path in
/// it.
inline constexpr size_t kJsonPadding = 64;
Result<ProgramDef> parse_program(const Buffer& json, size_t length, const std::string& what);
Result<Payloads> parse_payloads(const Buffer& json, size_t length, const std::string& what);

}  // namespace pinnace::torch_import
