// The client's objects that are alive, with the numbers that the test bed calls them by.
#pragma once

#include <map>
#include <mutex>
#include <optional>
#include <string>

#include "nnapi_host/test_bed/arguments.h"

namespace pinnace::nnapi_host {

/// Thread-safe.
class Registry {
 public:
  void add(ObjectKind kind, const void* object, const void* made_from);
  void remove(const void* object);
  std::optional<ObjectKind> kind(const void* object) const;
  /// "model3"; "null"; "model?" for one that is not alive.
  std::string name(ObjectKind kind, const void* object) const;
  /// The compilation that an execution, a burst or an event comes from dies, or else the object itself.
  void kill(const void* object);
  bool dead(const void* object) const;
  /// Names of all that is alive.
  std::string alive() const;

 private:
  struct Object {
    ObjectKind kind;
    uint64_t number;
    const void* made_from;
    bool dead = false;
  };
  mutable std::mutex mutex_;
  std::map<const void*, Object> objects_;
  uint64_t made_[8] = {};
};

}  // namespace pinnace::nnapi_host
