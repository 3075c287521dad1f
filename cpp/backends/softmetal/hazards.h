// Commands of a list, as bytes that they read and write, and the first two of them that a barrier should stand between.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace pinnace::softmetal {

/// Bytes [begin, end) of a buffer, touched by a command.
struct Touch {
  const void* buffer;
  size_t begin, end;
  bool writes;
};

/// What one command touches; an empty one is a barrier.
using Touches = std::vector<Touch>;

/// One sentence about the first two commands without a barrier between that touch the same bytes, one of them writing;
/// empty if there are none.
std::string find_hazard(const std::vector<Touches>& commands);

}  // namespace pinnace::softmetal
