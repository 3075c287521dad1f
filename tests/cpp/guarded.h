// Many cases of one kind in a child process: a crash, a hang, or memory beyond a limit becomes the failure of one test
// that names its case, and does not end the others.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>

namespace pinnace::testing {

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
inline constexpr bool kSanitized = true;
#else
inline constexpr bool kSanitized = false;
#endif

/// What a run of cases is allowed.
struct Allowance {
  /// Resident bytes beyond those at the start. Not measured in sanitized builds, which keep freed memory and shadow it.
  std::optional<int64_t> memory;
  /// Processor time of one case in all its threads; not wall time, as other processes may share the machine. Where they
  /// slow the processor itself down the bound grows as much as a piece of work that is measured with it.
  double seconds = 1;
};

/// What was seen, for the test's own expectations.
struct Observed {
  std::string failure;  ///< empty: every case ended, returned an empty text and kept to the allowance
  size_t accepted = 0;  ///< cases that called accept()
  int64_t peak = 0;     ///< resident bytes beyond those at the start; 0 in sanitized builds
  double slowest = 0;   ///< seconds
};

/// Calls `body` with 0 to cases - 1 in one child process. It returns what is wrong with a case, empty if nothing is;
/// `accept` counts cases. Expectations of GoogleTest do not reach the parent: return texts.
///
/// Memory is given back to the system before the start, so that every page the cases take is seen. Address space is
/// limited to the allowance and 256 MiB: more than that is not given, so that a huge request fails where it is made.
Observed run_guarded(size_t cases, const Allowance& allowance,
                     const std::function<std::string(size_t index, const std::function<void()>& accept)>& body);

}  // namespace pinnace::testing
