// Model: a trained model after import, before conversion. Host library only: the device library has no importers.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include <pinnace/preprocess.h>
#include <pinnace/program.h>
#include <pinnace/quantize.h>
#include <pinnace/session.h>

#pragma GCC visibility push(default)
namespace pinnace {

/// A name for the dynamic dimension `dim` of input `input`, both counted from 0.
struct DimName {
  size_t input = 0;
  size_t dim = 0;
  std::string name;
};

/// An input that comes in chunks along `axis`; a negative one counts from the end.
struct StreamAxis {
  std::string input;
  int axis = 0;
};

struct LoadOptions {
  /// Passes that are not run, by name; "all" for none at all. Unknown names are kInvalidArgument.
  std::vector<std::string> disabled_passes = {};
  /// Runs the model on `examples`, else on seeded inputs, before and after each pass and fails with kVerification
  /// naming the pass that changed the result beyond its stated bound.
  bool check_passes = false;
  /// Inputs for check_passes: by name, or with empty names one for each input, in order. Dense; the memory is borrowed
  /// during the call. Inputs that are not given are seeded, at the sizes that the given ones fix. Names that are not
  /// there and types that do not fit the input are kInvalidArgument.
  std::vector<std::pair<std::string, Tensor>> examples = {};
  /// Sizes or ranges for dimensions that the source leaves dynamic, by the source's name of the symbol.
  std::vector<Symbol> symbols = {};
  /// Names to give dynamic dimensions instead of the source's (an exported program has s77 where its author wrote
  /// "batch"); they stand in types and messages from then on. A dimension of fixed size needs none and is passed over;
  /// one that is not there, or a name of another dimension, is kInvalidArgument.
  std::vector<DimName> dim_names = {};
  /// Names of dynamic dimensions in an ONNX file whose every occurrence is a dimension of its own, for files that give
  /// one name to what has different sizes; an empty one means all names. A name that no dimension has is passed over.
  std::vector<std::string> separate_dims = {};
  /// Name of the model inside an archive that holds several; empty: the only one.
  std::string model_name = {};
  /// An application's operators, by the source's names for them; kept alive by the caller as long as the model.
  std::vector<const CustomOp*> ops = {};
};

/// A model that torch.backends._nnapi.prepare made (process_for_nnapi, or the attributes of an NnapiModule). All memory
/// is the caller's and copied.
struct TorchNnapiModel {
  std::span<const std::byte> serialized;            ///< little-endian 32-bit words, format version 1
  std::vector<std::span<const std::byte>> weights;  ///< the numbered buffers
  std::vector<std::vector<uint32_t>> input_dims;    ///< of the call's tensors, channels first
  std::vector<int> input_formats, output_formats;   ///< 0: as they are, 1: channels last inside, 2: scalar or vector
};

/// One part of an exported program, under the name that torch.export.save gives it below the archive's root folder:
/// "models/model.json", "data/weights/model_weights_config.json", "data/weights/weight_0".
struct TorchPart {
  std::string name;
  std::span<const std::byte> bytes;
  /// Keeps the bytes of weights where they are. Of other parts only what is read during the call.
  std::shared_ptr<const void> owner;
};

/// An exported program of PyTorch that was not saved: what its archive would hold.
struct TorchProgram {
  std::string name;  ///< what messages call it
  std::vector<TorchPart> parts;
};

struct BuildOptions {
  /// Targets to compile for; payloads are stored for those that have one.
  std::vector<std::string> targets = {"cpu"};
  /// Facts to record in the file.
  std::vector<std::pair<std::string, std::string>> metadata = {};
  /// An application's back ends, by which `targets` may be named too.
  std::vector<const Backend*> backends = {};
};

/// One node for one target: whether it can run there.
struct CheckRow {
  std::string node, op, source, target;
  bool supported = false;
  std::string rule;     ///< id and text of the rule that refuses it, empty if supported
  std::string value;    ///< the value that breaks the rule
  std::string rewrite;  ///< what the node becomes there, if it is rewritten
  int64_t bytes_copied = 0;
  std::string module;  ///< path of the source's submodule, "layers.3.conv1"; may be empty
};

/// What one pass did.
struct PassReport {
  std::string pass;
  int changes = 0;
  double milliseconds = 0;
  double largest_error = 0;  ///< with check_passes: largest relative difference it caused
};

/// A node as its shape rule sees it at given shapes of the inputs.
struct NodeAt {
  std::string name;
  std::string op;
  std::vector<std::string> inputs;                     ///< names of values, empty for a left-out input
  std::vector<std::string> outputs;                    ///< names of values
  std::vector<std::pair<std::string, int64_t>> attrs;  ///< those that are whole numbers, defaults included
  /// Multiplications with an addition, of products, attention and recurrent operators; 0 for all others. Nothing where
  /// data decide a size, or where there are 2^53 and more.
  std::optional<int64_t> multiply_adds = {};
};

/// A value at given shapes of the inputs.
struct ValueAt {
  std::string name;
  TensorType type;
  bool known = false;             ///< whether `contents` are known: a small constant, or computed from shapes
  std::vector<int64_t> contents;  ///< of integers and bools
  /// The least and the greatest finite element of known float32 and float64 contents; nothing where there is none.
  std::optional<std::pair<double, double>> range = {};
};

/// Contents that a trial takes an input to have: an integer or bool for each of its elements, at most 64. Where a graph
/// branches by them, the rules of the branch that is taken are asked alone.
struct InputContents {
  size_t input = 0;
  std::vector<int64_t> values;
};

/// What the shape rules say of a graph at given shapes of its inputs.
struct ShapeTrial {
  bool fits = false;
  size_t inferred = 0;  ///< nodes whose rules hold, from the first on
  std::string failure;  ///< the message of the rule that does not; empty where all hold
  /// With details, where all hold: every node in order and every value. Those of nested graphs follow the node that
  /// holds them, under their declared types; what enters a nested graph has there the name that it has outside, other
  /// names get the node's before them.
  std::vector<NodeAt> nodes;
  std::vector<ValueAt> values;
};

/// Tries shapes on a program, one list of sizes for each input in order; nothing is computed but small values that
/// depend on shapes alone. `ops`: the application's operators. kInvalidArgument: another number of inputs, another
/// rank, a negative size, or one that differs from a fixed one; contents of an input that is not there, that has floats
/// or another number of elements, or that its type cannot hold; kCancelled. Ranges of dimensions are not looked at.
Result<ShapeTrial> try_shapes(const Program& program, std::span<const std::vector<int64_t>> shapes,
                              bool details = false, std::span<const CustomOp* const> ops = {},
                              std::span<const InputContents> contents = {});

/// Every pass of this build in the order in which it runs: name and one line of what it does.
std::vector<std::pair<std::string, std::string>> passes();

/// An imported and optimised graph. Immutable; copies share.
class Model {
 public:
  /// Loads .onnx, .pt2 (torch.export), .pnc, or .json (an NNAPI model that the host library dumped), told apart by
  /// content. kFile, kCorruptFile; kConversion lists every node that cannot be imported in nodes(). Nothing in the file
  /// is executed or unpickled.
  static Result<Model> load(const std::string& path, const LoadOptions& options = {});
  /// The format that load() would take a file for, as in format(). kFile; kCorruptFile: it is empty.
  static Result<std::string> format_of(const std::string& path);
  /// From an exported program in memory, checked as its archive would be; format() is "pt2". Weights stay where they
  /// are until build() writes them, which fails with kInvalidArgument if somebody has written to them since.
  static Result<Model> load_torch_program(const TorchProgram& source, const LoadOptions& options = {});
  /// From a model in PyTorch's serialised NNAPI form. kCorruptFile says at which byte.
  static Result<Model> load_torch_nnapi(const TorchNnapiModel& source, const LoadOptions& options = {});
  /// From the text form of a graph.
  static Result<Model> parse(std::string_view text, const LoadOptions& options = {});

