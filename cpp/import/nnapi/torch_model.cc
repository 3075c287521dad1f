// The parser of PyTorch's serialised NNAPI models. Sections follow each other in a fixed order, each item's size is
// known from the header or the items before it, so one reader that cannot pass the end is all there is to check.
#include "import/nnapi/torch_model.h"

#include <bit>
#include <cstring>

#include "base/status.h"
#include "graph/graph.h"
#include "nnapi/operations.h"

namespace pinnace::nnapi {
namespace {

static_assert(std::endian::native == std::endian::little);

constexpr uint32_t kVersion = 1;
/// PyTorch's own reader refuses more of anything.
constexpr uint32_t kMostItems = 1u << 24;
constexpr uint32_t kImmediate = 0, kNumberedBuffer = 2;

Status corrupt_at(size_t offset, std::string rule) {
  Status status(Code::kCorruptFile, str_cat("not a serialised NNAPI model: ", rule, ", at byte ", offset));
  return status.with_offset(static_cast<int64_t>(offset)).with_rule(std::move(rule));
}

class Reader {
 public:
  explicit Reader(std::span<const std::byte> bytes) : bytes_(bytes) {}

  size_t offset() const { return offset_; }
  size_t left() const { return bytes_.size() - offset_; }

  Status corrupt(std::string rule) const { return corrupt_at(offset_, std::move(rule)); }

  Result<uint32_t> word(const char* what) {
    PINNACE_ASSIGN(const std::span<const std::byte> taken, take(4, what));
    uint32_t value;
    std::memcpy(&value, taken.data(), 4);
    return value;
  }

  Result<std::span<const std::byte>> take(size_t bytes, const char* what) {
    if (bytes > left()) return corrupt(str_cat(what, ": ", bytes, " bytes, ", left(), " are left"));
    const auto taken = bytes_.subspan(offset_, bytes);
    offset_ += bytes;
    return taken;
  }

  /// `count` words; the count is checked against what is left before anything is allocated.
  Result<std::vector<uint32_t>> words(size_t count, const char* what) {
    if (count > left() / 4) return corrupt(str_cat(what, ": ", count, " words, ", left(), " bytes are left"));
    std::vector<uint32_t> values(count);
    if (count > 0) std::memcpy(values.data(), bytes_.data() + offset_, count * 4);
    offset_ += count * 4;
    return values;
  }

