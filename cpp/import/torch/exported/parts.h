// Parts: what torch.export.save writes, by the names that entries have in its archive: "models/model.json", configs and
// storages of weights. They are an archive's on disk (Archive), or lie in memory (MemoryParts). Whatever checks the
// importer makes of their contents, it makes of both.
#pragma once

#include <map>
#include <string>
#include <string_view>
#include <vector>

#include <pinnace/model.h>

#include "graph/graph.h"
#include "import/import.h"

namespace pinnace::torch_import {

class Parts {
 public:
  virtual ~Parts() = default;
  /// Sorted.
  virtual std::vector<std::string> names() const = 0;
  virtual bool has(std::string_view name) const = 0;
  /// A copy of a part's bytes, followed by `padding` zero bytes, which count in Buffer::size().
  virtual Result<Buffer> read(std::string_view name, size_t padding = 0) const = 0;
  /// The bytes of a part for as long as the result is kept. Those of lent() parts are the caller's own memory.
  virtual Result<ConstantPtr> storage(std::string_view name) = 0;
  /// Storages are memory that somebody else may write to: what must keep its value is copied.
  virtual bool lent() const = 0;
  /// How many bytes all parts have together.
  virtual uint64_t bytes() const = 0;
};

/// True for "a/b/c" without empty, "." or ".." parts, backslashes, drive letters or control characters.
bool safe_name(std::string_view name);

/// Parts in memory that a caller lends, which stays as long as the owners of the parts do.
class MemoryParts final : public Parts {
 public:
  /// kInvalidArgument: a name that is not safe_name(), or that appears twice.
  static Result<MemoryParts> of(const TorchProgram& program);

  std::vector<std::string> names() const override;
  bool has(std::string_view name) const override { return parts_.contains(name); }
  Result<Buffer> read(std::string_view name, size_t padding = 0) const override;
  Result<ConstantPtr> storage(std::string_view name) override;
  bool lent() const override { return true; }
  uint64_t bytes() const override { return bytes_; }

  /// The storages that were asked for, as they were then.
  std::vector<LentBytes> take_lent() { return std::move(lent_); }

 private:
  std::map<std::string, const TorchPart*, std::less<>> parts_;
  std::vector<LentBytes> lent_;
  uint64_t bytes_ = 0;
};

}  // namespace pinnace::torch_import
