// Cache files: .pnc files with packed weights, whose facts say what they were made of.
#include "nnapi_host/cache.h"

#include <algorithm>
#include <charconv>
#include <map>

#include "base/cpu_features.h"
#include "base/files/user_cache.h"
#include "base/hash.h"
#include "base/log.h"
#include "base/text.h"
#include "program/reader.h"
#include "program/writer.h"
#include "runtime/prepared_data.h"

namespace pinnace::nnapi_host {
namespace {

constexpr const char *kKeyFact = "nnapi.key", *kInputsFact = "nnapi.inputs";

template <class T>
void add(Hasher& hasher, const T& value) {
  hasher.add(std::as_bytes(std::span(&value, 1)));
}
/// With its length, so that lists that follow each other do not run together.
template <class T>
void add_list(Hasher& hasher, std::span<const T> list) {
  add(hasher, list.size());
  hasher.add(std::as_bytes(list));
}

/// `seen`: models that are hashed, with their numbers. Each is once, however often others refer to it.
void add_model(Hasher& hasher, const nnapi::Model& model, std::map<const nnapi::Model*, size_t>& seen) {
  add(hasher, model.relaxed);
  add(hasher, model.operands.size());
  for (const nnapi::Operand& operand : model.operands) {
    add(hasher, operand.type);
    add_list(hasher, std::span(operand.dims));
    add(hasher, operand.scale);
    add(hasher, operand.zero_point);
    add_list(hasher, std::span(operand.channel_scales));
    add(hasher, operand.channel_dim);
    add(hasher, operand.lifetime);
    add_list(hasher, operand.data);
    if (!operand.model) continue;
    const auto [known, is_new] = seen.emplace(operand.model.get(), seen.size());
    add(hasher, known->second);
    if (is_new) add_model(hasher, *operand.model, seen);
  }
  add(hasher, model.operations.size());
  for (const nnapi::Operation& operation : model.operations) {
    add(hasher, operation.code);
    add_list(hasher, std::span(operation.inputs));
    add_list(hasher, std::span(operation.outputs));
  }
  add_list(hasher, std::span(model.inputs));
  add_list(hasher, std::span(model.outputs));
}

const std::string* fact(const Program& program, std::string_view key) {
  for (const auto& [name, value] : program.metadata()) {
    if (name == key) return &value;
  }
  return nullptr;
}

/// "0 2 3"; false if it is none, or an index is neither below `end` nor kEntropyInput.
bool read_indices(std::string_view text, size_t end, std::vector<uint32_t>& to) {
  while (!text.empty()) {
    uint32_t value = 0;
    const auto [rest, error] = std::from_chars(text.data(), text.data() + text.size(), value);
    if (error != std::errc() || (value >= end && value != nnapi::kEntropyInput)) return false;
    to.push_back(value);
    text.remove_prefix(static_cast<size_t>(rest - text.data()));
    if (!text.empty()) text.remove_prefix(1);
  }
  return true;
}

/// The program takes what the model gives it, and gives as many outputs.
bool fits(const nnapi::Model& model, const Program& program, const std::vector<uint32_t>& inputs) {
  if (program.inputs().size() != inputs.size() || program.outputs().size() != model.outputs.size()) return false;
  for (size_t i = 0; i < inputs.size(); ++i) {
    TensorType type{DType::kI32, {2}, nullptr};
    if (inputs[i] != nnapi::kEntropyInput) {
      const nnapi::Operand& operand = model.operands[model.inputs[inputs[i]]];
      type = nnapi::tensor_type(operand, operand.dims);
    }
    if (type.dtype == DType::kBool) type.dtype = DType::kU8;
    if (program.inputs()[i].type.dtype != type.dtype || program.inputs()[i].type.shape != type.shape) return false;
  }
  return true;
}

}  // namespace

Cache::Cache(const std::string& directory, const CacheToken& token, const nnapi::Model& model, std::string_view target)
    : model_(model), folder_(PrivateFolder::open(directory)), name_("pinnace-") {
  for (uint8_t byte : token) {
    for (int digit : {byte >> 4, byte & 15}) name_ += "0123456789abcdef"[digit];
  }
  name_ += ".pnc";
  Hasher hasher;
  std::map<const nnapi::Model*, size_t> seen;
  add_model(hasher, model, seen);
  key_ = str_cat("model ", hex(hasher.digest()), ", library ", library_build(), ", cpu ", kernel_isa_name(cpu_isa()),
                 ", target ", target);
}

Result<Program> Cache::open_program() const {
  PINNACE_TRY(folder_.status());
  PINNACE_ASSIGN(auto file, folder_->read(name_));
  const std::span<const std::byte> bytes = file->bytes();
  const int descriptor = file->descriptor();
  PINNACE_ASSIGN(auto data,
                 read_program(name_, std::move(file), bytes, {.verify = Verify::kOnUse, .descriptor = descriptor}));
  return Program(std::move(data));
}

std::unique_ptr<Cache::Found> Cache::load(const Options& options) const {
  const auto miss = [&](std::string_view why) {
    PINNACE_LOG_DEBUG("the cache has nothing for this model, '", name_, "': ", why);
    return nullptr;
  };
  const Result<Program> program = open_program();
  if (!program.ok()) return miss(program.status().message());
  const std::string *key = fact(*program, kKeyFact), *inputs = fact(*program, kInputsFact);
  auto found = std::make_unique<Found>();
  if (!key || *key != key_ || !inputs || !read_indices(*inputs, model_.inputs.size(), found->inputs)) {
    return miss("it is of another model, library, processor or target");
  }
  if (!fits(model_, *program, found->inputs)) return miss("its inputs are not the model's");
  auto prepared = Prepared::create(*program, options);
  if (!prepared.ok()) return miss(prepared.status().message());
  auto session = Session::create(*prepared);
  if (!session.ok()) return miss(session.status().message());
  PINNACE_LOG_DEBUG("the model is taken from the cache, '", name_, "'");
  found->prepared = std::move(*prepared);
  found->session = std::make_unique<Session>(std::move(*session));
  return found;
}

void Cache::store(const Prepared& prepared, const std::vector<uint32_t>& inputs) const {
  if (!folder_.ok()) {
    PINNACE_LOG_WARN("the cache folder is not used: ", folder_.status().message());
    return;
  }
  std::vector<Payload> payloads;
  const auto storable = prepared.data().packed.storable();
  if (!storable) return;
  for (const PackedConstants::Entry& entry : *storable) {
    payloads.push_back({entry.target, entry.key, entry.bytes, nullptr});
  }
  std::string indices;
  for (uint32_t i : inputs) indices += str_cat(indices.empty() ? "" : " ", i);
  const auto bytes =
      write_program(prepared.program().data().graph, {{kKeyFact, key_}, {kInputsFact, indices}}, payloads);
  // Without room, or without the right to write, there is no cache.
  const Status kept = bytes.ok() ? folder_->write(name_, {bytes->data(), bytes->size()}) : bytes.status();
  if (kept.ok()) {
    PINNACE_LOG_DEBUG("the model is written to the cache, '", name_, "'");
  } else {
    PINNACE_LOG_WARN("the model is not written to the cache, '", name_, "': ", kept.message());
  }
}

}  // namespace pinnace::nnapi_host
