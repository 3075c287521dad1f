// The commit that the extension was built from. A file of its own, which alone is compiled again for a new commit.
#include "built_from.h"

#include "build_commit.h"

namespace pinnace::bindings {
const char* built_from() {
  return PINNACE_BUILT_FROM;
}
}  // namespace pinnace::bindings
