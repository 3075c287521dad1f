// Shorthand for making and passing on failures inside pinnace.
#pragma once

#include <pinnace/status.h>

#include "base/text.h"

namespace pinnace {

/// The failure whose sentence these parts are; see base/text.h.
[[gnu::cold]] Status failure_of(Code code, const PartKind* kinds, const Part* parts);

template <class... Parts>
[[gnu::always_inline]] inline Status fail_with(Code code, const Parts&... parts) {
  return with_parts([code](const PartKind* kinds, const Part* list) { return failure_of(code, kinds, list); },
                    parts...);
}
template <class... Parts>
[[gnu::always_inline]] inline Status invalid(const Parts&... parts) {
  return fail_with(Code::kInvalidArgument, parts...);
}
template <class... Parts>
[[gnu::always_inline]] inline Status unsupported(const Parts&... parts) {
  return fail_with(Code::kUnsupported, parts...);
}
template <class... Parts>
[[gnu::always_inline]] inline Status out_of_memory(const Parts&... parts) {
  return fail_with(Code::kOutOfMemory, parts...);
}

}  // namespace pinnace

#define PINNACE_JOIN_(a, b) a##b
#define PINNACE_JOIN(a, b) PINNACE_JOIN_(a, b)

/// Returns from the calling function if `expression`, a Status, is a failure.
#define PINNACE_TRY(expression)                                                  \
  do {                                                                           \
    if (::pinnace::Status status_ = (expression); !status_.ok()) return status_; \
  } while (false)

/// `PINNACE_ASSIGN(auto x, f())`: x is the value of the Result that f returns; its failure is passed on.
#define PINNACE_ASSIGN(target, expression) PINNACE_ASSIGN_(PINNACE_JOIN(result_, __LINE__), target, expression)
#define PINNACE_ASSIGN_(result, target, expression)    \
  auto result = (expression);                          \
  if (!result.ok()) return std::move(result).status(); \
  target = std::move(*result)
