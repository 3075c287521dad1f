// A file that a tool writes.
#pragma once

#include <fcntl.h>
#include <unistd.h>

#include <cstdio>
#include <filesystem>
#include <string>
#include <utility>

namespace pinnace::tools {

/// A file that takes its name only when all of it is written; before that it stands beside, and goes if anything fails.
class OutputFile {
 public:
  ~OutputFile() {
    if (file_) std::fclose(file_);
    if (!temporary_.empty()) ::unlink(temporary_.c_str());
  }
  bool is_open() const { return file_ != nullptr; }
  bool open(const std::string& path) {
    std::error_code error;
    path_ = path;
    if (std::filesystem::is_symlink(path, error)) {
      path_ = std::filesystem::canonical(path, error);
      if (error) return false;
    }
    if (std::filesystem::exists(path_, error) && !std::filesystem::is_regular_file(path_, error)) return false;
    temporary_ = path_ + "." + std::to_string(::getpid()) + ".tmp";
    const int fd = ::open(temporary_.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
    if (fd < 0) temporary_.clear();
    file_ = fd < 0 ? nullptr : ::fdopen(fd, "wb");
    return is_open();
  }
  bool write(const void* bytes, size_t count) { return std::fwrite(bytes, 1, count, file_) == count; }
  bool finish() {
    bool good = std::fflush(file_) == 0 && ::fsync(::fileno(file_)) == 0;
    good &= std::fclose(std::exchange(file_, nullptr)) == 0;
    good = good && std::rename(temporary_.c_str(), path_.c_str()) == 0;
    if (good) temporary_.clear();
    return good;
  }

 private:
  std::FILE* file_ = nullptr;
  std::string path_, temporary_;
};

}  // namespace pinnace::tools
