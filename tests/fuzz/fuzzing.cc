// Files, properties and runs of the fuzz targets; what the sanitizers are to do in them.
#include "fuzz/fuzzing.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <limits>
#include <optional>
#include <random>
#include <vector>

#include "base/hash.h"
#include "base/text.h"
#include "compile/plan.h"
#include "cpp/scratch_folder.h"
#include "import/import.h"
#include "ops/type_inference.h"
#include "program/program_data.h"

/// Allocations of more than 256 MiB fail as they do where memory is short: Buffer gives kOutOfMemory, and a container
/// that asks for so much, which has no way to refuse, is reported.
extern "C" __attribute__((used, visibility("default"))) const char* __asan_default_options() {
  return "allocator_may_return_null=1:max_allocation_size_mb=256:detect_leaks=1:strict_string_checks=1";
}
extern "C" __attribute__((used, visibility("default"))) const char* __ubsan_default_options() {
  return "print_stacktrace=1:halt_on_error=1";
}

namespace pinnace::fuzz {
namespace {

constexpr int64_t kMostBytes = 1 << 20;                    // of all inputs, and of each value
constexpr size_t kMostNodes = 200;                         // in the outermost graph
constexpr double kMostEinsumWork = 1e6;                    // product of the sizes of an einsum's operands
constexpr auto kPatience = std::chrono::milliseconds(30);  // loops may be endless

std::string folder() {
  if (const char* given = std::getenv("PINNACE_FUZZ_FOLDER")) return given;
  static const std::string own = [] {
    const std::filesystem::path made = testing::scratch_folder() / str_cat("pinnace_fuzz_", ::getpid());
    std::filesystem::create_directories(made);
    std::atexit([] { std::filesystem::remove_all(testing::scratch_folder() / str_cat("pinnace_fuzz_", ::getpid())); });
    return made.string();
  }();
  return own;
}

/// The declared types with every dimension known, symbols as small as they may be; nothing if they are too large.
std::optional<std::vector<TensorType>> small_inputs(const Graph& graph) {
  std::vector<TensorType> types = sized_inputs(graph, 1);
  int64_t total = 0;
  for (TensorType& type : types) {
    for (Dim& d : type.shape) {
      if (!d.known()) d = Dim(d.max == Dim::kUnknown ? 2 : std::min<int64_t>(d.max, 2));
      if (d.size > kMostBytes) return std::nullopt;
    }
    const int64_t bytes = bound_bytes(type);
    if (bytes < 0 || bytes > kMostBytes - total) return std::nullopt;
    total += bytes;
  }
  return types;
}

/// Elements that operators find hard: mostly small ones, so that indices and sizes fit often, some extreme ones.
template <class T>
void fill(std::span<std::byte> bytes, std::minstd_rand& random) {
  for (size_t at = 0; at + sizeof(T) <= bytes.size(); at += sizeof(T)) {
    const unsigned kind = random() % 16;
    T value = static_cast<T>(random() % 4);
    if constexpr (std::is_floating_point_v<T>) {
      if (kind < 8) value = static_cast<T>(static_cast<int>(random() % 65) - 32) / 8;
      if (kind == 15) value = std::numeric_limits<T>::quiet_NaN();
      if (kind == 14) value = std::numeric_limits<T>::max();
      if (kind == 13) value = -std::numeric_limits<T>::infinity();
    } else {
      if (kind == 15) value = std::numeric_limits<T>::max();
      if (kind == 14) value = std::numeric_limits<T>::min();
      if (kind == 13) value = static_cast<T>(-1);
    }
    std::memcpy(bytes.data() + at, &value, sizeof value);
  }
}

void fill(DType dtype, std::span<std::byte> bytes, std::minstd_rand& random) {
  switch (dtype) {
    case DType::kF32:
      return fill<float>(bytes, random);
    case DType::kF64:
      return fill<double>(bytes, random);
    case DType::kI64:
    case DType::kU64:
      return fill<int64_t>(bytes, random);
    case DType::kI32:
    case DType::kU32:
      return fill<int32_t>(bytes, random);
    case DType::kBool:
      for (std::byte& b : bytes) b = std::byte(random() % 2);
      return;
    default:
      for (std::byte& b : bytes) b = std::byte(random() % 256);
  }
}

/// Work that grows faster than any of the types and that no cancelling stops: an operator is always finished.
bool too_much_work(const Graph& graph) {
  if (graph.nodes.size() > kMostNodes) return true;
  for (const Value& v : graph.values) {
    if (const int64_t bytes = bound_bytes(v.type); bytes > kMostBytes) return true;
  }
  for (const auto& node : graph.nodes) {
    if (node->op == "einsum") {
      double work = 1;
      for (ValueId id : node->inputs) {
        for (const Dim& d : graph.value(id).type.shape) work *= d.known() ? static_cast<double>(d.size) : 2;
      }
      if (work > kMostEinsumWork) return true;
    }
    for (const auto& [name, attr] : node->attrs) {
      if (const auto* nested = std::get_if<GraphPtr>(&attr); nested && too_much_work(**nested)) return true;
    }
  }
  return false;
}

/// Reads all of it; what lies outside its memory, address sanitizer reports.
uint64_t read_outputs(const Session& session) {
  uint64_t hash = 0;
  for (size_t i = 0; i < session.outputs().size(); ++i) {
    const Tensor t = session.output(static_cast<int>(i));
    require(t.type.concrete(), "the type of a result is known after a run", to_string(t.type));
    if (t.memory.host)
      hash ^= hash64({static_cast<const std::byte*>(t.memory.host), static_cast<size_t>(t.type.bytes())});
  }
  return hash;
}

}  // namespace

InputFile::InputFile(std::string_view name) : path_(str_cat(folder(), "/", ::getpid(), ".", name)) {
  descriptor_ = ::open(path_.c_str(), O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
  require(descriptor_ >= 0, "a file for inputs can be made", path_);
}

void InputFile::write(std::span<const uint8_t> bytes) const {
  const bool written = ::ftruncate(descriptor_, 0) == 0 &&
                       ::pwrite(descriptor_, bytes.data(), bytes.size(), 0) == static_cast<ssize_t>(bytes.size());
  require(written, "the input can be written", path_);
}

void require(bool holds, std::string_view rule, std::string_view found) {
  if (holds) return;
  std::fprintf(stderr, "fuzz: broken: %.*s: %.*s\n", static_cast<int>(rule.size()), rule.data(),
               static_cast<int>(std::min<size_t>(found.size(), 4096)), found.data());
  __builtin_trap();
}

void require_refusal(const Status& status) {
  switch (status.code()) {
    case Code::kInvalidArgument:
    case Code::kCorruptFile:
    case Code::kUnsupported:
    case Code::kConversion:
    case Code::kOutOfMemory:
      break;
    default:
      require(false, "a refusal has one of the reader's codes",
              str_cat(code_name(status.code()), ": ", status.message()));
  }
  require(!status.message().empty(), "a refusal says why");
  require(status.message().size() < 65536, "a refusal is shorter than 64 KiB", status.message());
}

void run_accepted(const Program& program) {
  if (too_much_work(program.data().graph)) return;
  const auto types = small_inputs(program.data().graph);
  if (!types) return;
  auto session = Session::create(program, {.target = "cpu", .threads = 1});
  if (!session.ok()) return require_refusal(session.status());
  std::minstd_rand random(static_cast<unsigned>(program.bytes().size()));
  for (int round = 0; round < 2; ++round) {
    std::vector<std::vector<std::byte>> memory;
    std::vector<Tensor> inputs;
    for (const TensorType& type : *types) {
      std::vector<std::byte>& bytes = memory.emplace_back(static_cast<size_t>(type.bytes()));
      fill(type.dtype, bytes, random);
      Tensor& tensor = inputs.emplace_back();
      tensor.type = type;
      tensor.memory.host = bytes.data();
      tensor.memory.bytes = bytes.size();
    }
    const Status status = session->run(inputs, {}, {}, {.timeout = kPatience});
    if (status.ok()) {
      read_outputs(*session);
    } else if (status.code() != Code::kCancelled) {
      require_refusal(status);
    }
  }
  session->placement();
  session->plan();
}

void build_and_run(const Model& model) {
  const auto program = model.build();
  if (!program.ok()) return require_refusal(program.status());
  run_accepted(*program);
}

void judge(const Result<Model>& model) {
  if (model.ok()) {
    build_and_run(*model);
  } else {
    require_refusal(model.status());
  }
}

void judge(const Result<Model>& model, std::span<const uint8_t> bytes) {
  if (!model.ok() || chosen_to_run(bytes)) judge(model);
}

bool is_taken_for(std::string_view format, std::span<const uint8_t> bytes) {
  const size_t seen = std::min(bytes.size(), kSniffedBytes);
  return find_importer({reinterpret_cast<const char*>(bytes.data()), seen}).format == format;
}

bool chosen_to_run(std::span<const uint8_t> bytes) {
  static const bool always = std::getenv("PINNACE_FUZZ_RUN") != nullptr;
  return always || hash64(std::as_bytes(bytes)) % 8 == 0;
}

}  // namespace pinnace::fuzz
