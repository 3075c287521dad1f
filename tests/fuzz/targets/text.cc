// The text form of graphs: what is parsed prints as text that parses, and prints the same again; what is more than
// text, with passes, a program and a run on the CPU, follows for some inputs.
#include "fuzz/fuzzing.h"
#include "fuzz/text_mutator.h"
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
  const auto model = Model::parse(text, {.disabled_passes = {"all"}});
  if (!model.ok()) {
    fuzz::require_refusal(model.status());
    return 0;
  }
  fuzz::build_and_run(*model);
  return 0;
}

extern "C" size_t LLVMFuzzerCustomMutator(uint8_t* data, size_t size, size_t max_size, unsigned seed) {
  return fuzz::mutate_text(data, size, max_size, seed);
}
extern "C" size_t LLVMFuzzerCustomCrossOver(const uint8_t* a, size_t a_size, const uint8_t* b, size_t b_size,
                                            uint8_t* out, size_t max_size, unsigned seed) {
  return fuzz::cross_texts(a, a_size, b, b_size, out, max_size, seed);
}

}  // namespace pinnace
