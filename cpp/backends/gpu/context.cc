// Opening devices once, making kernels in parallel, and keeping the driver's compiled code in a file.
#include "backends/gpu/context.h"

#include <algorithm>
#include <charconv>
#include <cstring>

#include "backends/gpu/cache_folder.h"
#include "backends/gpu/self_check.h"
#include "base/environment.h"
#include "base/files/mapped_file.h"
#include "base/files/private_folder.h"
#include "base/hash.h"
#include "base/log.h"
#include "base/process.h"
#include "base/threads/exit_calls.h"

namespace pinnace::gpu {
namespace {

constexpr const char* kNames[] = {
#define KERNEL(name, file, storage, defines, params, split) #name,
#include "backends/gpu/kernels.inc"
#undef KERNEL
};

/// The file: magic, hash of what follows, three texts or bytes, each after its length: the identity, results of
/// self-checks (lines of kernel, tab, what was wrong), the driver's bytes.
constexpr char kMagic[8] = {'p', 'n', 'g', 'p', 'u', '0', '0', '2'};
constexpr size_t kHeader = sizeof kMagic + 8;

constexpr std::string_view kWork = "the making of kernels";  // under Context::mutex_

std::string identity_of(const Device& device) {
  return str_cat(device.caps().identity, "/", kernels_hash());
}

struct Cached {
  uint64_t hash = 0;  // of the whole file
  SelfChecks::Results results;
  std::vector<std::byte> blob;
  const char* problem = nullptr;  // why nothing of the file is taken
};

/// Takes a length and that many bytes off the front; false if they are not there.
bool take_part(std::span<const std::byte>* rest, std::span<const std::byte>* part) {
  uint64_t length = 0;
  if (rest->size() < sizeof length) return false;
  std::memcpy(&length, rest->data(), sizeof length);
  *rest = rest->subspan(sizeof length);
  if (length > rest->size()) return false;
  *part = rest->first(length);
  *rest = rest->subspan(length);
  return true;
}

void add_part(std::vector<std::byte>* file, std::span<const std::byte> part) {
  const uint64_t length = part.size();
  const auto* bytes = reinterpret_cast<const std::byte*>(&length);
  file->insert(file->end(), bytes, bytes + sizeof length);
  file->insert(file->end(), part.begin(), part.end());
}

std::string_view text_of(std::span<const std::byte> bytes) {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}
std::span<const std::byte> bytes_of(std::string_view text) {
  return std::as_bytes(std::span(text.data(), text.size()));
}

/// Of a path in the cache folder.
std::string name_in(const std::string& path) {
  return path.substr(path.rfind('/') + 1);
}

/// What a file holds that is trusted, whole and of this device; else nothing.
Cached read_cache(const PrivateFolder& folder, const std::string& name, const std::string& identity) {
  const auto refuse = [](const char* why) { return Cached{.problem = why}; };
  const auto file = folder.read(name);
  if (!file) return refuse(file.status().rule() == kUntrusted ? "others can write it" : "it cannot be read");
  std::span<const std::byte> rest = (*file)->bytes();
  if (rest.size() < kHeader || std::memcmp(rest.data(), kMagic, sizeof kMagic) != 0) {
    return refuse("it is of another version");
  }
  uint64_t hash = 0;
  std::memcpy(&hash, rest.data() + sizeof kMagic, 8);
  rest = rest.subspan(kHeader);
  constexpr const char* kDamaged = "it is damaged";
  if (hash64(rest) != hash) return refuse(kDamaged);
  std::span<const std::byte> of, results, blob;
  if (!take_part(&rest, &of) || !take_part(&rest, &results) || !take_part(&rest, &blob) || !rest.empty()) {
    return refuse(kDamaged);
  }
  if (text_of(of) != identity) return refuse("it is of another device, driver or build");
  Cached cached;
  cached.hash = hash;
  std::string_view lines = text_of(results);
  while (!lines.empty()) {
    const size_t end = lines.find('\n'), tab = lines.find('\t');
    if (end == std::string_view::npos || tab > end) return refuse(kDamaged);
    cached.results.emplace(lines.substr(0, tab), lines.substr(tab + 1, end - tab - 1));
    lines.remove_prefix(end + 1);
  }
  cached.blob.assign(blob.begin(), blob.end());
  return cached;
}

/// One per device and set of spoilt kernels, for the life of the process.
SelfChecks* checks_of(const std::string& key) {
  static constinit PerProcess<std::map<std::pair<pid_t, std::string>, SelfChecks*>> all;
  const auto known = all.lock();
  SelfChecks*& found = (*known)[{::getpid(), key}];
  if (!found) found = new SelfChecks;
  return found;
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
  const auto found = std::lower_bound(all.begin(), all.end(), name,
                                      [](const KernelCode& k, std::string_view n) { return k.name < n; });
  return found != all.end() && found->name == name ? &*found : nullptr;
}

Result<DeviceOptions> options_from_environment() {
  DeviceOptions options;
  const char* given = environment("PINNACE_GPU_OPTIONS");
  std::string_view text = given ? given : "";
  while (!text.empty()) {
    const size_t comma = text.find(',');
    const std::string_view item = text.substr(0, comma);
    text.remove_prefix(comma == std::string_view::npos ? text.size() : comma + 1);
    const size_t equals = item.find('=');
    const std::string_view name = item.substr(0, equals);
    if (name == "fail_self_test" && equals != std::string_view::npos) {
      const std::string kernel(item.substr(equals + 1));
      if (!find_kernel(kernel) && !find_kernel(kernel + "_f32")) {
        return invalid("PINNACE_GPU_OPTIONS: '", item, "' names no kernel");
      }
      options.fail_self_test.push_back(kernel);
      continue;
    }
    uint64_t number = 1;
    const bool has_number = equals != std::string_view::npos;
    if (has_number && !read_number(item.substr(equals + 1), &number)) {
      return invalid("PINNACE_GPU_OPTIONS: '", item, "' has no number after '='");
    }
    struct {
      std::string_view name;
      uint32_t* value;
    } const numbers[] = {{"offset_alignment", &options.offset_alignment},
                         {"shared_bytes", &options.shared_bytes},
                         {"max_invocations", &options.max_invocations},
                         {"max_groups", &options.max_groups},
                         {"fail_buffer", &options.fail_buffer},
                         {"drop_barrier", &options.drop_barrier},
                         {"fail_open", &options.fail_open},
                         {"faulty_devices", &options.faulty_devices},
                         {"fail_submit", &options.fail_submit}};
    struct {
      std::string_view name;
      uint64_t* value;
    } const sizes[] = {{"max_binding_bytes", &options.max_binding_bytes},
                       {"max_buffer_bytes", &options.max_buffer_bytes},
                       {"max_turns", &options.max_turns}};
    struct {
      std::string_view name;
      bool* value;
    } const flags[] = {{"validation", &options.validation},
                       {"staging", &options.force_staging},
                       {"no_f16", &options.no_f16},
                       {"no_matrices", &options.no_matrices},
                       {"unknown_subgroup", &options.unknown_subgroup},
                       {"no_self_check", &options.no_self_check},
                       {"measure_software", &options.measure_software}};
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
    for (const auto& b : sizes) {
      if (b.name != name || !has_number) continue;
      *b.value = number;
      known = true;
    }
    if (!known) {
      return invalid(
          "PINNACE_GPU_OPTIONS: '", item,
          "' is not one of validation, staging, no_f16, no_matrices, unknown_subgroup, "
          "offset_alignment=N, shared_bytes=N, max_invocations=N, max_groups=N, max_binding_bytes=N, "
          "max_buffer_bytes=N, max_turns=N, fail_buffer=N, "
          "fail_submit=N, fail_open=N, faulty_devices=N, drop_barrier=N, fail_self_test=KERNEL, no_self_check, "
          "measure_software");
    }
  }
  return options;
}

Result<std::shared_ptr<Context>> Context::open(const Driver& driver, uint32_t index) {
  struct Known {
    std::weak_ptr<Context> context;
    uint32_t devices = 0;  // opened so far
  };
  static constinit PerProcess<std::map<std::string, Known>> opened;
  PINNACE_ASSIGN(DeviceOptions options, options_from_environment());
  const char* given = environment("PINNACE_GPU_OPTIONS");
  const std::string key = str_cat(driver.name, ":", index, ":", given ? given : "");
  const auto all = opened.lock();
  Known& known = (*all)[key];
  if (auto context = known.context.lock(); context && !context->lost()) return context;
  ++known.devices;
  if (known.devices == options.fail_open) return Status(Code::kDeviceLost, "the device cannot be opened, on demand");
  if (options.faulty_devices && known.devices > options.faulty_devices) options.fail_buffer = options.fail_submit = 0;
  auto made = std::shared_ptr<Context>(new Context);
  made->options_ = options;
  PINNACE_ASSIGN(made->device_, driver.open(index, options));
  renew_exit_calls();
  const std::string identity = identity_of(*made->device_);
  std::string checks = str_cat(driver.name, " ", identity);
  for (const std::string& kernel : options.fail_self_test) checks += " " + kernel;
  made->checks_ = checks_of(checks);
  if (const std::string path = made->cache_path(); !path.empty()) {
    const auto folder = PrivateFolder::open(cache_folder());
    Cached cached;
    if (folder) {
      cached = read_cache(*folder, name_in(path), identity);
      PINNACE_LOG_DEBUG("kernels kept in '", path, "' ", cached.problem ? "are not used: " : "are used: ",
                        cached.problem ? std::string(cached.problem)
                                       : str_cat(cached.blob.size(), " bytes of compiled code, ", cached.results.size(),
                                                 " results of self-checks"));
    } else {
      PINNACE_LOG_WARN("PINNACE_GPU_CACHE is not used: ", folder.status().message());
    }
    {
      std::lock_guard results(made->checks_->mutex);
      made->checks_->results.merge(cached.results);
    }
    if (!cached.blob.empty()) {
      options.cache = std::move(cached.blob);
      made->device_.reset();
      PINNACE_ASSIGN(made->device_, driver.open(index, options));
    }
  }
  PINNACE_LOG_INFO("opened ", driver.name, " device ", index, ": ", identity, known.devices > 1 ? ", anew" : "");
  known.context = made;
  return made;
}

Context::~Context() {
  kernels_.clear();
  // Of a device that came here by a fork nothing may be waited for, and destroying a condition variable waits for
  // threads that sleep on it: in the parent. It is left be.
  if (process_ != ::getpid()) {
    [[maybe_unused]] const Device* left_be = device_.release();
  }
}

bool Context::spoils(std::string_view kernel) const {
  for (const std::string& name : options_.fail_self_test) {
    if (kernel == name || kernel == name + "_f32" || kernel == name + "_f16") return true;
  }
  return false;
}

std::string cache_folder() {
  const char* folder = environment("PINNACE_GPU_CACHE");
  return folder ? folder : "";
}

std::string cache_problem() {
  if (cache_folder().empty()) return {};
  const auto folder = PrivateFolder::open(cache_folder());
  return folder ? std::string() : folder.status().message();
}

std::string Context::cache_path() const {
  if (cache_folder().empty() || !options_.fail_self_test.empty()) return {};
  return str_cat(cache_folder(), "/gpu-", hash64(bytes_of(identity_of(*device_))), ".cache");
}

void Context::store_cache() {
  const std::string path = cache_path();
  if (path.empty()) return;
  const auto folder = PrivateFolder::open(cache_folder());
  if (!folder) return;
  const std::string identity = identity_of(*device_);
  Cached there = read_cache(*folder, name_in(path), identity);  // another process may have found out more
  {
    std::lock_guard lock(checks_->mutex);
    for (const auto& [kernel, wrong] : checks_->results) {
      if (!checks_->refused.contains(kernel)) there.results.insert_or_assign(kernel, wrong);
    }
  }
  std::string results;
  for (const auto& [kernel, wrong] : there.results) results += str_cat(kernel, "\t", wrong, "\n");
  std::vector<std::byte> file(kHeader);
  std::memcpy(file.data(), kMagic, sizeof kMagic);
  add_part(&file, bytes_of(identity));
  add_part(&file, bytes_of(results));
  add_part(&file, device_->cache_blob());
  const uint64_t hash = hash64(std::span<const std::byte>(file).subspan(kHeader));
  if (hash == there.hash) return;
  std::memcpy(file.data() + sizeof kMagic, &hash, 8);
  // A cache that cannot be written costs time, never a run.
  const Status written = folder->write(name_in(path), file);
  if (written.ok()) {
    PINNACE_LOG_DEBUG("kernels are kept in '", path, "': ", file.size(), " bytes");
  } else {
    PINNACE_LOG_WARN("kernels are not kept, and compiled again by the next process: ", written.message());
  }
}

size_t Context::kernel_count() {
  const WorkLock lock(mutex_, kWork);
  return lock.status().ok() ? kernels_.size() : 0;
}

Result<std::vector<const Kernel*>> Context::kernels(std::span<const KernelKey> keys) {
  const WorkLock lock(mutex_, kWork);
  PINNACE_TRY(lock.status());
  // Whatever fails leaves no place without its kernel.
  struct Cleared {
    decltype(kernels_)& all;
    ~Cleared() {
      std::erase_if(all, [](const auto& entry) { return !entry.second; });
    }
  } const cleared{kernels_};
  std::vector<const KernelKey*> missing;
  missing.reserve(keys.size());
  for (const KernelKey& key : keys) {
    if (kernels_.try_emplace(key).second) missing.push_back(&key);
  }
  const LogTime time;
  std::vector<Status> done(missing.size());
  std::vector<std::unique_ptr<Kernel>*> places;
  for (const KernelKey* key : missing) places.push_back(&kernels_[*key]);
  ThreadPool::shared().run(static_cast<int64_t>(missing.size()), available_processors(), [&](int64_t i) {
    const KernelKey& key = *missing[static_cast<size_t>(i)];
    const KernelCode& code = kernel_code(key.id, key.f16);
    const DeviceCaps& caps = device_->caps();
    const uint64_t invocations = uint64_t{code.local[0]} * code.local[1] * code.local[2];
    if (invocations > caps.max_invocations || code.shared_bytes > caps.shared_bytes) {
      done[static_cast<size_t>(i)] =
          unsupported("kernel ", code.name, " has ", invocations, " invocations and ", code.shared_bytes,
                      " bytes of shared memory, the device ", caps.max_invocations, " and ", caps.shared_bytes);
      return;
    }
    auto made = device_->kernel(code, key.spec);
    done[static_cast<size_t>(i)] = made.status();
    if (made) *places[static_cast<size_t>(i)] = std::move(*made);
  });
  for (const Status& status : done) PINNACE_TRY(status);
  if (!missing.empty()) PINNACE_LOG_INFO("compiled ", missing.size(), " kernels, in ", time.text());
  if (!missing.empty()) store_cache();
  std::vector<const Kernel*> all;
  for (const KernelKey& key : keys) all.push_back(kernels_[key].get());
  return all;
}

}  // namespace pinnace::gpu
