// PackedStore: where weights that were packed for a program are kept beside its file, for Options::packed_store.
#pragma once

#include <memory>
#include <optional>

#include <pinnace/session.h>

namespace pinnace {

/// Asked when a Prepared is made for the CPU, whose weights are packed then. Thread-safe; lives as long as the process.
class PackedStore {
 public:
  /// A program whose payloads count as `program`'s: what an earlier keep() stored for the same program, options and
  /// build. Their hashes have been checked. Empty: there is none, or it is not to be trusted.
  virtual std::optional<Program> find(const Program& program, const Options& options) const = 0;
  /// Stores what was packed for `prepared`, which was just made, if it is worth that. Fails nothing.
  virtual void keep(const std::shared_ptr<const Prepared>& prepared) const = 0;

 protected:
  ~PackedStore() = default;
};

}  // namespace pinnace