  std::span<const TensorSpec> inputs() const;
  std::span<const TensorSpec> outputs() const;
  std::span<const Symbol> symbols() const;
  std::vector<NodeInfo> nodes() const;
  /// As Program::constants().
  std::vector<TensorSpec> constants() const;
  std::string text(size_t max_constant_bytes = 64) const;
  /// Things a user should know: fields that were ignored, operators that were decomposed. One sentence each.
  std::span<const std::string> notes() const;
  std::span<const PassReport> pass_reports() const;
  /// Nodes of the source that passes made a part of another one, such as a convolution of the activation behind it, as
  /// (name, the other's name), in the order in which that happened: the other may be in the list again, further down.
  std::span<const std::pair<std::string, std::string>> merged() const;
  /// "onnx", "pt2", "nnapi", "pnc" or "text".
  const std::string& format() const;

  /// Tries shapes of the inputs, as the function of the same name does on a program.
  Result<ShapeTrial> try_shapes(std::span<const std::vector<int64_t>> shapes, bool details = false,
                                std::span<const InputContents> contents = {}) const;
  /// The same model with narrower ranges of dynamic dimensions, by name. kInvalidArgument: there is no such dimension,
  /// or its range would be empty, or admit a size that it did not admit before.
  Result<Model> with_ranges(std::span<const Symbol> ranges) const;
  /// The same model with other names: one for each input and one for each output, in order. An inner value that has the
  /// name of an input gets a number. kInvalidArgument: there are not as many, or a name is empty, appears twice among
  /// the inputs or among the outputs, has a control character, or is not UTF-8.
  Result<Model> with_names(std::span<const std::string> inputs, std::span<const std::string> outputs) const;

