// Lowering a segment node by node, cutting it where layouts change between models, and handing the parts to the
// library.
#include "backends/nnapi/compile.h"

#include <algorithm>

#include "backends/nnapi/executable.h"
#include "backends/nnapi/kept_states.h"
#include "backends/packed_constants.h"
#include "base/hash.h"
#include "base/log.h"

namespace pinnace::nnapi_client {

using nnapi::Lifetime;

namespace {

/// "CONV_2D+RELU": the operations from `first` on.
std::string operations_text(const nnapi::Model& model, size_t first) {
  std::string text;
  for (size_t i = first; i < model.operations.size(); ++i) {
    const nnapi::OperationInfo* known = nnapi::operation_info(model.operations[i].code);
    text += str_cat(text.empty() ? "" : "+", known ? known->name : "change of layout");
  }
  return text.empty() ? "no operation" : text;
}

/// Operators that change, move or compare plain 8-bit integers without computing with them: those stop at the ends of
/// their range in NNAPI, where ours wrap. Reductions are computed with where a feature level lacks them.
bool takes_bytes(const OpDef& op) {
  if (op.has(Trait::kReduction)) return false;
  if (op.has(Trait::kMoves | Trait::kCompares | Trait::kConverts | Trait::kControlFlow)) return true;
  return op.name == "lsh_projection" || op.name == "quantized_lstm" || op.name == "quantized_lstm_u8";
}

/// Operators whose lowering looks at the graph's sizes, not at an operand's, or at no sizes at all.
bool takes_any_rank(const OpDef& op) {
  if (op.has(Trait::kView | Trait::kControlFlow)) return true;
  return op.name == "gather" || op.name == "log_softmax" || op.name == "transpose";
}

/// Operators whose lowering leaves the contents of constants to what fills weights; what the file has laid out of these
/// is then not read. Places and sizes, integers, are always looked at.
bool reads_only_to_fill(const OpDef& op) {
  return op.has(Trait::kProduct | Trait::kRecurrent) || op.name == "gather";
}
bool computed_with(DType dtype) {
  return dtype == DType::kF32 || dtype == DType::kF16 || dtype == DType::kI8 || dtype == DType::kU8;
}

/// What payloads of a level are for: "nnapi:29", "nnapi:fl6".
std::string target_name(int level) {
  return level <= 5 ? str_cat("nnapi:", nnapi::feature_level_code(level)) : str_cat("nnapi:fl", level);
}

/// Operators that look at each element by itself: ranks above 4 stand as one dimension, if no input is repeated but
/// single numbers.
bool takes_elements(const NodeView& view, std::span<const TensorType* const> outputs) {
  if (!view.op().has(Trait::kElementwise)) return false;
  for (int i = 0; i < view.input_count(); ++i) {
    if (!view.has_input(i)) continue;
    const TensorType& type = view.input(i);
    const bool number = type.elements() == 1 && (type.rank() <= 1 || type.rank() > 4);
    if (!number && type.shape != outputs[0]->shape) return false;
  }
  return true;
}

}  // namespace

Status lower_node(Lowering& lowering, const NodeView& view, std::span<const TensorType* const> outputs,
                  Verdict& verdict) {
  for (const TensorType* type : outputs) {
    if (type->concrete()) continue;
    verdict = refusal(Rule::kOpen, to_string(*type));
    return Status(Code::kUnsupported, verdict.text);
  }
  const LowerFn lower = find_lowering(view.node().op);
  if (!lower) {
    verdict = refusal(Rule::kOperator, view.node().op);
    return Status(Code::kUnsupported, verdict.text);
  }
  for (const TensorType* type : outputs) {
    for (const Dim& d : type->shape) {
      if (d.size != 0) continue;
      verdict = refusal(Rule::kEmpty, to_string(*type));
      return Status(Code::kUnsupported, verdict.text);
    }
  }
  if (!takes_bytes(view.op())) {
    for (int i = 0; i < view.input_count(); ++i) {
      if (!view.has_input(i) || view.input(i).quantized()) continue;
      if (view.input(i).dtype != DType::kU8 && view.input(i).dtype != DType::kI8) continue;
      verdict = refusal(Rule::kType, str_cat("arithmetic on ", view.input(i)));
      return Status(Code::kUnsupported, verdict.text);
    }
  }
  // u16 stands as i32, and would otherwise be computed with as such.
  if (!view.op().has(Trait::kConverts)) {
    for (int i = 0; i < view.input_count() + view.output_count(); ++i) {
      const int at = i - view.input_count();
      if (at < 0 && !view.has_input(i)) continue;
      const TensorType& type = at < 0 ? view.input(i) : *outputs[static_cast<size_t>(at)];
      if (type.dtype != DType::kU16) continue;
      verdict = refusal(Rule::kType, to_string(type));
      return Status(Code::kUnsupported, verdict.text);
    }
  }
  if (!takes_any_rank(view.op()) && !takes_elements(view, outputs)) {
    for (int i = 0; i < view.input_count() + view.output_count(); ++i) {
      const int at = i - view.input_count();
      if (at < 0 && !view.has_input(i)) continue;
      const TensorType& type = at < 0 ? view.input(i) : *outputs[static_cast<size_t>(at)];
      if (type.rank() <= 4) continue;
      verdict = refusal(Rule::kRank, to_string(type));
      return Status(Code::kUnsupported, verdict.text);
    }
  }
  const size_t first = lowering.model().operations.size();
  NodeLowering n(lowering, view, outputs);
  Status status;
  if (const auto use = plan_int64(n); use) {
    lowering.set_int64(*use);
    status = lower(n);
    lowering.set_int64(Int64::kRefused);
  } else {
    status = use.status();
  }
  verdict = n.verdict();
  verdict.supported = status.ok();
  if (status.ok()) {
    verdict.kernel = operations_text(lowering.model(), first);
  } else if (verdict.rule.empty()) {
    verdict = refusal(Rule::kAttribute, status.message());
  }
  return status;
}

Verdict lower_alone(const NodeView& node, int level) {
  // Values are numbered anew: a graph may have many, a node has few.
  Node alone;
  alone.op = node.node().op;
  alone.version = node.node().version;
  alone.name = node.node().name;
  alone.attrs = node.node().attrs;
  std::vector<ValueId> known;
  std::vector<LoweredValue> values;
  const auto number = [&](ValueId id) {
    if (id == kNoValue) return kNoValue;
    const auto found = std::find(known.begin(), known.end(), id);
    if (found != known.end()) return static_cast<ValueId>(found - known.begin());
    known.push_back(id);
    values.emplace_back();
    return static_cast<ValueId>(known.size() - 1);
  };
  std::vector<const TensorType*> types;
  std::vector<const void*> data;
  for (int i = 0; i < node.input_count(); ++i) {
    alone.inputs.push_back(node.has_input(i) ? number(node.node().inputs[static_cast<size_t>(i)]) : kNoValue);
    types.push_back(node.has_input(i) ? &node.input(i) : nullptr);
    data.push_back(node.input_data(i));
    if (!node.has_input(i)) continue;
    LoweredValue& v = values[static_cast<size_t>(alone.inputs.back())];
    v.type = types.back();
    v.data = data.back();
    v.constant = data.back() != nullptr;
  }
  const auto made = infer_node_types(node);
  if (!made) return refusal(Rule::kAttribute, made.status().message());
  std::vector<const TensorType*> outputs;
  for (size_t i = 0; i < made->size(); ++i) {
    alone.outputs.push_back(number(node.node().outputs[i]));
    values[static_cast<size_t>(alone.outputs.back())].type = &(*made)[i];
    outputs.push_back(&(*made)[i]);
  }
  Lowering lowering(level, true, std::move(values));
  NodeView view(alone, node.op(), types, data, outputs);
  view.set_ops(node.ops());
  Verdict verdict;
  if (!lower_node(lowering, view, outputs, verdict).ok()) return verdict;
  if (!lowering.finish(alone.outputs, verdict).ok()) verdict.supported = false;
  return verdict;
}

/// Lowers a segment and makes an executable of it.
class SegmentCompiler {
 public:
  SegmentCompiler(const Segment& segment, const DriverOptions& options)
      : segment_(segment), lowering_(options.feature_level, false, values(segment)), made_(new NnapiExecutable) {}

