// The table of rules.
#include "backends/gpu/rules.h"

namespace pinnace::gpu {

std::span<const RuleInfo> all_rules() {
  static constexpr RuleInfo rules[] = {
#define RULE(name, id, text, meaning) {id, text, meaning},
#include "backends/gpu/rules.inc"
#undef RULE
  };
  return rules;
}

Verdict refusal(Rule rule, std::string value) {
  return {false, info(rule).id, info(rule).text, std::move(value), {}, {}};
}

}  // namespace pinnace::gpu
