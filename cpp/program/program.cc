// The public class Program: shared, immutable ProgramData.
#include <pinnace/descriptor.h>
#include <pinnace/program.h>

#include <atomic>
#include <cstring>

#include "base/exception_boundary.h"
#include "base/files/atomic_file.h"
#include "base/files/mapped_file.h"
#include "base/log.h"
#include "program/node_info.h"
#include "program/reader.h"
#include "program/streams.h"
#include "program/writer.h"

namespace pinnace {

struct FileBytes::Joined {
  std::atomic<const std::vector<std::byte>*> bytes = nullptr;
  ~Joined() { delete bytes.load(); }
};

FileBytes::FileBytes(std::vector<std::span<const std::byte>> pieces) : pieces_(std::move(pieces)) {
  for (const auto piece : pieces_) size_ += piece.size();
  if (pieces_.size() > 1) joined_ = std::make_shared<Joined>();
}

std::span<const std::byte> FileBytes::whole() const {
  if (pieces_.empty()) return {};
  if (!joined_) return pieces_[0];
  const std::vector<std::byte>* known = joined_->bytes.load(std::memory_order_acquire);
  if (!known) {
    auto made = std::make_unique<std::vector<std::byte>>();
    made->reserve(size_);
    for (const auto piece : pieces_) made->insert(made->end(), piece.begin(), piece.end());
    // Of several threads that come here at once, all give what the first one made.
    if (joined_->bytes.compare_exchange_strong(known, made.get(), std::memory_order_acq_rel)) known = made.release();
  }
  return *known;
}

Result<Program> program_of(std::string name, Buffer bytes, Verify verify) {
  auto owner = std::make_shared<const Buffer>(std::move(bytes));
  const std::span<const std::byte> file(owner->data(), owner->size());
  PINNACE_ASSIGN(auto data, read_program(std::move(name), std::move(owner), file, {.verify = verify}));
  return Program(std::move(data));
}

namespace {
Result<Program> program_of(const std::string& path, std::shared_ptr<const MappedFile> file, Verify verify,
                           const LogTime& time) {
  const std::span<const std::byte> bytes = file->bytes();
  std::string name = path.substr(path.rfind('/') + 1);  // npos + 1 is 0
  const int descriptor = file->descriptor();
  PINNACE_ASSIGN(auto data, read_program(std::move(name), std::move(file), bytes,
                                         {.verify = verify, .descriptor = descriptor, .mapped = true}));
  PINNACE_LOG_INFO("opened '", path, "': ", bytes.size(), " bytes, ", data->graph.nodes.size(), " nodes, ",
                   data->payloads.size(), " payloads, in ", time.text());
  return Program(std::move(data));
}
}  // namespace

Result<Program> Program::open(const std::string& path, Verify verify) {
  return exception_boundary([&]() -> Result<Program> {
    const LogTime time;
    PINNACE_ASSIGN(auto file, MappedFile::open(path));
    return program_of(path, std::move(file), verify, time);
  });
}

Result<Program> open_descriptor(int descriptor, int64_t offset, int64_t bytes, Verify verify) {
  return exception_boundary([&]() -> Result<Program> {
    const LogTime time;
    const std::string name = str_cat("descriptor ", descriptor);
    PINNACE_ASSIGN(auto file, MappedFile::of_descriptor(descriptor, offset, bytes, name));
    if (offset % 64) return Program::from_bytes(file->bytes(), verify);
    return program_of(name, std::move(file), verify, time);
  });
}

Result<Program> Program::from_bytes(std::span<const std::byte> bytes, Verify verify) {
  return exception_boundary([&]() -> Result<Program> {
    PINNACE_ASSIGN(Buffer copy, Buffer::allocate(bytes.size(), "the bytes of a program"));
    if (!bytes.empty()) std::memcpy(copy.data(), bytes.data(), bytes.size());
    return program_of("program", std::move(copy), verify);
  });
}

std::span<const TensorSpec> Program::inputs() const {
  return data_->inputs;
}
std::span<const TensorSpec> Program::outputs() const {
  return data_->outputs;
}
std::span<const Symbol> Program::symbols() const {
  return data_->graph.symbols;
}
std::span<const StateSpec> Program::states() const {
  return data_->states;
}
Result<std::vector<StreamedInput>> Program::streamed_inputs() const {
  return exception_boundary([&] { return pinnace::streamed_inputs(*data_); });
}
Result<std::vector<StreamedOutput>> Program::streamed_outputs() const {
  return exception_boundary([&] { return pinnace::streamed_outputs(*data_); });
}
std::vector<NodeInfo> Program::nodes() const {
  return node_infos(data_->graph);
}
std::vector<TensorSpec> Program::constants() const {
  return constant_specs(data_->graph);
}
std::span<const std::pair<std::string, std::string>> Program::metadata() const {
  return data_->metadata;
}
std::vector<PayloadInfo> Program::payloads() const {
  std::vector<PayloadInfo> all;
  for (const Payload& p : data_->payloads) all.push_back({p.target, p.key, static_cast<int64_t>(p.bytes.size())});
  return all;
}
std::string Program::text(size_t max_constant_bytes) const {
  return print(data_->graph, max_constant_bytes);
}
std::span<const std::byte> Program::bytes() const {
  return data_->file.whole();
}

Result<Program> Program::with_metadata(const std::string& key, const std::string& value) const {
  return exception_boundary([&]() -> Result<Program> {
    const std::pair<std::string, std::string> entry(key, value);
    return with_metadata(std::span(&entry, 1));
  });
}

Result<Program> Program::with_metadata(std::span<const std::pair<std::string, std::string>> entries) const {
  return exception_boundary([&]() -> Result<Program> {
    Metadata metadata = data_->metadata;
    metadata.insert(metadata.end(), entries.begin(), entries.end());
    PINNACE_ASSIGN(auto data, with_other_metadata(*data_, std::move(metadata)));
    return Program(std::move(data));
  });
}

Result<Program> Program::without_payloads() const {
  return exception_boundary([&]() -> Result<Program> {
    // What is written gets hashes of its own: damaged weights would pass for good ones.
    PINNACE_TRY(check_constants(data_->graph));
    PINNACE_ASSIGN(Buffer bytes, write_program(data_->graph, data_->metadata, {}));
    return program_of(data_->name, std::move(bytes), Verify::kStructure);  // the hashes were just made
  });
}

Status Program::save(const std::string& path) const {
  return exception_boundary([&]() -> Status {
    const LogTime time;
    PINNACE_TRY(write_file_atomically(path, data_->file.pieces()));
    PINNACE_LOG_INFO("saved '", path, "': ", data_->file.size(), " bytes, in ", time.text());
    return {};
  });
}

}  // namespace pinnace