  /// Constants are checked before they are read: here, or where a weight is made of them.
  Status lower() {
    for (int32_t k : segment_.nodes) {
      const Node& node = *segment_.graph.nodes[static_cast<size_t>(k)];
      std::vector<const TensorType*> types, outputs;
      std::vector<const void*> data;
      for (ValueId id : node.inputs) {
        types.push_back(id == kNoValue ? nullptr : &segment_.type_inference.types[static_cast<size_t>(id)]);
        data.push_back(id == kNoValue ? nullptr : lowering_.value(id).data);
      }
      for (ValueId id : node.outputs) outputs.push_back(&segment_.type_inference.types[static_cast<size_t>(id)]);
      NodeView view(node, *segment_.ops.find(node.op), types, data, outputs);
      view.set_ops(&segment_.ops);
      for (const auto& [name, attr] : node.attrs) {
        if (const auto* body = std::get_if<GraphPtr>(&attr)) PINNACE_TRY(check_constants(**body));
      }
      const bool later = reads_only_to_fill(view.op());
      for (ValueId id : node.inputs) {
        if (id == kNoValue || !segment_.type_inference.data[static_cast<size_t>(id)]) continue;
        if (later && computed_with(segment_.type_inference.types[static_cast<size_t>(id)].dtype)) continue;
        PINNACE_TRY(segment_.type_inference.data[static_cast<size_t>(id)]->check());
      }
      Status readable;
      lowering_.set_before_reading([&] {
        if (readable.ok()) readable = check_constants_of(node);
      });
      lowering_.set_key(key_of(k));
      first_operation_.push_back(lowering_.model().operations.size());
      first_weight_.push_back(lowering_.weights().size());
      Verdict verdict;
      const Status status = lower_node(lowering_, view, outputs, verdict);
      lowering_.set_before_reading(nullptr);
      PINNACE_TRY(readable);
      if (!status.ok()) return refused(view.label(), status, verdict);
      made_->kernels_.push_back(verdict.kernel);
    }
    Verdict verdict;
    const Status status = lowering_.finish(segment_.outputs, verdict);
    if (!status.ok()) return refused("an output", status, verdict);
    made_->first_ = segment_.graph.nodes[static_cast<size_t>(segment_.nodes[0])].get();
    return {};
  }

