// Shorthand for making and passing on failures inside pinnace.
#pragma once

#include <pinnace/status.h>

#include "base/text.h"

namespace pinnace {

template <class... Parts>
Status invalid(const Parts&... parts) {
  return Status(Code::kInvalidArgument, str_cat(parts...));
}
template <class... Parts>
Status unsupported(const Parts&... parts) {
  return Status(Code::kUnsupported, str_cat(parts...));
}
template <class... Parts>
Status out_of_memory(const Parts&... parts) {
  return Status(Code::kOutOfMemory, str_cat(parts...));
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
#define PINNACE_ASSIGN_(result, target, expression) \
  auto result = (expression);                       \
  if (!result.ok()) return result.status();         \
  target = std::move(*result)
