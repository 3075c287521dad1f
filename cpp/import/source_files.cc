// SourceFiles: package folders are found where the end of a path is the dotted name of a class's module.
#include "import/source_files.h"

#include <algorithm>

namespace pinnace {
namespace {

// Bounds for what files may claim: programs of people have a handful of packages.
constexpr size_t kMaxPackages = 64, kMaxPath = 1024, kMaxClassName = 256;

bool is_slash(char c) {
  return c == '/' || c == '\\';
}

std::string last_component(std::string_view path) {
  return std::string(path.substr(path.find_last_of("/\\") + 1));  // npos + 1 is 0
}

std::string with_slashes(std::string_view path) {
  std::string text(path);
  std::ranges::replace(text, '\\', '/');
  return text;
}

/// True for "/home/me/mypkg/models/net" and "mypkg.models.net": whole components of a path.
bool ends_with_module(std::string_view path, std::string_view module) {
  if (path.size() <= module.size() || !is_slash(path[path.size() - module.size() - 1])) return false;
  const std::string_view tail = path.substr(path.size() - module.size());
  for (size_t i = tail.size(); i-- > 0;) {
    if (module[i] == '.' ? !is_slash(tail[i]) : tail[i] != module[i]) return false;
  }
  return true;
}

}  // namespace

void SourceFiles::learn(std::string_view file, std::string_view class_name) {
  if (file.size() > kMaxPath || class_name.size() > kMaxClassName || packages_.size() >= kMaxPackages) return;
  if (!file.ends_with(".py")) return;
  file.remove_suffix(3);
  bool is_package = false;  // the file is what runs when the package itself is imported
  for (const std::string_view name : {"/__init__", "\\__init__"}) {
    if (!file.ends_with(name)) continue;
    file.remove_suffix(name.size());
    is_package = true;
  }
  // The module is some prefix of the dotted name; the class, and those around it, follow.
  for (size_t end = class_name.rfind('.'); end != std::string_view::npos && end > 0;
       end = class_name.rfind('.', end - 1)) {
    const std::string_view module = class_name.substr(0, end);
    const size_t top = std::min(module.find('.'), module.size());
    // A module outside packages has no folder of its own: its file is known by its name alone.
    if ((top == module.size() && !is_package) || !ends_with_module(file, module)) continue;
    const size_t root = file.size() - module.size();
    packages_.try_emplace(with_slashes(file.substr(0, root + top)) + "/", root);
    return;
  }
}

std::string SourceFiles::stored_name(std::string_view file) const {
  if (file.starts_with('<')) return std::string(file.substr(0, std::min(file.size(), file.find('>') + 1)));
  if (file.size() > kMaxPath) return last_component(file.substr(file.size() - kMaxPath));
  const std::string path = with_slashes(file);
  for (const std::string_view installed : {"/site-packages/", "/dist-packages/"}) {
    const size_t at = path.rfind(installed);
    if (at != std::string::npos) return path.substr(at + installed.size());
  }
  size_t longest = 0, dropped = 0;
  for (const auto& [folder, length] : packages_) {
    if (folder.size() > longest && path.starts_with(folder)) longest = folder.size(), dropped = length;
  }
  return longest ? path.substr(dropped) : last_component(path);
}

}  // namespace pinnace