  /// Builds the models and asks for each operation.
  Result<std::vector<Verdict>> ask(const std::shared_ptr<const Library>& library, const DeviceInfo& device,
                                   const DriverOptions& options) {
    PINNACE_TRY(build_parts(library, device, options));
    std::vector<Verdict> verdicts(segment_.nodes.size());
    bool all = true;
    for (size_t s = 0; s < parts_.size(); ++s) {
      if (parts_[s].empty()) continue;
      PINNACE_ASSIGN(const std::vector<bool> taken, made_->stages_[s].model->supported(parts_[s].size()));
      for (size_t i = 0; i < taken.size(); ++i) {
        if (taken[i]) continue;
        all = false;
        const auto after = std::upper_bound(first_operation_.begin(), first_operation_.end(), parts_[s][i]);
        const nnapi::OperationInfo* known = nnapi::operation_info(lowering_.model().operations[parts_[s][i]].code);
        verdicts[static_cast<size_t>(after - first_operation_.begin()) - 1] =
            refusal(Rule::kDevice, str_cat(known->name, " on ", device.name));
      }
    }
    if (all) verdicts.clear();
    return verdicts;
  }

  Result<std::unique_ptr<Executable>> build(const std::shared_ptr<const Library>& library, const DeviceInfo& device,
                                            const DriverOptions& options) {
    const LogTime time;
    PINNACE_TRY(build_parts(library, device, options));
    for (Stage& stage : made_->stages_) {
      if (stage.model) PINNACE_TRY(stage.model->compile());
    }
    keep_states();
    note_weights(options.feature_level);
    PINNACE_LOG_INFO("compiled for NNAPI device ", device.name, " ", device.version, ", feature level ",
                     options.feature_level, ": ", made_->stages_.size(), " models, in ", time.text());
    if (!options.cache_folder.empty()) {
      PINNACE_LOG_DEBUG("the NNAPI driver may keep what it compiled in '", options.cache_folder, "'");
    }
    if (!options.cache_problem.empty()) {
      PINNACE_LOG_WARN("the cache folder is not used: ", options.cache_problem);
    }
    if (const std::string& problem = options.cache_problem; !problem.empty() && !made_->notices_.empty()) {
      std::string& notice = made_->notices_.front();
      notice += str_cat(notice.empty() ? "" : "; ", "the driver keeps nothing: ", problem);
    }
    return std::unique_ptr<Executable>(std::move(made_));
  }

