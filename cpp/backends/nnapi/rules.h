// The rules by which nodes are refused, as data: rules.inc.
#pragma once

#include <string>

#include "backends/rule.h"

namespace pinnace::nnapi_client {

enum class Rule : uint8_t {
#define RULE(name, id, text, meaning) name,
#include "backends/nnapi/rules.inc"
#undef RULE
};

/// In the order of Rule, which is that of their ids.
inline constexpr RuleInfo kRules[] = {
#define RULE(name, id, text, meaning) {id, text, meaning},
#include "backends/nnapi/rules.inc"
#undef RULE
};
inline const RuleInfo& info(Rule rule) {
  return kRules[static_cast<size_t>(rule)];
}
/// The verdict that refuses by `rule`, with the value that breaks it.
inline Verdict refusal(Rule rule, std::string value) {
  return pinnace::refusal(info(rule), std::move(value));
}

}  // namespace pinnace::nnapi_client
