// The table of importers, and which of them takes a file.
#include <unistd.h>

#include <cerrno>

#include "base/files/mapped_file.h"
#include "base/files/open_file.h"
#include "import/import.h"

namespace pinnace {
namespace {

constexpr Importer kImporters[] = {
#define IMPORTER(format, sniff, function) {#format, sniff, function},
#include "import/importers.inc"
#undef IMPORTER
};

}  // namespace

Result<std::string> sniffed_bytes(const std::string& path) {
  PINNACE_ASSIGN(const RegularFile file, open_regular(path));
  std::string head(kSniffedBytes, '\0');
  const ssize_t got = ::read(file.descriptor.get(), head.data(), head.size());
  if (got < 0) return file_error("read", path, errno);
  if (got == 0) return Status(Code::kCorruptFile, str_cat(path, ": is empty")).with_offset(0);
  head.resize(static_cast<size_t>(got));
  return head;
}

const Importer& find_importer(std::string_view head) {
  for (const Importer& importer : kImporters) {
    if (importer.sniff(head)) return importer;
  }
  return *std::rbegin(kImporters);
}

}  // namespace pinnace