  /// Leaves what a file is to have in Segment::packed.
  Result<std::unique_ptr<Executable>> store(int level) {
    for (size_t w = 0; w < lowering_.weights().size(); ++w) {
      const Weight& weight = lowering_.weights()[w];
      if (!weight.stores) continue;
      const auto make = [&]() -> Result<Buffer> {
        PINNACE_TRY(check_constants_of(node_of(w)));
        PINNACE_TRY(check_stopped("the packing of weights for NNAPI"));
        PINNACE_ASSIGN(Buffer buffer, Buffer::allocate(weight.bytes, "a weight for NNAPI"));
        weight.fill(buffer.data());
        return buffer;
      };
      const auto any = [](const std::byte*) { return true; };
      PINNACE_TRY(segment_.packed.get(target_name(level), weight.key, weight.bytes, any, make).status());
    }
    return std::unique_ptr<Executable>(std::move(made_));
  }

 private:
  Status build_parts(const std::shared_ptr<const Library>& library, const DeviceInfo& device,
                     const DriverOptions& options) {
    cut();
    place_boundaries();
    PINNACE_ASSIGN(const auto store, segment_.packed.shared<WeightStore>("nnapi weights"));
    const WeightStore::Maker maker{
        .check = [&](size_t w) { return check_constants_of(node_of(w)); },
        .lasts = [&](size_t w) { return lowering_.weights()[w].stores && !reads_computed(node_of(w)); },
    };
    PINNACE_ASSIGN(placed_, store->place(library, target_name(options.feature_level), segment_.packed,
                                         lowering_.weights(), maker));
    drop_sources();
    for (size_t s = 0; s < parts_.size(); ++s) {
      Stage stage;
      stage.moves = std::move(moves_[s]);
      if (!parts_[s].empty()) PINNACE_TRY(build_part(s, library, device, options, stage));
      made_->stages_.push_back(std::move(stage));
    }
    return {};
  }

  /// The node that weight `w` was made for.
  const Node& node_of(size_t w) const {
    const auto after = std::upper_bound(first_weight_.begin(), first_weight_.end(), w);
    const auto k = static_cast<size_t>(after - first_weight_.begin()) - 1;
    return *segment_.graph.nodes[static_cast<size_t>(segment_.nodes[k])];
  }
  Status check_constants_of(const Node& node) const {
    for (ValueId id : node.inputs) {
      if (id == kNoValue || !segment_.type_inference.data[static_cast<size_t>(id)]) continue;
      PINNACE_TRY(segment_.type_inference.data[static_cast<size_t>(id)]->check());
    }
    return {};
  }
  /// Whoever wants them again has them from the file.
  void drop_sources() const {
    for (size_t w = 0; w < placed_.size(); ++w) {
      if (placed_[w].stored || !lowering_.weights()[w].stores) continue;
      for (ValueId id : node_of(w).inputs) {
        if (id != kNoValue && segment_.graph.value(id).constant) segment_.graph.value(id).constant->drop_pages();
      }
    }
  }

  /// Says of nodes whose weights were laid out here that the file has others.
  void note_weights(int level) {
    std::string others;
    bool same = false;
    for (const std::string& target : segment_.packed.stored_targets()) {
      if (!target.starts_with("nnapi:")) continue;
      same |= target == target_name(level);
      others += str_cat(others.empty() ? "" : ", ", target);
    }
    made_->notices_.resize(segment_.nodes.size());
    for (size_t w = 0; w < placed_.size() && !others.empty(); ++w) {
      if (placed_[w].stored || !lowering_.weights()[w].stores) continue;
      const auto after = std::upper_bound(first_weight_.begin(), first_weight_.end(), w);
      made_->notices_[static_cast<size_t>(after - first_weight_.begin()) - 1] =
          same ? str_cat("laid out at load: what the file has for ", target_name(level),
                         " is of another layout or for other sizes")
               : str_cat("laid out at load: the file has weights for ", others, ", this runs as ", target_name(level));
    }
  }

