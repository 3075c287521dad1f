// The rules by which nodes are refused, as data: rules.inc.
#pragma once

#include <string>
#include <utility>

#include "backends/rule.h"

namespace pinnace::nnapi_client {

#define RULES "backends/nnapi/rules.inc"
#include "backends/rule_table.inc"

}  // namespace pinnace::nnapi_client
