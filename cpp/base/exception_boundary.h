// exception_boundary: where the standard library's exceptions end.
#pragma once

#include <new>
#include <stdexcept>
#include <type_traits>
#include <utility>

#include <pinnace/status.h>

namespace pinnace {

/// f(), or `no_memory` if the standard library ran out of memory inside. Every public call, and every function that a
/// thread or foreign code starts, goes through here: below it all frames clean up behind themselves, above it nothing
/// is thrown. A size that no container can have (std::length_error) counts as memory that is not there.
template <class F>
std::invoke_result_t<F> exception_boundary(F&& f, std::invoke_result_t<F> no_memory) noexcept {
  try {
    return f();
  } catch (const std::bad_alloc&) {
  } catch (const std::length_error&) {
  }
  return no_memory;
}

/// The same for a Status or Result, which is kOutOfMemory then.
template <class F>
std::invoke_result_t<F> exception_boundary(F&& f) noexcept {
  try {
    return f();
  } catch (const std::bad_alloc&) {
  } catch (const std::length_error&) {
  }
  return Status::no_memory();
}

}  // namespace pinnace
