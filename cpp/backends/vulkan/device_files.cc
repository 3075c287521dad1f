// Looking for names below /dev: microseconds, where loading Vulkan's drivers takes up to a tenth of a second.
#include "backends/vulkan/device_files.h"

#include <dirent.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <memory>
#include <span>
#include <vector>

#include "base/environment.h"
#include "base/files/open_file.h"
#include "base/hash.h"
#include "base/text.h"

namespace pinnace::vulkan {
namespace {

bool means_absent(int problem) {
  return problem == ENOENT || problem == ENOTDIR;
}

/// The entries of `pattern`'s folder that are its name with digits in place of the `*`, in order of names.
std::vector<std::string> numbered_files(std::string_view pattern) {
  const std::string stem(pattern.substr(0, pattern.size() - 1));
  const size_t slash = stem.rfind('/') + 1;
  const std::string folder = slash ? stem.substr(0, slash) : ".", name = stem.substr(slash);
  const std::unique_ptr<DIR, int (*)(DIR*)> open(::opendir(folder.c_str()), ::closedir);
  std::vector<std::string> found;
  if (!open) {
    if (!means_absent(errno)) found.emplace_back(pattern);
    return found;
  }
  while (const dirent* entry = ::readdir(open.get())) {
    const std::string_view there = entry->d_name;
    if (!there.starts_with(name) || there.size() == name.size()) continue;
    if (there.find_first_not_of("0123456789", name.size()) != std::string_view::npos) continue;
    found.push_back(stem + std::string(there.substr(name.size())));
  }
  std::sort(found.begin(), found.end());
  return found;
}

/// The beginning of a small file; empty if it cannot be read.
std::string contents(const std::string& path) {
  const Descriptor file(::open(path.c_str(), reading_flags()));
  char text[1024];
  const ssize_t length = file.valid() ? ::read(file.get(), text, sizeof text) : 0;
  return length > 0 ? std::string(text, static_cast<size_t>(length)) : std::string();
}

}  // namespace

std::string files_there(std::string_view list) {
  std::string all;
  const auto add = [&](const std::string& path) { all += (all.empty() ? "" : " ") + path; };
  while (!list.empty()) {
    const size_t colon = list.find(':');
    const std::string path(list.substr(0, colon));
    list.remove_prefix(colon == std::string_view::npos ? list.size() : colon + 1);
    if (path.empty()) continue;
    if (path.back() == '*') {
      for (const std::string& file : numbered_files(path)) add(file);
    } else if (::access(path.c_str(), F_OK) == 0 || !means_absent(errno)) {
      add(path);
    }
  }
  return all;
}

std::string device_signs() {
  std::string files = device_files();
  if (files.empty()) return files;
  std::string about;
  for (std::string_view left = files; !left.empty();) {
    const size_t space = left.find(' ');
    const std::string path(left.substr(0, space));
    left.remove_prefix(space == std::string_view::npos ? left.size() : space + 1);
    struct stat file = {};
    if (::stat(path.c_str(), &file) != 0) continue;
    about +=
        str_cat(path, " ", file.st_rdev, "\n",
                contents(str_cat("/sys/dev/char/", major(file.st_rdev), ":", minor(file.st_rdev), "/device/uevent")));
  }
  for (const char* folder : {"/etc/vulkan/icd.d", "/usr/local/share/vulkan/icd.d", "/usr/share/vulkan/icd.d"}) {
    struct stat listed = {};
    if (::stat(folder, &listed) == 0) about += str_cat(folder, " ", listed.st_mtim.tv_sec, "\n");
  }
  for (const char* variable : {"VK_DRIVER_FILES", "VK_ICD_FILENAMES"}) {
    if (const char* value = environment(variable)) about += str_cat(variable, " ", value, "\n");
  }
  return str_cat(files, " ", hash64(std::as_bytes(std::span(about.data(), about.size()))));
}

std::string device_files() {
  const char* given = environment("PINNACE_GPU_DEVICE_FILES");
  return files_there(given ? given : kDeviceFiles);
}

}  // namespace pinnace::vulkan
