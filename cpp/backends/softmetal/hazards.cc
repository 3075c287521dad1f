// Missing barriers between commands: ranges are compared within each run of commands between two barriers.
#include "backends/softmetal/hazards.h"

#include "base/text.h"

namespace pinnace::softmetal {

std::string find_hazard(const std::vector<Touches>& commands) {
  size_t first = 0;  // behind the last barrier
  for (size_t i = 0; i < commands.size(); ++i) {
    if (commands[i].empty()) {
      first = i + 1;
      continue;
    }
    for (size_t before = first; before < i; ++before) {
      for (const Touch& a : commands[before]) {
        for (const Touch& b : commands[i]) {
          if (a.buffer != b.buffer || !(a.writes || b.writes) || a.end <= b.begin || b.end <= a.begin) continue;
          return str_cat("commands ", before, " and ", i, " touch the same bytes of a buffer, the one [", a.begin, ", ",
                         a.end, ") ", a.writes ? "writing" : "reading", ", the other [", b.begin, ", ", b.end, ") ",
                         b.writes ? "writing" : "reading", ", and there is no barrier between");
        }
      }
    }
  }
  return {};
}

}  // namespace pinnace::softmetal
