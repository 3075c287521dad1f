// Where tests put their files: in memory where the system has such a folder, as thousands of small files that are
// written once and read once take milliseconds each on some disks.
#pragma once

#include <unistd.h>

#include <filesystem>

namespace pinnace::testing {

inline std::filesystem::path scratch_folder() {
  const char* in_memory = "/dev/shm";
  return ::access(in_memory, W_OK | X_OK) == 0 ? in_memory : std::filesystem::temp_directory_path();
}

}  // namespace pinnace::testing
