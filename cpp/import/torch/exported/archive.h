// Archive: the zip container of torch.export.save. Everything that the central directory says is checked before it is
// used; entries are stored, not compressed, so that no entry can be larger than the file.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "import/torch/exported/parts.h"

namespace pinnace::torch_import {

class Archive final : public Parts {
 public:
  /// Opens and checks: every name is relative, without "..", and appears once; every entry is stored and its size fits
  /// the file, also all together; there is one entry that ends in /archive_format and says "pt2". kFile: cannot be
  /// read. kCorruptFile: the rule (Z-n) that is broken.
  static Result<Archive> open(const std::string& path);
  Archive(Archive&&) noexcept;
  Archive& operator=(Archive&&) noexcept;
  ~Archive() override;

  /// Names of entries are those below the root folder.
  std::vector<std::string> names() const override;
  bool has(std::string_view name) const override { return entries_.contains(name); }
  /// kCorruptFile: the bytes do not have the checksum that the directory says.
  Result<Buffer> read(std::string_view name, size_t padding = 0) const override;
  Result<ConstantPtr> storage(std::string_view name) override;
  bool lent() const override { return false; }
  /// Of the file.
  uint64_t bytes() const override { return file_bytes_; }

 private:
  Archive() = default;
  struct Handle;
  std::unique_ptr<Handle> handle_;
  std::string path_, root_;
  std::map<std::string, uint64_t, std::less<>> entries_;  ///< with their index in the directory
  uint64_t file_bytes_ = 0;
};

}  // namespace pinnace::torch_import
