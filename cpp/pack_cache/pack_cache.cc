// Entries are .pnc files without a graph, whose payloads are the packed weights and whose facts say what of. Whatever
// goes wrong costs time, never a session.
#include <pinnace/pack_cache.h>

#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <climits>
#include <ctime>
#include <thread>

#include "backends/backend.h"
#include "base/cancel.h"
#include "base/cpu_features.h"
#include "base/environment.h"
#include "base/exception_boundary.h"
#include "base/files/user_cache.h"
#include "base/hash.h"
#include "base/log.h"
#include "base/process.h"
#include "base/threads/exit_calls.h"
#include "base/threads/thread.h"
#include "program/reader.h"
#include "program/writer.h"
#include "runtime/packed_store.h"
#include "runtime/prepared_data.h"

namespace pinnace {
namespace {

constexpr std::string_view kPrefix = "packed-", kSuffix = ".pnc", kKeyFact = "pack_cache.key", kCpu = "cpu:";
constexpr size_t kLeast = 1 << 20;  // less is packed in a millisecond
constexpr int64_t kDefaultLimitMb = 2048;
constexpr time_t kForgottenSeconds = 24 * 3600;  // a temporary file of that age belongs to no process any more
/// Before anything is written: the first answer is not to wait for it.
constexpr std::chrono::milliseconds kPatience{100}, kPause{2};
constexpr std::chrono::seconds kLongestExit{5}, kLongestEnd{1};

int64_t limit_bytes() {
  int64_t mb = kDefaultLimitMb;
  if (const char* given = environment("PINNACE_CACHE_MB")) {
    const std::string_view text(given);
    const auto [end, problem] = std::from_chars(text.data(), text.data() + text.size(), mb);
    if (problem != std::errc() || end != text.data() + text.size() || mb < 0) mb = 0;  // what is no size allows none
  }
  return mb > INT64_MAX >> 20 ? INT64_MAX : mb << 20;
}

/// The file that the program is mapped from, and the name and key that its entry has.
struct Identity {
  std::string name, key;
};

/// Empty: nothing is kept of this program with these options.
std::optional<Identity> identity_of(const Program& program, const Options& o) {
  // What fuses other operators, as kept values do, and what the application may take away is not worth an entry.
  if (!o.keep.empty() || !o.ops.empty() || !o.backends.empty() || o.require_payload) return std::nullopt;
  if (limit_bytes() == 0 || user_cache_folder().empty()) return std::nullopt;
  const int descriptor = program.data().descriptor;
  struct stat file = {};
  if (descriptor < 0 || ::fstat(descriptor, &file) != 0) return std::nullopt;
  char path[PATH_MAX];
  const ssize_t length = ::readlink(str_cat("/proc/self/fd/", descriptor).c_str(), path, sizeof path);
  if (length <= 0 || static_cast<size_t>(length) == sizeof path) return std::nullopt;
  // Payloads are of one processor, precision and set of fused operators.
  const std::string use = str_cat(o.target, ", ", kernel_isa_name(cpu_isa()), ", ", o.precision,
                                  o.shape_invariant ? ", shape-invariant" : "");
  const auto hashed = [](std::string_view text) { return hash64(std::as_bytes(std::span(text.data(), text.size()))); };
  const auto time = [](const timespec& t) { return str_cat(t.tv_sec, ".", t.tv_nsec); };
  const auto pieces = program.data().file.pieces();
  const auto head = pieces.empty() ? std::span<const std::byte>() : pieces[0];
  Identity identity;
  identity.name =
      str_cat(kPrefix, hashed(str_cat(std::string_view(path, static_cast<size_t>(length)), "\n", use)), kSuffix);
  // A hash can be forged: that two files have the same does not make them the same.
  identity.key = str_cat("build ", library_build(), ", for ", use, ", path ",
                         hashed(std::string_view(path, static_cast<size_t>(length))), ", file ", file.st_dev, " ",
                         file.st_ino, " ", file.st_size, " ", time(file.st_mtim), " ", time(file.st_ctim), ", hash ",
                         hash64(head.first(std::min<size_t>(head.size(), 64))));
  std::replace_if(identity.key.begin(), identity.key.end(), [](char c) { return c == '\n' || c == '\r'; }, ' ');
  return identity;
}

/// Removes what has not been used for longest until `wanted` bytes fit below the limit; false if they never do.
bool make_room(const PrivateFolder& folder, const std::string& except, int64_t wanted) {
  const int64_t limit = limit_bytes();
  if (wanted > limit) return false;
  auto listed = folder.list();
  if (!listed) return false;
  int64_t held = 0;
  std::vector<PrivateFolder::Entry> entries;
  for (PrivateFolder::Entry& entry : *listed) {
    const bool temporary = entry.name.starts_with(str_cat(".", kPrefix));
    if (temporary && entry.modified.tv_sec + kForgottenSeconds < ::time(nullptr)) folder.remove(entry.name);
    if (!entry.name.starts_with(kPrefix) || !entry.name.ends_with(kSuffix) || entry.name == except) continue;
    held += entry.bytes;
    entries.push_back(std::move(entry));
  }
  std::sort(entries.begin(), entries.end(), [](const auto& a, const auto& b) {
    return std::tie(a.modified.tv_sec, a.modified.tv_nsec) < std::tie(b.modified.tv_sec, b.modified.tv_nsec);
  });
  for (const PrivateFolder::Entry& entry : entries) {
    if (held + wanted <= limit) break;
    PINNACE_LOG_DEBUG("packed weights are removed for newer ones: '", entry.name, "', ", entry.bytes, " bytes");
    folder.remove(entry.name);
    held -= entry.bytes;
  }
  return true;
}

/// Writes the entry of a Prepared.
Status write_entry(const Prepared& prepared, const Identity& identity) {
  PINNACE_ASSIGN(const auto storable, prepared.data().packed.storable());
  std::vector<Payload> payloads;
  int64_t bytes = 0;
  for (const PackedConstants::Entry& entry : storable) {
    if (!entry.target.starts_with(kCpu)) continue;
    payloads.push_back({entry.target, entry.key, entry.bytes, nullptr});
    bytes += static_cast<int64_t>(entry.bytes.size());
  }
  PINNACE_ASSIGN(const PrivateFolder folder, open_user_cache(true));
  if (!make_room(folder, identity.name, bytes)) {
    return unsupported("their ", bytes, " bytes are above the limit of ", limit_bytes());
  }
  return write_payloads(
      {{std::string(kKeyFact), identity.key}}, payloads,
      [&](std::span<const std::span<const std::byte>> pieces) { return folder.write(identity.name, pieces); });
}

/// What is being written.
struct Writing {
  pid_t process = ::getpid();
  CancelToken cancel;
  std::atomic<bool> hurry{false}, ended{false};
};
constinit PerProcess<std::vector<std::shared_ptr<Writing>>> writings;

/// Whether any is under way in this process.
bool writes(void (*tell)(Writing&) = nullptr) {
  const auto all = writings.lock();
  std::erase_if(*all,
                [](const auto& w) { return w->ended.load(std::memory_order_acquire) || w->process != ::getpid(); });
  for (const auto& writing : *all) {
    if (tell) tell(*writing);
  }
  return !all->empty();
}

bool wait_until_written(std::chrono::milliseconds time, void (*tell)(Writing&)) {
  const auto end = end_of(std::min<std::chrono::milliseconds>(time, std::chrono::hours(1 << 20)));
  while (writes(tell)) {
    if (std::chrono::steady_clock::now() >= end) return false;
    std::this_thread::sleep_for(kPause);
  }
  return true;
}

void finish_at_exit() {
  if (wait_until_written(kLongestExit, [](Writing& w) { w.hurry = true; })) return;
  wait_until_written(kLongestEnd, [](Writing& w) { w.cancel.cancel(); });
}

class UserPackCache final : public PackedStore {
 public:
  std::optional<Program> find(const Program& program, const Options& options) const override {
    const auto identity = identity_of(program, options);
    if (!identity) return std::nullopt;
    const auto found = open_entry(*identity);
    if (found) return *found;
    PINNACE_LOG_DEBUG("no packed weights of '", program.data().name,
                      "' are taken from the user's cache folder: ", found.status().message());
    return std::nullopt;
  }

