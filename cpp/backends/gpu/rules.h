// The rules by which nodes are refused, as data: rules.inc.
#pragma once

#include <span>
#include <string>

#include "backends/backend.h"

namespace pinnace::gpu {

enum class Rule : uint8_t {
#define RULE(name, id, text, meaning) name,
#include "backends/gpu/rules.inc"
#undef RULE
};

struct RuleInfo {
  const char *id, *text, *meaning;
};
/// In order of their ids.
std::span<const RuleInfo> all_rules();
inline const RuleInfo& info(Rule rule) {
  return all_rules()[static_cast<size_t>(rule)];
}

/// The verdict that refuses by `rule`, with the value that breaks it.
Verdict refusal(Rule rule, std::string value);

}  // namespace pinnace::gpu
