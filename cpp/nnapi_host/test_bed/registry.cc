// The client's objects that are alive.
#include "nnapi_host/test_bed/registry.h"

#include "base/text.h"

namespace pinnace::nnapi_host {

void Registry::add(ObjectKind kind, const void* object, const void* made_from) {
  std::lock_guard lock(mutex_);
  objects_[object] = {kind, ++made_[static_cast<int>(kind)], made_from};
}

void Registry::remove(const void* object) {
  std::lock_guard lock(mutex_);
  objects_.erase(object);
}

std::optional<ObjectKind> Registry::kind(const void* object) const {
  std::lock_guard lock(mutex_);
  const auto found = objects_.find(object);
  return found == objects_.end() ? std::nullopt : std::optional(found->second.kind);
}

std::string Registry::name(ObjectKind kind, const void* object) const {
  if (!object) return "null";
  const char* const word = kObjectNames[static_cast<int>(kind)];
  if (kind == ObjectKind::kDevice) return word;
  std::lock_guard lock(mutex_);
  const auto found = objects_.find(object);
  if (found == objects_.end() || found->second.kind != kind) return str_cat(word, '?');
  return str_cat(word, found->second.number);
}

void Registry::kill(const void* object) {
  std::lock_guard lock(mutex_);
  auto victim = objects_.find(object);
  for (auto at = victim; at != objects_.end(); at = objects_.find(at->second.made_from)) {
    if (at->second.kind == ObjectKind::kCompilation) victim = at;
  }
  if (victim != objects_.end()) victim->second.dead = true;
}

bool Registry::dead(const void* object) const {
  std::lock_guard lock(mutex_);
  for (auto at = objects_.find(object); at != objects_.end(); at = objects_.find(at->second.made_from)) {
    if (at->second.dead) return true;
  }
  return false;
}

std::string Registry::alive() const {
  std::lock_guard lock(mutex_);
  std::string all;
  for (const auto& [pointer, object] : objects_) {
    if (!all.empty()) all += ", ";
    all += str_cat(kObjectNames[static_cast<int>(object.kind)], object.number);
  }
  return all;
}

}  // namespace pinnace::nnapi_host