  /// Unique for the node, in order of execution, and with all that its weights are made of beside their role: the
  /// level, and values that were computed ahead, which may be others for other sizes.
  std::string key_of(int32_t index) const {
    const Node& node = *segment_.graph.nodes[static_cast<size_t>(index)];
    std::string key = str_cat("layout ", kWeightLayout, "/fl", lowering_.feature_level(), "/", segment_.key_prefix,
                              numbered(index), " ", node.name);
    for (ValueId id : node.inputs) {
      if (!is_computed(id)) continue;
      const Constant& computed = *segment_.type_inference.data[static_cast<size_t>(id)];
      key += str_cat("#", hash64({computed.data(), computed.bytes()}));
    }
    return key;
  }
  /// Whether a value was computed ahead, perhaps for the sizes of this plan.
  bool is_computed(ValueId id) const {
    return id != kNoValue && !segment_.graph.value(id).constant &&
           segment_.type_inference.data[static_cast<size_t>(id)];
  }
  bool reads_computed(const Node& node) const {
    return std::any_of(node.inputs.begin(), node.inputs.end(), [&](ValueId id) { return is_computed(id); });
  }

  static std::vector<LoweredValue> values(const Segment& segment) {
    std::vector<LoweredValue> all(segment.graph.values.size());
    for (size_t i = 0; i < all.size(); ++i) {
      all[i].type = &segment.type_inference.types[i];
      if (!segment.type_inference.data[i]) continue;
      all[i].constant = true;
      all[i].data = segment.type_inference.data[i]->data();
    }
    return all;
  }

  static Status refused(std::string_view what, const Status& status, const Verdict& verdict) {
    return Status(
        Code::kDeviceLost,
        str_cat("lowering of ", what, ": ", status.message(), verdict.value.empty() ? "" : ", is ", verdict.value,
                verdict.rule.empty() ? "" : " (rule ", verdict.rule, verdict.rule.empty() ? "" : ")"));
  }

  /// Sorts operations into parts: those that need nothing that a change of layout makes, those that need one, …
  void cut() {
    const nnapi::Model& model = lowering_.model();
    stage_of_.assign(model.operands.size(), 0);
    std::vector<size_t> of_operation(model.operations.size(), 0);
    size_t last = 0, move = 0;
    for (size_t k = 0; k < model.operations.size(); ++k) {
      const nnapi::Operation& op = model.operations[k];
      size_t stage = 0;
      for (OperandId i : op.inputs) stage = std::max(stage, stage_of_[i]);
      if (op.code == kHostMoveCode) ++stage;
      of_operation[k] = stage;
      for (OperandId o : op.outputs) stage_of_[o] = stage;
      last = std::max(last, stage);
    }
    parts_.resize(last + 1);
    moves_.resize(last + 1);
    for (size_t k = 0; k < model.operations.size(); ++k) {
      if (model.operations[k].code != kHostMoveCode) {
        parts_[of_operation[k]].push_back(k);
        continue;
      }
      const HostMove& m = lowering_.moves()[move++];
      const nnapi::Operand& from = model.operands[m.from];
      const bool to_last = m.from_layout == Layout::kPlain;
      const nnapi::Operand& plain = to_last ? from : model.operands[m.to];
      moves_[of_operation[k]].push_back(
          {workspace_of(m.from), workspace_of(m.to), nnapi::info(from.type).bytes, plain.dims, to_last});
    }
  }

  /// A place of the operand's own in the workspace.
  size_t workspace_of(OperandId id) {
    if (offsets_.size() <= id) offsets_.resize(lowering_.model().operands.size(), SIZE_MAX);
    if (offsets_[id] == SIZE_MAX) {
      offsets_[id] = made_->workspace_;
      made_->workspace_ += aligned_size(lowering_.model().operands[id].bytes());
    }
    return offsets_[id];
  }

