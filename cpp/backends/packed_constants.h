// Constants in the layouts of back ends: packed once, shared by all executables of a program, stored in files.
#pragma once

#include <atomic>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/files/stored_bytes.h"
#include "base/memory.h"
#include "base/status.h"
#include "base/threads/thread_pool.h"
#include "base/threads/work_mutex.h"

namespace pinnace {

/// A node's place in its graph as keys of packed constants have it: six digits or more, so that keys sort in the order
/// of execution. Names of nodes may be any text, also that of another node's key.
std::string numbered(int32_t index);

/// Constants in a back end's own layout, made once and shared by every executable of a Prepared, which keeps them
/// alive; what is made for one set of sizes goes with the last executable that has it. Those with a target can be
/// stored in the file and are then taken from there, where they lie. Thread-safe: who asks while another thread packs
/// waits for it, except for made_bytes(). What gives a Result fails as WorkMutex::lock() does.
class PackedConstants {
 public:
  struct Entry {
    std::string target;  ///< "cpu:avx2"; empty: never stored
    /// Unique for the back end, whatever the variant: says all that the bytes depend on. Segment::key_prefix and
    /// numbered() of the node belong in it.
    std::string key;
    std::span<const std::byte> bytes;
    std::shared_ptr<const StoredBytes> stored = nullptr;  ///< of a file; null: made here
    std::shared_ptr<const void> owner = nullptr;          ///< of bytes that are made for one set of sizes
  };

  /// The `bytes` bytes under target and key, aligned to 64: as the file has them, if they are that many and `valid`
  /// finds them to be what this back end writes, else as `make` gives them. kCorruptFile if the file's are damaged.
  Result<const std::byte*> get(const std::string& target, const std::string& key, size_t bytes,
                               const std::function<bool(const std::byte*)>& valid,
                               const std::function<Result<Buffer>()>& make);

  struct Request {
    std::string target, key;
    size_t bytes = 0;
    /// Made for one set of sizes: who asks keeps it, by Packed::owner, and it is found again as long as somebody does.
    /// A session that sees many sizes would otherwise keep the tables of all of them.
    bool of_sizes = false;
  };
  struct Packed {
    const std::byte* data = nullptr;
    bool stored = false;                          ///< the file's
    std::shared_ptr<const void> owner = nullptr;  ///< null: of this or of the file. This outlives it.
  };
  /// The same for many at once, in order; the functions get the index of the request. What is not there yet gets room
  /// in one buffer, or two where some are of_sizes, and is written by `fill`. Both functions run several at a time, on
  /// `pool`.
  Result<std::vector<Packed>> get_all(std::span<const Request> requests, ThreadPool& pool,
                                      const std::function<bool(size_t, const std::byte*)>& valid,
                                      const std::function<Status(size_t, std::byte*)>& fill);

  /// Whatever else executables are to share, one object under each key, made once and kept as long as this.
  template <class T>
  Result<std::shared_ptr<T>> shared(const std::string& key) {
    const WorkLock lock(mutex_, kWork);
    PINNACE_TRY(lock.status());
    std::shared_ptr<void>& held = shared_[key];
    if (!held) held = std::make_shared<T>();
    return std::static_pointer_cast<T>(held);
  }

  /// A payload of the file; its bytes outlive this. Before any other thread knows of this.
  void add_stored(const Entry& entry);
  /// What the file has for exactly this target and key, in `bytes` bytes, for who maps it elsewhere; null: nothing.
  /// Whether it is damaged, StoredBytes::check() says.
  Result<std::shared_ptr<const StoredBytes>> stored(const std::string& target, const std::string& key,
                                                    size_t bytes) const;
  /// The targets that the file has payloads for, in order.
  const std::vector<std::string>& stored_targets() const { return stored_targets_; }
  /// The user wants kUnsupported rather than anything packed that could have been stored.
  void require_stored() { stored_required_ = true; }
  bool stored_required() const { return stored_required_; }
  /// What a file can store, made or read, in order of target and key.
  Result<std::vector<Entry>> storable() const;
  /// Memory taken beside the file's. Waits for nobody.
  size_t made_bytes() const { return made_bytes_.load(std::memory_order_relaxed); }
  /// Counts memory for constants that a back end has taken itself, and what it has given back of it.
  void add_made_bytes(size_t bytes) { made_bytes_.fetch_add(bytes, std::memory_order_relaxed); }
  void drop_made_bytes(size_t bytes) { made_bytes_.fetch_sub(bytes, std::memory_order_relaxed); }
  /// Whether nothing can be had from this in a forked child: a thread of its parent was at work on it.
  bool left_behind() const { return mutex_.left_behind(); }

 private:
  /// Memory of what was made for one set of sizes, counted as long as it is there.
  struct Table {
    PackedConstants& counts;
    Buffer buffer;
    ~Table() { counts.drop_made_bytes(buffer.size()); }
  };
  struct Held {
    std::span<const std::byte> bytes;
    std::shared_ptr<const StoredBytes> stored;
    bool of_sizes = false;
    std::weak_ptr<const Table> table;  // where of_sizes
  };
  /// What is there under this key; of a file also what another variant of the back end packed: avx512_bf16 runs most of
  /// the kernels of avx512_vnni. Under mutex_.
  std::optional<Entry> find(const std::string& target, const std::string& key, size_t bytes) const;

  static constexpr std::string_view kWork = "the packing of weights";
  mutable WorkMutex mutex_;
  std::map<std::pair<std::string, std::string>, Held> entries_;  // by target and key
  // Set before the first plan.
  std::vector<std::string> stored_targets_;
  bool stored_required_ = false;
  std::vector<Buffer> buffers_;
  std::atomic<size_t> made_bytes_{0};  // before shared_, which gives back what it counts when it goes
  std::map<std::string, std::shared_ptr<void>> shared_;
};

}  // namespace pinnace
