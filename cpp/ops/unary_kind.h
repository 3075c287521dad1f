// The unary functions by number. Nothing else, so that kernels which are compiled for other instruction sets may
// include it.
#pragma once

#include <cstdint>

namespace pinnace {

/// One enumerator per row of unary.inc, after kNone, which is y = x.
enum class UnaryKind : uint8_t {
  kNone,
#define UNARY(kind, ...) kind,
#include "ops/unary.inc"
#undef UNARY
};

}  // namespace pinnace
