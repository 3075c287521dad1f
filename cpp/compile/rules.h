// The planner's own rules, by which a node goes to the next target without its back end being asked: rules.inc.
#pragma once

#include <string>
#include <utility>

#include "backends/rule.h"

namespace pinnace::planner {

#define RULES "compile/rules.inc"
#include "backends/rule_table.inc"

}  // namespace pinnace::planner
