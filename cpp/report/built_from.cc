// A file of its own, which alone is compiled again for a new commit.
#include "report/built_from.h"

#include "build_commit.h"

namespace pinnace::report {
const char* built_from() {
  return PINNACE_BUILT_FROM;
}
}  // namespace pinnace::report