  void place_boundaries() {
    offsets_.resize(lowering_.model().operands.size(), SIZE_MAX);
    direct_.resize(offsets_.size());
    const auto place = [&](const Boundary& b, const std::vector<ValueId>& list, Place::Kind kind,
                           std::vector<Exchange>& exchanges) {
      const nnapi::Operand& o = lowering_.model().operands[b.operand];
      const auto index = static_cast<size_t>(std::find(list.begin(), list.end(), b.value) - list.begin());
      const bool moved = b.layout == Layout::kChannelsLast && o.dims[3] > 1 && o.dims[1] * uint64_t{o.dims[2]} > 1;
      const size_t size = nnapi::info(o.type).bytes;
      std::vector<uint32_t> nchw;
      if (moved) nchw = {o.dims[0], o.dims[3], o.dims[1], o.dims[2]};
      const size_t state = state_of(b.operand);
      Exchange exchange{index, 0, o.bytes() / size, size, b.elements, b.exact, std::move(nchw), state};
      if (state != kNoState && kind == Place::Kind::kInput) forms_[state] = exchange;
      // What a change of layout reads or writes lies in the workspace.
      if (!moved && b.elements == Elements::kSame && offsets_[b.operand] == SIZE_MAX) {
        direct_[b.operand] = {true, {kind, index, 0, o.bytes(), state}};
        return;
      }
      exchange.offset = workspace_of(b.operand);
      exchanges.push_back(std::move(exchange));
    };
    find_states();
    for (const Boundary& b : lowering_.entries()) place(b, segment_.inputs, Place::Kind::kInput, made_->entries_);
    for (const Boundary& b : lowering_.exits()) place(b, segment_.outputs, Place::Kind::kOutput, made_->exits_);
  }

  Place place_of(OperandId id) {
    if (direct_[id].first) return direct_[id].second;
    const size_t bytes = lowering_.model().operands[id].bytes();
    return {Place::Kind::kWorkspace, 0, workspace_of(id), bytes, state_of(id)};
  }

  /// States that enter and leave the only model in one form: what a run leaves is what the next one reads.
  void find_states() {
    forms_.resize(segment_.states.size());
    if (parts_.size() != 1) return;
    const auto only = [](const std::vector<Boundary>& boundaries, ValueId id) -> const Boundary* {
      const auto is = [id](const Boundary& b) { return b.value == id; };
      const auto found = std::find_if(boundaries.begin(), boundaries.end(), is);
      return found != boundaries.end() && std::find_if(found + 1, boundaries.end(), is) == boundaries.end() ? &*found
                                                                                                            : nullptr;
    };
    for (size_t i = 0; i < segment_.states.size(); ++i) {
      const Boundary* in = only(lowering_.entries(), segment_.inputs[segment_.states[i].input]);
      const Boundary* out = only(lowering_.exits(), segment_.outputs[segment_.states[i].output]);
      if (!in || !out || in->layout != out->layout || in->elements != out->elements) continue;
      const nnapi::Operand &a = lowering_.model().operands[in->operand], &b = lowering_.model().operands[out->operand];
      if (a.type != b.type || a.dims != b.dims || a.scale != b.scale || a.zero_point != b.zero_point) continue;
      states_.push_back({in->operand, i});
      states_.push_back({out->operand, i});
    }
  }
  size_t state_of(OperandId id) const {
    const auto found = std::find_if(states_.begin(), states_.end(), [id](const auto& s) { return s.first == id; });
    return found == states_.end() ? kNoState : found->second;
  }
  void keep_states() {
    made_->kept_.resize(segment_.states.size());
    if (states_.empty()) return;
    const Stage& stage = made_->stages_[0];
    const auto index = [](const std::vector<Place>& places, size_t state) {
      const auto found = std::find_if(places.begin(), places.end(), [&](const Place& p) { return p.state == state; });
      return found == places.end() ? UINT32_MAX : static_cast<uint32_t>(found - places.begin());
    };
    for (size_t i = 0; i < segment_.states.size(); ++i) {
      const uint32_t in = index(stage.inputs, i), out = index(stage.outputs, i);
      if (in == UINT32_MAX || out == UINT32_MAX) continue;
      made_->kept_[i] = KeptForm{forms_[i], in, out, stage.inputs[in].bytes};
    }
  }

