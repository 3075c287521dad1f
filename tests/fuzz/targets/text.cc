// The text form of graphs: what is parsed prints as text that parses, and prints the same again; what is more than
// text, with passes, a program and a run on the CPU, follows for some inputs.
#include "fuzz/text_target.h"
#include "graph/graph.h"

namespace pinnace {

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  const auto graph = parse(text);
  if (!graph.ok()) {
    fuzz::require_refusal(graph.status());
    return 0;
  }
  const std::string printed = print(*graph);
  const auto again = parse(printed);
  fuzz::require(again.ok(), "a printed graph parses", again.ok() ? "" : again.status().message() + "\n" + printed);
  fuzz::require(print(*again) == printed, "printing what was parsed gives the same text", printed);
  if (!fuzz::chosen_to_run({data, size})) return 0;
  fuzz::judge(Model::parse(text, {.disabled_passes = {"all"}}));
  return 0;
}

}  // namespace pinnace
