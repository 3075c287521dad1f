// What a graph records as the file of a node's source line: a name that is the same on every machine. A traceback has
// the absolute path, which tells where the model was made and makes the bytes of a file depend on it.
#pragma once

#include <map>
#include <string>
#include <string_view>

namespace pinnace {

/// Shortens the paths of one model's tracebacks. It looks at text alone, never at the file system, so that one archive
/// gives one graph wherever it is read.
class SourceFiles {
 public:
  /// `class_name`, "mypkg.models.net.Net", is a class that runs where `file` appears in a traceback. If the file is
  /// ".../mypkg/models/net.py", the folder of its package is known from then on.
  void learn(std::string_view file, std::string_view class_name);

  /// "torchvision/models/resnet.py" for what is installed in site-packages or dist-packages; "mypkg/models/net.py" for
  /// what lies in the folder of a package that learn() found; "net.py" for all else. Text in angle brackets, which
  /// Python has for code without a file, loses what follows them: "<eval_with_key>.12" is numbered by process.
  std::string stored_name(std::string_view file) const;

 private:
  std::map<std::string, size_t> packages_;  ///< folder of a package, "/home/me/proj/mypkg/": length of what to drop
};

}  // namespace pinnace
