// The rules by which nodes are refused, as data: rules.inc.
#pragma once

#include <string>
#include <utility>

#include "backends/rule.h"

namespace pinnace::gpu {

#define RULES "backends/gpu/rules.inc"
#include "backends/rule_table.inc"

}  // namespace pinnace::gpu
