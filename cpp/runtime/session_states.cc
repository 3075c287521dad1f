// States that move between a session's memory and executables that keep them.
#include "runtime/session_states.h"

#include <algorithm>
#include <cstring>

namespace pinnace {

Status SessionStates::create(const Graph& graph) {
  graph_ = &graph;
  for (const State& s : graph.states) {
    PINNACE_TRY(s.initial->check());
    One one;
    PINNACE_ASSIGN(one.bytes, Buffer::allocate(s.initial->bytes(), "a session's state"));
    views_.push_back({&graph.value(s.input).type, one.bytes.data()});
    for (const State& other : graph.states) {
      if (&other == &s || other.input != s.output) continue;
      PINNACE_ASSIGN(one.next, Buffer::allocate(s.initial->bytes(), "a session's state"));
    }
    states_.push_back(std::move(one));
  }
  return {};
}

Status SessionStates::fetch(size_t i) {
  One& s = states_[i];
  if (s.newest_here) return {};
  Status status(Code::kDeviceLost, "it was lost with it; set or reset the state");
  if (s.newest_there) status = s.there->read(s.position, s.bytes.data());
  s.newest_here = status.ok();
  if (status.ok()) return {};
  // Without memory, say, it can be had later.
  if (status.code() == Code::kDeviceLost) s.newest_there = false;
  return status.with_prefix(str_cat("state '", graph_->states[i].name, "' cannot be had from its device: "));
}

Status SessionStates::fetch_all() {
  Status first;
  for (size_t i = 0; i < size(); ++i) {
    Status status = fetch(i);
    if (first.ok()) first = status;
    if (!status.ok() && status.code() != Code::kDeviceLost) continue;
    states_[i].there = nullptr;
    states_[i].newest_there = false;
  }
  if (std::none_of(states_.begin(), states_.end(), [](const One& s) { return s.there; })) holder_ = nullptr;
  return first;
}

void SessionStates::set_here(size_t i) {
  states_[i].newest_here = true;
  states_[i].newest_there = false;
}

Status SessionStates::enter(const Instance& instance) {
  const bool moves = std::any_of(states_.begin(), states_.end(), [&](const One& s) {
    return s.there && s.there != instance.kept_states[static_cast<size_t>(&s - states_.data())].states;
  });
  if (moves) PINNACE_TRY(fetch_all());
  holder_ = &instance;
  for (size_t i = 0; i < size(); ++i) {
    One& s = states_[i];
    const KeptState& kept = instance.kept_states[i];
    if (s.newest_there) continue;
    PINNACE_TRY(fetch(i));
    s.there = kept.states;
    s.position = kept.position;
    if (!s.there) continue;
    PINNACE_TRY(name_lost(s.there->write(s.position, s.bytes.data()), *kept.backend));
    s.newest_there = true;
  }
  return {};
}

Status SessionStates::commit(const Instance& instance) {
  for (size_t i = 0; i < size(); ++i) {
    const TensorView& next = instance.views[graph_->states[i].output];
    if (next.type->dtype != views_[i].type->dtype || next.type->shape != views_[i].type->shape) {
      return invalid("state '", graph_->states[i].name, "' would change its type from ", *views_[i].type, " to ",
                     *next.type);
    }
  }
  for (const Instance::StepState& step : instance.steps) {
    if (step.kept) step.kept->commit();
  }
  const auto next = [&](size_t i) -> const std::byte* { return instance.views[graph_->states[i].output].bytes; };
  for (size_t i = 0; i < size(); ++i) {
    if (states_[i].next.size()) std::memcpy(states_[i].next.data(), next(i), states_[i].bytes.size());
  }
  for (size_t i = 0; i < size(); ++i) {
    One& s = states_[i];
    s.newest_there = s.there != nullptr;
    s.newest_here = !s.newest_there;
    if (s.there) continue;
    const std::byte* from = s.next.size() ? s.next.data() : next(i);
    if (from != views_[i].bytes) std::memmove(views_[i].bytes, from, s.bytes.size());
  }
  return {};
}

}  // namespace pinnace