  void keep(const std::shared_ptr<const Prepared>& prepared) const override {
    const Status kept = exception_boundary([&] { return start(prepared); });
    if (!kept.ok()) PINNACE_LOG_DEBUG("packed weights are not kept: ", kept.message());
  }

 private:
  static Result<Program> open_entry(const Identity& identity) {
    PINNACE_ASSIGN(const PrivateFolder folder, open_user_cache(false));
    PINNACE_ASSIGN(auto file, folder.read(identity.name));
    const std::span<const std::byte> bytes = file->bytes();
    const int descriptor = file->descriptor();
    PINNACE_ASSIGN(auto data, read_program(identity.name, std::move(file), bytes,
                                           {.verify = Verify::kOnUse, .descriptor = descriptor}));
    const auto key = std::find_if(data->metadata.begin(), data->metadata.end(),
                                  [](const auto& fact) { return fact.first == kKeyFact; });
    if (key == data->metadata.end() || key->second != identity.key) {
      return unsupported("'", identity.name, "' is of another file, build or processor");
    }
    std::vector<Status> checked(data->payloads.size());
    ThreadPool::shared().run(static_cast<int64_t>(checked.size()), available_processors(), [&](int64_t i) {
      const auto at = static_cast<size_t>(i);
      checked[at] = data->payloads[at].stored->check();
    });
    for (const Status& status : checked) PINNACE_TRY(status);
    ::futimens(descriptor, nullptr);  // used last: the last to be removed
    return Program(std::move(data));
  }

