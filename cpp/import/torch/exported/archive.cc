// Archive on libzip: checks of the directory, reading of entries.
#include "import/torch/exported/archive.h"

#include <zip.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <set>
#include <system_error>

namespace pinnace::torch_import {
namespace {

// An archive of a model has two to three entries per weight; a directory of more is not one.
constexpr zip_int64_t kMaxEntries = 1 << 20;

Status corrupt(const std::string& path, std::string_view rule, std::string text) {
  Status status(Code::kCorruptFile, str_cat(path, ": ", text, " (rule ", rule, ")"));
  status.with_rule(std::string(rule));
  return status;
}

/// Each entry has a header of its own before its bytes. The directory's copy is what is read; that both say the same is
/// what tells a name that was damaged from one that was chosen.
Status check_local_headers(const std::string& path) {
  int code = 0;
  zip_t* zip = zip_open(path.c_str(), ZIP_RDONLY | ZIP_CHECKCONS, &code);
  if (zip) return zip_discard(zip), Status();
  if (code == ZIP_ER_MEMORY) return out_of_memory(path, ": directory of the archive");
  return corrupt(path, "Z-10", "the directory and the entries' own headers do not agree");
}

}  // namespace

bool safe_name(std::string_view name) {
  if (name.empty() || name.size() > 4096) return false;
  size_t start = 0;
  while (start <= name.size()) {
    const size_t end = std::min(name.find('/', start), name.size());
    const std::string_view part = name.substr(start, end - start);
    if (part.empty() || part == "." || part == "..") return false;
    for (char c : part) {
      if (static_cast<unsigned char>(c) < 0x20 || c == '\\' || c == ':' || c == 0x7f) return false;
    }
    start = end + 1;
  }
  return true;
}

struct Archive::Handle {
  zip_t* zip = nullptr;
  ~Handle() {
    if (zip) zip_discard(zip);
  }
};

Archive::Archive(Archive&&) noexcept = default;
Archive& Archive::operator=(Archive&&) noexcept = default;
Archive::~Archive() = default;

Result<Archive> Archive::open(const std::string& path) {
  Archive archive;
  archive.path_ = path;
  std::error_code file_error;
  if (!std::filesystem::is_regular_file(path, file_error)) {
    return Status(Code::kFile, str_cat(path, ": ", file_error ? file_error.message() : "not a file"));
  }
  archive.file_bytes_ = std::filesystem::file_size(path, file_error);
  if (file_error) return Status(Code::kFile, str_cat(path, ": ", file_error.message()));

  archive.handle_ = std::make_unique<Handle>();
  int code = 0;
  archive.handle_->zip = zip_open(path.c_str(), ZIP_RDONLY, &code);
  if (!archive.handle_->zip) {
    struct Error : zip_error_t {
      explicit Error(int code) { zip_error_init_with_code(this, code); }
      ~Error() { zip_error_fini(this); }
    } error(code);
    const std::string text = zip_error_strerror(&error);
    if (error.sys_err == ENOMEM) return out_of_memory(path, ": ", text);
    if (code == ZIP_ER_OPEN || code == ZIP_ER_READ) return Status(Code::kFile, str_cat(path, ": ", text));
    if (code == ZIP_ER_MEMORY) return out_of_memory(path, ": ", text);
    return corrupt(path, "Z-1", str_cat("not a readable zip archive: ", text));
  }
  zip_t* zip = archive.handle_->zip;
  const zip_int64_t count = zip_get_num_entries(zip, 0);
  if (count > kMaxEntries) return corrupt(path, "Z-2", str_cat(count, " entries, at most ", kMaxEntries, " are read"));

  std::map<std::string, uint64_t, std::less<>> all;
  uint64_t total = 0;
  for (zip_int64_t i = 0; i < count; ++i) {
    zip_stat_t stat;
    if (zip_stat_index(zip, static_cast<zip_uint64_t>(i), 0, &stat) != 0) {
      return corrupt(path, "Z-1", str_cat("entry ", i, ": ", zip_strerror(zip)));
    }
    constexpr zip_uint64_t kNeeded = ZIP_STAT_NAME | ZIP_STAT_SIZE | ZIP_STAT_COMP_SIZE | ZIP_STAT_COMP_METHOD |
                                     ZIP_STAT_CRC | ZIP_STAT_ENCRYPTION_METHOD;
    if ((stat.valid & kNeeded) != kNeeded)
      return corrupt(path, "Z-1", str_cat("entry ", i, " has no size or checksum"));
    const std::string name = stat.name;
    if (!safe_name(name))
      return corrupt(path, "Z-3", str_cat("entry ", i, " is named '", name, "', not a relative path"));
    if (stat.encryption_method != ZIP_EM_NONE) return corrupt(path, "Z-4", str_cat("entry '", name, "' is encrypted"));
    if (stat.comp_method != ZIP_CM_STORE || stat.size != stat.comp_size) {
      return corrupt(path, "Z-4",
                     str_cat("entry '", name, "' is compressed (method ", stat.comp_method,
                             "); torch.export.save stores entries as they are"));
    }
    if (stat.size > archive.file_bytes_ || total + stat.size > archive.file_bytes_) {
      return corrupt(path, "Z-5",
                     str_cat("entry '", name, "' states ", stat.size, " bytes, the file has ", archive.file_bytes_,
                             ", entries before it take ", total));
    }
    total += stat.size;
    if (!all.emplace(name, static_cast<uint64_t>(i)).second) {
      return corrupt(path, "Z-6", str_cat("entry '", name, "' appears twice"));
    }
    constexpr std::string_view kMark = "/archive_format";
    if (name.ends_with(kMark)) {
      if (!archive.root_.empty()) return corrupt(path, "Z-7", "more than one entry ends in /archive_format");
      archive.root_ = name.substr(0, name.size() - kMark.size() + 1);
    }
  }
  if (archive.root_.empty()) {
    const bool script =
        std::any_of(all.begin(), all.end(), [](const auto& e) { return e.first.ends_with("/constants.pkl"); });
    return corrupt(path, "Z-7",
                   script ? "a TorchScript file; pinnace.load reads it in Python, with torch installed"
                          : "no entry ends in /archive_format: not an archive of torch.export.save");
  }
  for (const auto& [name, index] : all) {
    if (name.starts_with(archive.root_)) archive.entries_.emplace(name.substr(archive.root_.size()), index);
  }
  PINNACE_TRY(check_local_headers(path));
  PINNACE_ASSIGN(const Buffer format, archive.read("archive_format"));
  const std::string_view text(reinterpret_cast<const char*>(format.data()), format.size());
  if (text != "pt2") return corrupt(path, "Z-7", str_cat("archive format '", text.substr(0, 16), "', expected 'pt2'"));
  return archive;
}

std::vector<std::string> Archive::names() const {
  std::vector<std::string> all;
  for (const auto& [name, index] : entries_) all.push_back(name);
  return all;
}

Result<ConstantPtr> Archive::storage(std::string_view name) {
  PINNACE_ASSIGN(Buffer bytes, read(name));
  return Constant::of(std::move(bytes));
}

Result<Buffer> Archive::read(std::string_view name, size_t padding) const {
  const auto at = entries_.find(name);
  if (at == entries_.end()) return corrupt(path_, "Z-8", str_cat("no entry '", name, "'"));
  zip_t* zip = handle_->zip;
  zip_stat_t stat;
  if (zip_stat_index(zip, at->second, 0, &stat) != 0) return corrupt(path_, "Z-1", zip_strerror(zip));
  PINNACE_ASSIGN(Buffer bytes, Buffer::allocate(stat.size + padding, str_cat("entry '", name, "'")));
  std::memset(bytes.data() + stat.size, 0, padding);
  const std::unique_ptr<zip_file_t, int (*)(zip_file_t*)> opened(zip_fopen_index(zip, at->second, 0), zip_fclose);
  zip_file_t* const file = opened.get();
  const auto without_memory = [](const zip_error_t* error) { return zip_error_code_zip(error) == ZIP_ER_MEMORY; };
  if (!file && without_memory(zip_get_error(zip))) return out_of_memory(path_, ": entry '", name, "'");
  if (!file) return corrupt(path_, "Z-9", str_cat("entry '", name, "': ", zip_strerror(zip)));
  uint64_t done = 0;
  zip_int64_t got = 1;
  while (done < stat.size && (got = zip_fread(file, bytes.data() + done, stat.size - done)) > 0) {
    done += static_cast<uint64_t>(got);
  }
  // The checksum is compared when the end is met.
  char beyond;
  if (got > 0 && done == stat.size) got = zip_fread(file, &beyond, 1);
  if (got < 0 && without_memory(zip_file_get_error(file))) return out_of_memory(path_, ": entry '", name, "'");
  const std::string error = got < 0 ? zip_file_strerror(file) : "";
  if (got < 0) return corrupt(path_, "Z-9", str_cat("entry '", name, "': ", error));
  if (done != stat.size || got != 0) {
    return corrupt(path_, "Z-9", str_cat("entry '", name, "' has ", done, " of its ", stat.size, " bytes"));
  }
  return bytes;
}

}  // namespace pinnace::torch_import
