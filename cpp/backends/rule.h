// A rule by which a back end, or the planner, leaves a node to others. Each lists its own in a rules.inc of
// RULE(name, id, text, meaning) lines: rule_table.inc makes the enumeration and the table of them,
// scripts/generate_docs.py the tables of docs/.
#pragma once

#include <string>
#include <utility>

#include "backends/backend.h"

namespace pinnace {

struct RuleInfo {
  const char* id;       ///< "V-3"
  const char* text;     ///< the phrase that users see
  const char* meaning;  ///< one or two sentences for the documents
};

/// The verdict that refuses by `rule`, with the value that breaks it.
inline Verdict refusal(const RuleInfo& rule, std::string value) {
  return {false, rule.id, rule.text, std::move(value), {}, {}};
}

}  // namespace pinnace
