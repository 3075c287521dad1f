// Targets as users write them: parsed, checked, turned into back ends in order of preference.
#pragma once

#include <string_view>
#include <vector>

#include "backends/backend.h"

namespace pinnace {

struct TargetChoice {
  const Backend* backend;
  TargetSpec spec;
  std::string lost = {};      ///< how its device was lost: it gets no more nodes; empty: in use
  std::string reopened = {};  ///< how it was lost the first time, after which it was opened anew; empty: it was not
  bool asked = true;          ///< false: nobody named it, it is the last resort
};

/// The application's back ends (`extra`), then those built in: the order in which names are looked up.
std::vector<const Backend*> known_backends(std::span<const Backend* const> extra);

/// The target "auto" for a session that stays where its first run is.
inline constexpr std::string_view kAutoFixed = "auto:fixed";

/// "auto", "auto:fixed", "cpu:avx2", "vulkan,cpu": the back ends in order. Back ends of the application (`extra`) are
/// found first. "auto" takes every back end that is available and automatic(). `service` goes into every spec.
/// kInvalidArgument: unknown name, with the
/// list of known ones; kUnsupported: known, but not in this build or not available here, with its reason.
Result<std::vector<TargetChoice>> parse_targets(std::string_view text, std::string_view precision,
                                                std::span<const Backend* const> extra, const Service& service = {});

/// The precision "auto" becomes what the back end has as its fastest.
void settle_precision(const Backend& backend, TargetSpec& spec);

/// One target by name, whether or not it can run here: for questions that need no device.
Result<TargetChoice> find_target(std::string_view item, std::string_view precision = "fp32",
                                 std::span<const Backend* const> extra = {});

}  // namespace pinnace
