// Symbolic sizes of .pt2 archives: what is parsed prints as text that is stable, and its range and factor are sound.
#include "import/torch/exported/expression.h"
#include "fuzz/text_target.h"

namespace pinnace::torch_import {

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const auto parsed = parse_expression({reinterpret_cast<const char*>(data), size});
  if (!parsed.ok()) {
    fuzz::require_refusal(parsed.status());
    return 0;
  }
  const std::string text = parsed->text();
  fuzz::require(text == parsed->text(), "an expression prints the same each time", text);
  fuzz::require(parsed->factor() >= 1, "a factor is at least 1", text);
  for (const Interval symbol :
       {Interval{0, INT64_MAX}, Interval{1, 1}, Interval{2, 100}, Interval{INT64_MAX, INT64_MAX}}) {
    const Interval range = range_of(*parsed, [&](std::string_view) { return symbol; });
    fuzz::require(range.min >= 0 && range.min <= range.max, "a range of sizes is not empty and not below 0", text);
  }
  return 0;
}

}  // namespace pinnace::torch_import