  /// The model for chunks of its inputs, which keeps what it needs of earlier chunks in states: what its outputs give,
  /// chunk after chunk, is what this model's give for the whole, `latency` later (docs/streaming.md). kInvalidArgument:
  /// an input or an axis is not there or has a fixed size, or the model has states. kConversion: in nodes() every node
  /// that needs what is not there yet, or that has no rule, with the reason.
  Result<Model> streamed(std::span<const StreamAxis> streams) const;
  /// What build() records of streamed() and preprocessed(): "stream.<input>" with axis, latency, multiple and tail;
  /// "streamed.<output>" with axis, rate and length; "input.<name>" and "preprocessing.<input>".
  std::span<const std::pair<std::string, std::string>> facts() const;

  /// The model that makes one of its inputs of a picture: `how` in front of it, as nodes of the graph. In the place of
  /// `input` (empty: the only one of rank 3 or 4) stand those of the picture, uint8; build() records what they are, as
  /// metadata "input.<name>" and "preprocessing.<input>". No pass runs. kInvalidArgument: a field of `how` has no
  /// meaning, the model takes another type or size, a dynamic size decides what the model gets, or a name is taken.
  Result<Model> preprocessed(const Preprocessing& how, std::string_view input = {}) const;

  /// The same function with what integer products cannot apply in nodes of their own, so that every value that needs a
  /// range is there to be observed.
  Result<Model> ready_to_quantize(const QuantizeReadyOptions& options = {}) const;
  /// Which nodes can compute in 8-bit integers, and which values need ranges for it. Of a model that is ready.
  Result<QuantizationSites> quantization_sites() const;
  /// The model that computes the chosen nodes in 8-bit integers. kInvalidArgument: a node or a value is not there, a
  /// value of a chosen node has no scale, or means are not as many as channels.
  Result<Model> quantized(const QuantizeChoices& choices) const;
  /// Which nodes can have their weights stored as integers: products by constant float32 matrices, gathered rows of
  /// one, recurrent cells.
  Result<std::vector<WeightSite>> weight_sites() const;
  /// The model with these weights as integers that products read as they are, and arithmetic in float. Scales have the
  /// least square error. kInvalidArgument: a node is not there or is no site; bits or block are none of those above.
  Result<Model> with_stored_weights(const WeightChoices& choices) const;
  /// Which nodes can compute in float16: their operators have it, and their constants fit into it.
  Result<std::vector<Float16Site>> float16_sites() const;
  /// The model with these nodes in float16, constants and results included; inputs, outputs and states stay float32.
  /// values: false: all stays float32, rounded where these nodes read what none of them makes: what they are held
  /// against. kInvalidArgument: a node is not there or has a reason to stay in float32.
  Result<Model> in_float16(std::span<const std::string> nodes, bool values = true) const;
  /// The model with inner values given from outside: each becomes an input, after the others in order, and what it
  /// would have been an output, after the others, of its name with ".made" behind it. With values of another program,
  /// each operator can be compared alone. kInvalidArgument: no such value, it is an input or a constant, or is named
  /// twice.
  Result<Model> cut(std::span<const std::string> values) const;

  /// For every node and target whether it can run there. Needs no device. "metal", which builds for Apple's systems
  /// have, is answered elsewhere by a back end whose lowering it shares. kInvalidArgument, kUnsupported: find_target().
  Result<std::vector<CheckRow>> check(std::span<const std::string> targets) const;

  /// Compiles, writes, and reads the written bytes back: the Program is what a file would give. It has not been
  /// compared with the source model; pinnace.Model.build in Python does that.
  Result<Program> build(const BuildOptions& options = {}) const;

  struct Data;
  explicit Model(std::shared_ptr<const Data> data) : data_(std::move(data)) {}
  const Data& data() const { return *data_; }

 private:
  std::shared_ptr<const Data> data_;
};

}  // namespace pinnace
#pragma GCC visibility pop