 private:
  std::span<const std::byte> bytes_;
  size_t offset_ = 0;
};

struct Header {
  uint32_t operands, values, operations, inputs, outputs;
};

struct ValueRecord {
  uint32_t operand, source, bytes;
};

struct OperationRecord {
  uint32_t code, inputs, outputs;
};

Result<Header> read_header(Reader& in) {
  PINNACE_ASSIGN(const std::vector<uint32_t> h, in.words(6, "header"));
  if (h[0] != kVersion) return corrupt_at(0, str_cat("version ", h[0], ", this build reads ", kVersion));
  for (size_t i = 1; i < h.size(); ++i) {
    if (h[i] >= kMostItems) return corrupt_at(i * 4, str_cat("a count of ", h[i], ", below ", kMostItems, " are read"));
  }
  return Header{h[1], h[2], h[3], h[4], h[5]};
}

/// Everything of the operands but their dimensions, which come later; `ranks` receives how many there are.
Status read_operands(Reader& in, uint32_t count, Model& model, std::vector<uint32_t>& ranks) {
  if (count > in.left() / 16) return in.corrupt(str_cat(count, " operands, ", in.left(), " bytes are left"));
  for (uint32_t i = 0; i < count; ++i) {
    PINNACE_ASSIGN(const std::vector<uint32_t> words, in.words(4, "operand"));
    Operand operand;
    operand.type = static_cast<OperandCode>(words[0]);
    operand.scale = std::bit_cast<float>(words[2]);
    operand.zero_point = static_cast<int32_t>(words[3]);
    ranks.push_back(words[1]);
    model.operands.push_back(std::move(operand));
  }
  return {};
}

template <class Record>
Result<std::vector<Record>> read_records(Reader& in, uint32_t count, const char* what) {
  PINNACE_ASSIGN(const std::vector<uint32_t> words, in.words(size_t{count} * 3, what));
  std::vector<Record> records;
  for (size_t i = 0; i < words.size(); i += 3) records.push_back({words[i], words[i + 1], words[i + 2]});
  return records;
}

Status read_dimensions(Reader& in, std::span<const uint32_t> ranks, Model& model) {
  for (size_t i = 0; i < ranks.size(); ++i) {
    const size_t at = in.offset();
    PINNACE_ASSIGN(model.operands[i].dims, in.words(ranks[i], "dimensions"));
    const Operand& o = model.operands[i];
    const Status status =
        validate_operand(static_cast<int32_t>(o.type), ranks[i], o.dims.data(), o.scale, o.zero_point);
    if (!status.ok()) return corrupt_at(at, str_cat("operand ", i, ": ", status.message()));
  }
  return {};
}

/// The bytes that a record refers to; copied, since what was handed over is the caller's.
Result<std::span<const std::byte>> value_bytes(Reader& in, const ValueRecord& record,
                                               std::span<const std::span<const std::byte>> buffers) {
  if (record.source == kImmediate) {
    PINNACE_ASSIGN(const std::span<const std::byte> bytes, in.take(record.bytes, "value"));
    PINNACE_TRY(in.take((4 - record.bytes % 4) % 4, "padding of a value").status());
    return bytes;
  }
  if (record.source != kNumberedBuffer) {
    return in.corrupt(str_cat("a value from source ", record.source, ", only 0 (here) and 2 (a buffer) are read"));
  }
  if (record.bytes != 12) return in.corrupt(str_cat("a reference of ", record.bytes, " bytes, it has 12"));
  PINNACE_ASSIGN(const std::vector<uint32_t> reference, in.words(3, "reference to a buffer"));
  if (reference[0] >= buffers.size()) {
    return in.corrupt(str_cat("buffer ", reference[0], ", there are ", buffers.size()));
  }
  const std::span<const std::byte> buffer = buffers[reference[0]];
  if (reference[1] > buffer.size() || reference[2] > buffer.size() - reference[1]) {
    return in.corrupt(str_cat("bytes ", reference[1], " and ", reference[2], " more of buffer ", reference[0],
                              ", which has ", buffer.size()));
  }
  return buffer.subspan(reference[1], reference[2]);
}

Status read_values(Reader& in, std::span<const ValueRecord> records,
                   std::span<const std::span<const std::byte>> buffers, Model& model) {
  for (const ValueRecord& record : records) {
    const size_t at = in.offset();
    PINNACE_ASSIGN(const std::span<const std::byte> bytes, value_bytes(in, record, buffers));
    if (record.operand >= model.operands.size()) {
      return corrupt_at(at, str_cat("a value of operand ", record.operand, " of ", model.operands.size()));
    }
    Operand& operand = model.operands[record.operand];
    if (operand.lifetime != Lifetime::kTemporary) {
      return corrupt_at(at, str_cat("a second value of operand ", record.operand));
    }
    if (info(operand.type).bytes == 0) {
      return corrupt_at(at, str_cat("a value of operand ", record.operand, ", a ", info(operand.type).name));
    }
    if (!operand.shape_known() || operand.bytes() != bytes.size()) {
      return corrupt_at(at, str_cat(bytes.size(), " bytes for operand ", record.operand, ", which has ",
                                    operand.shape_known() ? operand.bytes() : 0));
    }
    PINNACE_ASSIGN(ConstantPtr copy, Constant::copy_of(bytes.data(), bytes.size()));
    operand.data = {copy->data(), copy->bytes()};
    operand.owner = std::move(copy);
    operand.lifetime = Lifetime::kConstant;
  }
  return {};
}

Status read_operations(Reader& in, std::span<const OperationRecord> records, Model& model) {
  for (size_t i = 0; i < records.size(); ++i) {
    const OperationRecord& record = records[i];
    Operation operation{static_cast<int32_t>(record.code), {}, {}};
    PINNACE_ASSIGN(operation.inputs, in.words(record.inputs, "inputs of an operation"));
    PINNACE_ASSIGN(operation.outputs, in.words(record.outputs, "outputs of an operation"));
    const Result<int> level = validate_operation(model, operation);
    if (!level.ok()) return level.status().with_prefix(str_cat("operation ", i, ": "));
    model.operations.push_back(std::move(operation));
  }
  return {};
}

/// Inputs or outputs of the model.
Status read_edges(Reader& in, uint32_t count, Lifetime lifetime, Model& model, std::vector<uint32_t>& edges) {
  const size_t at = in.offset();
  PINNACE_ASSIGN(edges, in.words(count, "inputs and outputs"));
  for (size_t i = 0; i < edges.size(); ++i) {
    const bool known = edges[i] < model.operands.size();
    if (!known || model.operands[edges[i]].lifetime != Lifetime::kTemporary) {
      return corrupt_at(at + i * 4, str_cat("operand ", edges[i], " as an input or output: it ",
                                            known ? "is a constant, or one already" : "does not exist"));
    }
    model.operands[edges[i]].lifetime = lifetime;
  }
  return {};
}

}  // namespace

Result<Model> parse_torch_model(std::span<const std::byte> bytes, std::span<const std::span<const std::byte>> buffers) {
  Reader in(bytes);
  Model model;
  std::vector<uint32_t> ranks;
  PINNACE_ASSIGN(const Header header, read_header(in));
  PINNACE_TRY(read_operands(in, header.operands, model, ranks));
  PINNACE_ASSIGN(const auto values, read_records<ValueRecord>(in, header.values, "values"));
  PINNACE_ASSIGN(const auto operations, read_records<OperationRecord>(in, header.operations, "operations"));
  PINNACE_TRY(read_dimensions(in, ranks, model));
  PINNACE_TRY(read_values(in, values, buffers, model));
  PINNACE_TRY(read_operations(in, operations, model));
  PINNACE_TRY(read_edges(in, header.inputs, Lifetime::kInput, model, model.inputs));
  PINNACE_TRY(read_edges(in, header.outputs, Lifetime::kOutput, model, model.outputs));
  if (in.left() > 0) return in.corrupt(str_cat(in.left(), " bytes behind the end"));
  if (model.inputs.empty() || model.outputs.empty()) return in.corrupt("a model without inputs or outputs");
  PINNACE_TRY(finish_model(model));
  return model;
}

}  // namespace pinnace::nnapi