  Status build_part(size_t s, const std::shared_ptr<const Library>& library, const DeviceInfo& device,
                    const DriverOptions& options, Stage& stage) {
    const nnapi::Model& whole = lowering_.model();
    nnapi::Model part;
    std::vector<uint32_t> numbers(whole.operands.size(), UINT32_MAX);
    std::vector<bool> made_here(whole.operands.size(), false), read_later(whole.operands.size(), false);
    for (size_t k : parts_[s]) {
      for (OperandId o : whole.operations[k].outputs) made_here[o] = true;
    }
    for (size_t later = s + 1; later < parts_.size(); ++later) {
      for (size_t k : parts_[later]) {
        for (OperandId i : whole.operations[k].inputs) read_later[i] = true;
      }
    }
    for (const HostMove& m : lowering_.moves()) read_later[m.from] = true;
    const auto take = [&](OperandId id) {
      if (numbers[id] != UINT32_MAX) return numbers[id];
      numbers[id] = static_cast<uint32_t>(part.operands.size());
      part.operands.push_back(whole.operands[id]);
      nnapi::Operand& o = part.operands.back();
      const bool leaves = made_here[id] && (o.lifetime == Lifetime::kOutput || read_later[id]);
      if (leaves) {
        o.lifetime = Lifetime::kOutput;
        part.outputs.push_back(numbers[id]);
        stage.outputs.push_back(place_of(id));
      } else if ((o.lifetime == Lifetime::kTemporary || o.lifetime == Lifetime::kOutput ||
                  o.lifetime == Lifetime::kInput) &&
                 !made_here[id]) {
        o.lifetime = Lifetime::kInput;
        part.inputs.push_back(numbers[id]);
        stage.inputs.push_back(place_of(id));
      }
      return numbers[id];
    };
    for (size_t k : parts_[s]) {
      nnapi::Operation op = whole.operations[k];
      for (OperandId& i : op.inputs) i = take(i);
      for (OperandId& o : op.outputs) o = take(o);
      part.operations.push_back(std::move(op));
    }
    std::vector<ConstantInMemory> constants;
    for (size_t w = 0; w < lowering_.weights().size(); ++w) {
      const Weight& weight = lowering_.weights()[w];
      // Of bodies all that there are: whoever builds the part takes those that it refers to.
      const uint32_t number = weight.body ? weight.operand : numbers[weight.operand];
      if (number != UINT32_MAX) constants.push_back({weight.body, number, placed_[w]});
    }
    PINNACE_ASSIGN(stage.model, DriverModel::build(library, device, options, part, constants));
    return {};
  }

  const Segment& segment_;
  Lowering lowering_;
  std::unique_ptr<NnapiExecutable> made_;
  std::vector<size_t> first_operation_;               // per node, in ascending order
  std::vector<size_t> first_weight_;                  // likewise
  std::vector<size_t> stage_of_;                      // per operand
  std::vector<std::vector<size_t>> parts_;            // operations
  std::vector<std::vector<Move>> moves_;              // before each part
  std::vector<size_t> offsets_;                       // in the workspace, per operand
  std::vector<std::pair<bool, Place>> direct_;        // per operand
  std::vector<PlacedWeight> placed_;                  // per weight
  std::vector<std::pair<OperandId, size_t>> states_;  // operands that are states of the segment
  std::vector<Exchange> forms_;                       // per state of the segment: between its bytes and the model's
};

std::vector<Verdict> ask_device(const Segment& segment, const std::shared_ptr<const Library>& library,
                                const DeviceInfo& device, const DriverOptions& options) {
  SegmentCompiler compiler(segment, options);
  if (!compiler.lower().ok()) return {};
  auto verdicts = compiler.ask(library, device, options);
  return verdicts ? std::move(*verdicts) : std::vector<Verdict>();
}

Result<std::unique_ptr<Executable>> compile_segment(const Segment& segment,
                                                    const std::shared_ptr<const Library>& library,
                                                    const DeviceInfo& device, const DriverOptions& options) {
  SegmentCompiler compiler(segment, options);
  PINNACE_TRY(compiler.lower());
  return compiler.build(library, device, options);
}

Result<std::unique_ptr<Executable>> store_segment(const Segment& segment, const DriverOptions& options) {
  SegmentCompiler compiler(segment, options);
  PINNACE_TRY(compiler.lower());
  return compiler.store(options.feature_level);
}

}  // namespace pinnace::nnapi_client
