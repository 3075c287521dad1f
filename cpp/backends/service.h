// The wishes of pinnace/service.h: their words, their check, and which of them a back end leaves aside.
#pragma once

#include <initializer_list>
#include <span>
#include <string>
#include <string_view>

#include <pinnace/service.h>

#include "base/status.h"

namespace pinnace {

/// A word and NNAPI's number for it.
struct ServiceWord {
  std::string_view word;
  int nnapi;
};
std::span<const ServiceWord> preference_words();
std::span<const ServiceWord> priority_words();
/// The number of a word; kInvalidArgument names `what`, the word and the known ones.
Result<int> service_number(std::string_view what, std::string_view word, std::span<const ServiceWord> words);

/// kInvalidArgument: a word that is not listed or a negative time. Processors are checked where they are looked up.
Status check_service(const Service& service);

/// The members that are set and not among `used`, as one sentence: "vulkan has no use of priority and deadline". Empty:
/// there are none. loop_timeout counts as used: the runtime sees to it.
std::string unused_members(std::string_view backend, const Service& service,
                           std::initializer_list<std::string_view> used);

}  // namespace pinnace
