// Opening devices once, making kernels in parallel, and keeping the driver's compiled code in a file.
#include "backends/gpu/context.h"

#include <algorithm>
#include <charconv>
#include <cstdlib>
#include <cstring>

#include "base/atomic_file.h"
#include "base/hash.h"
#include "base/mapped_file.h"

namespace pinnace::gpu {
namespace {

constexpr const char* kNames[] = {
#define KERNEL(name, file, storage, defines) #name,
#include "backends/gpu/kernels.inc"
#undef KERNEL
};

/// The file: magic, hash of what follows, length of the identity, the identity, the driver's bytes.
constexpr char kMagic[8] = {'p', 'n', 'g', 'p', 'u', '0', '0', '1'};
constexpr size_t kHeader = sizeof kMagic + 8 + 8;

std::string identity_of(const Device& device) {
  return str_cat(device.caps().identity, "/", kernels_hash());
}

/// The driver's bytes of a file that is whole and of this device; else nothing.
std::vector<std::byte> read_cache(const std::string& path, const std::string& identity) {
  const auto file = MappedFile::open(path);
  if (!file) return {};
  const std::span<const std::byte> bytes = (*file)->bytes();
  if (bytes.size() < kHeader || std::memcmp(bytes.data(), kMagic, sizeof kMagic) != 0) return {};
  uint64_t hash = 0, length = 0;
  std::memcpy(&hash, bytes.data() + sizeof kMagic, 8);
  std::memcpy(&length, bytes.data() + sizeof kMagic + 8, 8);
  if (hash64(bytes.subspan(sizeof kMagic + 8)) != hash) return {};
  if (length != identity.size() || length > bytes.size() - kHeader) return {};
  if (std::memcmp(bytes.data() + kHeader, identity.data(), length) != 0) return {};
  const auto blob = bytes.subspan(kHeader + length);
  return {blob.begin(), blob.end()};
}

bool read_number(std::string_view text, uint64_t* number) {
  const auto [end, problem] = std::from_chars(text.data(), text.data() + text.size(), *number);
  return problem == std::errc() && end == text.data() + text.size();
}

}  // namespace

const KernelCode& kernel_code(KernelId id, bool f16) {
  const char* name = kNames[static_cast<size_t>(id)];
  const KernelCode* code = find_kernel(str_cat(name, f16 ? "_f16" : "_f32"));
  if (!code) code = find_kernel(name);
  assert(code);
  return *code;
}

const KernelCode* find_kernel(std::string_view name) {
  const auto all = all_kernels();
  const auto found =
      std::lower_bound(all.begin(), all.end(), name, [](const KernelCode& k, std::string_view n) { return k.name < n; });
  return found != all.end() && found->name == name ? &*found : nullptr;
}

Result<DeviceOptions> options_from_environment() {
  DeviceOptions options;
  const char* given = std::getenv("PINNACE_GPU_OPTIONS");
  std::string_view text = given ? given : "";
  while (!text.empty()) {
    const size_t comma = text.find(',');
    const std::string_view item = text.substr(0, comma);
    text.remove_prefix(comma == std::string_view::npos ? text.size() : comma + 1);
    const size_t equals = item.find('=');
    const std::string_view name = item.substr(0, equals);
    uint64_t number = 1;
    const bool has_number = equals != std::string_view::npos;
    if (has_number && !read_number(item.substr(equals + 1), &number)) {
      return invalid("PINNACE_GPU_OPTIONS: '", item, "' has no number after '='");
    }
    struct {
      std::string_view name;
      uint32_t* value;
    } const numbers[] = {{"offset_alignment", &options.offset_alignment}, {"shared_bytes", &options.shared_bytes},
                         {"max_invocations", &options.max_invocations},   {"max_groups", &options.max_groups},
                         {"fail_buffer", &options.fail_buffer},           {"fail_submit", &options.fail_submit}};
    struct {
      std::string_view name;
      bool* value;
    } const flags[] = {{"validation", &options.validation},
                       {"staging", &options.force_staging},
                       {"no_f16", &options.no_f16},
                       {"unknown_subgroup", &options.unknown_subgroup}};
    bool known = false;
    for (const auto& n : numbers) {
      if (n.name == name && has_number && number <= UINT32_MAX) {
        *n.value = static_cast<uint32_t>(number);
        known = true;
      }
    }
    for (const auto& f : flags) {
      if (f.name == name && !has_number) known = *f.value = true;
    }
    if (name == "max_binding_bytes" && has_number) {
      options.max_binding_bytes = number;
      known = true;
    }
    if (!known) {
      return invalid("PINNACE_GPU_OPTIONS: '", item,
                     "' is not one of validation, staging, no_f16, unknown_subgroup, offset_alignment=N, "
                     "shared_bytes=N, max_invocations=N, max_groups=N, max_binding_bytes=N, fail_buffer=N, "
                     "fail_submit=N");
    }
  }
  return options;
}

Result<std::shared_ptr<Context>> Context::open(const Driver& driver, uint32_t index) {
  static std::mutex mutex;
  static auto* const opened = new std::map<std::string, std::weak_ptr<Context>>;  // never destroyed
  PINNACE_ASSIGN(DeviceOptions options, options_from_environment());
  const char* given = std::getenv("PINNACE_GPU_OPTIONS");
  const std::string key = str_cat(driver.name, ":", index, ":", given ? given : "");
  std::lock_guard lock(mutex);
  std::weak_ptr<Context>& known = (*opened)[key];
  if (auto context = known.lock(); context && !context->lost()) return context;
  auto made = std::shared_ptr<Context>(new Context);
  PINNACE_ASSIGN(made->device_, driver.open(index, options));
  if (const std::string path = made->cache_path(); !path.empty()) {
    options.cache = read_cache(path, identity_of(*made->device_));
    if (!options.cache.empty()) {
      made->device_.reset();
      PINNACE_ASSIGN(made->device_, driver.open(index, options));
    }
  }
  known = made;
  return made;
}

Context::~Context() {
  kernels_.clear();
}

std::string Context::cache_path() const {
  const char* folder = std::getenv("PINNACE_GPU_CACHE");
  if (!folder || !*folder) return {};
  const std::string identity = identity_of(*device_);
  const uint64_t hash = hash64(std::as_bytes(std::span(identity.data(), identity.size())));
  return str_cat(folder, "/gpu-", hash, ".cache");
}

void Context::store_cache() {
  const std::string path = cache_path();
  if (path.empty()) return;
  const std::vector<std::byte> blob = device_->cache_blob();
  const std::string identity = identity_of(*device_);
  std::vector<std::byte> file(kHeader + identity.size() + blob.size());
  const uint64_t length = identity.size();
  std::memcpy(file.data(), kMagic, sizeof kMagic);
  std::memcpy(file.data() + sizeof kMagic + 8, &length, 8);
  std::memcpy(file.data() + kHeader, identity.data(), length);
  if (!blob.empty()) std::memcpy(file.data() + kHeader + length, blob.data(), blob.size());
  const uint64_t hash = hash64(std::span<const std::byte>(file).subspan(sizeof kMagic + 8));
  std::memcpy(file.data() + sizeof kMagic, &hash, 8);
  // A cache that cannot be written costs time, never a run.
  static_cast<void>(write_file_atomically(path, file).ok());
}

size_t Context::kernel_count() {
  std::lock_guard lock(mutex_);
  return kernels_.size();
}

Result<std::vector<const Kernel*>> Context::kernels(std::span<const KernelKey> keys) {
  std::lock_guard lock(mutex_);
  std::vector<const KernelKey*> missing;
  for (const KernelKey& key : keys) {
    if (kernels_.try_emplace(key).second) missing.push_back(&key);
  }
  std::vector<Status> done(missing.size());
  std::vector<std::unique_ptr<Kernel>*> places;
  for (const KernelKey* key : missing) places.push_back(&kernels_[*key]);
  ThreadPool::shared().run(static_cast<int64_t>(missing.size()), available_processors(), [&](int64_t i) {
    const KernelKey& key = *missing[static_cast<size_t>(i)];
    const KernelCode& code = kernel_code(key.id, key.f16);
    const DeviceCaps& caps = device_->caps();
    const uint64_t invocations = uint64_t{code.local[0]} * code.local[1] * code.local[2];
    if (invocations > caps.max_invocations || code.shared_bytes > caps.shared_bytes) {
      done[static_cast<size_t>(i)] = unsupported("kernel ", code.name, " has ", invocations, " invocations and ",
                                                 code.shared_bytes, " bytes of shared memory, the device ",
                                                 caps.max_invocations, " and ", caps.shared_bytes);
      return;
    }
    auto made = device_->kernel(code, key.spec);
    done[static_cast<size_t>(i)] = made.status();
    if (made) *places[static_cast<size_t>(i)] = std::move(*made);
  });
  for (const Status& status : done) {
    if (status.ok()) continue;
    std::erase_if(kernels_, [](const auto& entry) { return !entry.second; });
    return status;
  }
  if (!missing.empty()) store_cache();
  std::vector<const Kernel*> all;
  for (const KernelKey& key : keys) all.push_back(kernels_[key].get());
  return all;
}

}  // namespace pinnace::gpu