  static Status start(const std::shared_ptr<const Prepared>& prepared) {
    const auto identity = identity_of(prepared->program(), prepared->options());
    if (!identity) return {};
    PINNACE_ASSIGN(const auto storable, prepared->data().packed.storable());
    size_t made = 0;
    for (const PackedConstants::Entry& e : storable)
      made += e.target.starts_with(kCpu) && !e.stored ? e.bytes.size() : 0;
    if (made < kLeast) return {};
    auto writing = std::make_shared<Writing>();
    // With the last of those who have it, whatever fails before the thread runs, or in it: others wait for the end.
    std::shared_ptr<void> ends(nullptr, [writing](void*) { writing->ended.store(true, std::memory_order_release); });
    writings.lock()->push_back(writing);
    call_at_exit(finish_at_exit);
    auto thread = Thread::start([ends, held = prepared, writing, identity = *identity]() mutable {
      const LogTime time;
      const CancelScope scope({.cancel = &writing->cancel});
      for (auto waited = kPause; waited < kPatience && !writing->hurry; waited += kPause) {
        std::this_thread::sleep_for(kPause);
      }
      const Status written = exception_boundary([&] { return write_entry(*held, identity); });
      PINNACE_LOG_DEBUG("packed weights are ", written.ok() ? "" : "not ", "kept in the user's cache folder, in ",
                        time.text(), written.ok() ? "" : ": ", written.message());
      held.reset();
      ends.reset();
    });
    PINNACE_TRY(thread.status());
    thread->detach();
    return {};
  }
};

}  // namespace

const PackedStore& user_pack_cache() {
  static const UserPackCache cache;
  return cache;
}

bool wait_for_pack_cache(std::chrono::milliseconds time) {
  return exception_boundary([&] { return wait_until_written(time, [](Writing& w) { w.hurry = true; }); }, false);
}

}  // namespace pinnace
