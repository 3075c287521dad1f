// Variables, and the file that this code was loaded from.
#include "base/files/user_cache.h"

#include <dlfcn.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/environment.h"

namespace pinnace {
namespace {

/// The variable's value if it is an absolute path, which others are to be ignored as; else empty.
std::string path_from(const char* variable) {
  const char* value = environment(variable);
  return value && value[0] == '/' ? value : "";
}

}  // namespace

std::string user_cache_folder() {
  if (environment("PINNACE_CACHE")) return path_from("PINNACE_CACHE");
  std::string parent = path_from("XDG_CACHE_HOME");
  if (const std::string home = path_from("HOME"); parent.empty() && !home.empty()) parent = home + "/.cache";
  return parent.empty() ? parent : parent + "/pinnace";
}

Result<PrivateFolder> open_user_cache(bool make) {
  const std::string folder = user_cache_folder();
  if (folder.empty()) return Status(Code::kFile, "there is no folder for what is kept between processes");
  if (make) {
    ::mkdir(folder.substr(0, folder.rfind('/')).c_str(), 0700);  // what is wrong with it, the next call says
  } else if (::access(folder.c_str(), F_OK) != 0) {
    return fail_with(Code::kFile, "there is no folder '", folder, "'");
  }
  return PrivateFolder::open(folder);
}

std::string library_build() {
  std::string text = PINNACE_VERSION;
  Dl_info found = {};
  struct stat file = {};
  if (::dladdr(reinterpret_cast<const void*>(&library_build), &found) && ::stat(found.dli_fname, &file) == 0) {
    text += str_cat(" ", file.st_size, " ", file.st_mtim.tv_sec, ".", file.st_mtim.tv_nsec);
  }
  return text;
}

}  // namespace pinnace
