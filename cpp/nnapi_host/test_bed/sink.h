// Where the test bed writes: standard error or a file that grows, one line at a time.
#pragma once

#include <string>
#include <string_view>

namespace pinnace::nnapi_host {

class Sink {
 public:
  /// "stderr", or the path of a file, which is made if need be. Lines to a file that cannot be opened go to standard
  /// error, after one that says so.
  explicit Sink(const std::string& path);
  /// Lines of several threads, and of several processes, do not mix.
  void line(std::string_view text) const;

 private:
  int file_;
};

}  // namespace pinnace::nnapi_host
